"""README and the site: sizes, links, pictures, and programs that run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from alphazero.catalogue import registry
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
MADE = "connect4.html", "othello.html", "hex.html"
"""Files that docs/hooks.py makes."""
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "pretrained" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
# a run of a few games without a gate
NET = 'net={"blocks": 1, "channels": 8}'
FEW = (
    'evaluation={"opponents": ()}, gate={"enabled": False}, search={"num_simulations": 8}, '
    'self_play={"games_per_generation": 16, "num_slots": 8}'
)
TINY = (
    f"generations=1, {NET}, "
    'search={"num_simulations": 8}, evaluation={"opponents": ()}, '
    'self_play={"games_per_generation": 16, "num_slots": 8}, gate={"games": 4}'
)
SMALLER = {
    'evaluation={"opponents": ()}': FEW,
    "generations=2)": f"generations=1, {FEW})",
    "targets=half_and_half": f"targets=half_and_half, {NET}",
    'az.train("tictactoe", generations': f'az.train("tictactoe", {NET}, generations',
    "stop=stop": f"stop=stop, {NET}",
    "Timer(5.0": "Timer(0.5",
    "minutes=3": TINY,
    "minutes=2": TINY,
    'load_net("best", game': 'load_net("beginner", game',
    'load_net("best", "connect4"': 'load_net("beginner", "connect4"',
    '"club"': '"beginner"',
    '"mcts:400", game, games=': '"mcts:8", game, simulations=8, games=',
    "games=100": "games=4",
    "games=20": "games=4",
    "simulations=400": "simulations=8",
    "mcts:400": "mcts:8",
    "mcts:100": "mcts:8",
}
"""What takes long, made short."""
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def anchors(path: Path) -> set[str]:
    """As the site and GitHub make them of headings."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_is_short_and_has_pictures():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 120 and "](" not in line] == []
    pictures = re.findall(r"src=\"([^\"]+)\"", README.read_text(encoding="utf-8"))
    assert len(pictures) >= 2
    for picture in pictures:
        assert (ROOT / picture).is_file(), picture


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [a or b for a, b in LINK.findall(text)]
    for target in targets:
        if re.match(r"https?:|mailto:|data:", target):
            continue
        if page.name == "play.md" and target in MADE:
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found), target


def test_the_findings_that_the_guide_names_are_there():
    """The site has no links to them."""
    guide = (ROOT / "docs" / "guides" / "games_from_elsewhere.md").read_text(encoding="utf-8")
    names = re.findall(r"`(\w+\.sh)`", guide)
    assert len(names) >= 9 and [name for name in names if not (ROOT / "findings" / name).is_file()] == []


def test_the_boards_of_draughts_on_all_pages_are_read():
    game, texts = registry.load("draughts").game, [page.read_text(encoding="utf-8") for page in PAGES]
    boards = [board for text in texts for board in re.findall(r"`([BW]:[BW]\S+)`", text)]
    assert len(boards) >= 2 and all(game.position(board).is_set_up for board in boards)


def test_shipped_nets_that_commands_name_are_there_and_those_without_are_listed():
    guide = (ROOT / "docs" / "guides" / "contestants.md").read_text(encoding="utf-8")
    texts = [page.read_text(encoding="utf-8") for page in PAGES if page.parent.name != "lab"]
    named = {game for text in texts for game in re.findall(r"\bbest\b[^`\n]*--game (\w+)", text)}
    assert len(named) >= 6 and [game for game in sorted(named) if "best" not in registry.load(game).nets] == []
    (listed,) = re.findall(r"a shipped net; (.*) have none", guide)
    without = {name for name in registry.NAMES if not registry.load(name).nets}
    words = {"nim": "Nim", "tictactoe": "tic-tac-toe"}
    boards_of_go = {name for name in without if re.fullmatch(r"go\d+", name)}
    assert [name for name in without - boards_of_go if words.get(name, f"`{name}`") not in listed] == []
    assert boards_of_go == {"go6", "go13", "go19"} and "Go on boards other than 5x5, 7x7 and 9x9" in listed


def made_smaller(program: str) -> str:
    for large, small in SMALLER.items():
        program = program.replace(large, small)
    return program


def programs(page: Path) -> list[str]:
    """The Python blocks of a page that are whole programs: those that import the library."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if block.startswith("import alphazero") or "\nimport alphazero" in block]


ONE_AFTER_THE_OTHER = """
import json, sys
from alphazero.training.parts import pace
pace.LAST_GATE_GAMES = 20
for page, program in json.load(sys.stdin):
    print(page, program, sep="\\n", flush=True)
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
"""


def test_the_programs_of_all_pages_run(tmp_path: Path):
    """In one process, since each would load torch anew; in an empty folder, with smaller numbers."""
    texts = [(name_of(page), program) for page in PAGES for program in programs(page)]
    whole = [text for text in texts if not any(other[1] != text[1] and other[1].startswith(text[1]) for other in texts)]
    smaller = [(page, made_smaller(program)) for page, program in whole]
    assert {page for page, _ in smaller} >= {"README.md", "docs/guides/networks.md", "docs/guides/resuming.md"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ONE_AFTER_THE_OTHER], input=json.dumps(smaller), cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}, capture_output=True, text=True,
        timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=name_of)
def test_a_tutorial_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As a notebook, from its first cell to its last, in an empty folder."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.source = made_smaller(cell.source)
    folder = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=folder).execute()
    last = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
    assert last.outputs, "the last cell shows a result"
    assert os.listdir(tmp_path), "a tutorial trains, so its run is here"
