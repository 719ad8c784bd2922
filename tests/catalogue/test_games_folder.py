"""The folder of games: each declares its parts in a SPEC, and a broken one breaks no other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from alphazero.errors import GameError
from tests.catalogue.two_plies import ROOT, SPEC, source, write, write_game

RUN_IN_A_COPY = """
import sys
from alphazero.errors import InputError
from alphazero.catalogue import registry
for name in sys.argv[1:]:
    try:
        loaded = registry.load(name)
        print(name, loaded.name, loaded.game.position([0, 0]).outcome if name != "tictactoe" else len(loaded.presets()))
    except InputError as error:
        print(name, error)
"""


@pytest.fixture
def copied_tree(tmp_path: Path) -> Path:
    """The library and one game, elsewhere."""
    shutil.copytree(ROOT / "alphazero", tmp_path / "alphazero", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "games").mkdir()
    shutil.copy(ROOT / "games" / "__init__.py", tmp_path / "games")
    shutil.copytree(ROOT / "games" / "tictactoe", tmp_path / "games" / "tictactoe")
    return tmp_path


def load_in(tree: Path, *names: str, before: Path | None = None) -> list[str]:
    """What a process that runs elsewhere prints for each name; the folder `before` comes first on its path."""
    path = os.pathsep.join(map(str, [before, tree] if before else [tree]))
    result = subprocess.run(
        [sys.executable, "-c", RUN_IN_A_COPY, *names], cwd="/", env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return result.stdout.splitlines()


# a folder: its __init__.py, the name that is asked for, and what is said of it
BROKEN = {
    "no_spec": ("x = 1\n", "no_spec", "must declare its games, as SPEC = GameSpec("),
    "syntax": ("def\n", "syntax", "SyntaxError"),
    "error": ("1 / 0\n", "error", "ZeroDivisionError"),
    "ultimate": (SPEC.format(games='"tictactoe": ".game:A"', more=""), "ultimate", "declares 'tictactoe', which"),
    "no_text": (SPEC.format(games='"a": "game.A"', more=""), "a", "games['a']=\"game.A\" in the SPEC of"),
    "no_map": ("from alphazero.game.spec import GameSpec\nSPEC = GameSpec(['a'])\n", "no_map", "must map names"),
    "no_module": (SPEC.format(games='"b": ".rules:A"', more=""), "b", "games['b']=\".rules:A\" in the SPEC of"),
    "no_class": (SPEC.format(games='"c": ".game:Nothing"', more=""), "c", "no function or class '.game:Nothing'"),
    "no_game": (SPEC.format(games='"d": ".game:init"', more=""), "d", "must be a Game class"),
    "other_name": (SPEC.format(games='"two": ".game:Other"', more=""), "two", 'name = "two", not "Other"'),
}


def test_a_new_folder_of_games_needs_no_reinstall_and_a_broken_one_breaks_no_other(copied_tree: Path):
    write_game(copied_tree / "games" / "mine")
    for folder, (text, _, _) in BROKEN.items():
        write(copied_tree / "games" / folder / "game.py", source("Other"))
        write(copied_tree / "games" / folder / "__init__.py", text)
    names = [name for _, name, _ in BROKEN.values()]
    mine, tictactoe, unknown, *said = load_in(copied_tree, "TwoPlies", "tictactoe", "x", *names)
    assert (mine, tictactoe) == ("TwoPlies TwoPlies -1", "tictactoe tictactoe 3")
    for line, (folder, (_, name, words)) in zip(said, BROKEN.items(), strict=True):
        assert words in line and str(copied_tree / "games" / folder) in line
        assert name != folder or words in unknown


def test_a_part_that_is_not_there_is_named_when_it_is_wanted(importable: Path):
    write_game(importable / "a_package", more=', presets=".preset:presets"')
    loaded = registry.load("a_package.game")
    words = r'presets=".preset:presets" in the SPEC of .*a_package/__init__.py cannot be used .*a_package.preset'
    with pytest.raises(GameError, match=words):
        loaded.presets()


# another package or module called games: its files
OTHERS = {
    "package": {"games/__init__.py": "mine = 1\n", "games/chess.py": "mine = 2\n"},
    "folder": {"games/chess.py": "mine = 2\n"},
    "module": {"games.py": "mine = 1\n"},
}


@pytest.mark.parametrize(
    "first", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["theirs first", "ours first"]
)
@pytest.mark.parametrize(
    "files",
    [
        pytest.param(files, id=name, marks=pytest.mark.slow if name != "package" else ())
        for name, files in OTHERS.items()
    ],
)
def test_another_package_called_games_hides_nothing(copied_tree: Path, tmp_path: Path, files: dict, first: bool):
    other = tmp_path / "other"
    for name, text in files.items():
        write(other / name, text)
    write(other / "theirs.py", source() + ("import games.chess\n" if "games/chess.py" in files else ""))
    trees = (copied_tree, other) if first else (other, copied_tree)
    assert load_in(trees[0], "tictactoe", str(other / "theirs.py"), before=trees[1]) == [
        "tictactoe tictactoe 3",
        f"{other / 'theirs.py'} TwoPlies -1",
    ]


def test_a_game_that_is_hidden_says_by_what(copied_tree: Path, tmp_path: Path):
    write(tmp_path / "other" / "games" / "__init__.py", "")
    hiding = write(tmp_path / "other" / "games" / "tictactoe" / "__init__.py", "")
    (line,) = load_in(copied_tree, "tictactoe", before=tmp_path / "other")
    assert f"is hidden by {hiding}: rename one of the two" in line
