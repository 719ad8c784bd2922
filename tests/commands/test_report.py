"""`alphazero report`: what the page of a run shows, that it loads nothing, and what a damaged run gets."""

from __future__ import annotations

import base64
import json
import re
import shutil
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from alphazero.commands.doctor import report
from alphazero.commands.shared import run_command
from alphazero.commands.train import main as train
from alphazero.errors import shorten_path
from alphazero.storage.files import write_sealed_json
from alphazero.storage.metrics_file import read_metrics
from tests.storage.resealing import without_seals
from tests.storage.small_run import flip

TINY = [
    "--game", "tictactoe", "--net.blocks", "1", "--net.channels", "8", "--search.num-simulations", "4",
    "--self-play.games-per-generation", "8", "--self-play.num-slots", "4", "--gate.games", "4",
    "--gate.simulations", "2", "--evaluation.games", "4", "--evaluation.opponents", "random", "greedy",
    "--evaluation.simulations", "3", "--threads", "1", "--generations", "2",
]  # fmt: skip
PICTURES = 11
"""On the page of a game without a benchmark."""
EVER = ("generation", "seconds", "games", "positions", "promoted")
"""What every line of metrics has had from the beginning."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A run of two generations."""
    path = tmp_path_factory.mktemp("runs") / "tiny-1"
    assert run_command(train, [*TINY, "--run", str(path)]) == 0
    return path


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of what the page is made from."""
    return copy_of(finished, tmp_path / "copied-1")


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing them takes seconds."""
    monkeypatch.setattr("alphazero.training.report.has_matplotlib", lambda: False)


def copy_of(run: Path, path: Path) -> Path:
    path.mkdir()
    for name in ("config.json", "metrics.jsonl", "evaluation.json"):
        shutil.copy(run / name, path)
    return path


def change_json(path: Path, change: Callable) -> None:
    changed = change({name: x for name, x in json.loads(path.read_text()).items() if name != "evaluation_sha256"})
    if path.name == "config.json" and isinstance(changed, dict):
        write_sealed_json(path, changed, "config_sha256")
    else:
        path.write_text(json.dumps(changed))


def change_lines(run: Path, change: Callable[[dict], dict]) -> None:
    lines = without_seals((run / "metrics.jsonl").read_text()).splitlines()
    (run / "metrics.jsonl").write_text("".join(json.dumps(change(json.loads(line))) + "\n" for line in lines))


def with_figures(*figures: dict) -> Callable[[dict], dict]:
    """Adds figures to one line after the other."""
    rest = iter(figures)
    return lambda line: line | next(rest)


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, text, the rows of tables; all tags must be closed."""

    def __init__(self, source: str):
        super().__init__()
        self.source = source
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(source)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if self.open[-1:] == ["td"]:
            self.rows[-1].append(data)
        if data.strip() and "style" not in self.open:
            self.text.append(data)

    def after(self, heading: str) -> str:
        return self.text[self.text.index(heading) + 1]

    def pictures(self) -> dict[str, ElementTree.Element]:
        """The pictures by their titles."""
        found = {}
        for tag, attributes in self.elements:
            if tag == "img":
                kind, content = attributes["src"].split(",")
                assert kind == "data:image/svg+xml;base64" and attributes["alt"] not in found
                found[attributes["alt"]] = ElementTree.fromstring(base64.b64decode(content, validate=True))
        return found


def page_of(run: Path) -> Page:
    assert run_command(report, [str(run)]) == 0
    return Page((run / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(finished, tmp_path_factory) -> Page:
    """The page of the run as it is."""
    return page_of(copy_of(finished, tmp_path_factory.mktemp("pages") / "copied-1"))


# --- the page --------------------------------------------------------------------------------------------------------


def test_the_page_tells_of_the_whole_run(run, capsys):
    page = page_of(run)
    assert capsys.readouterr().out == f"{run / 'report.html'} is written. Open it in a browser.\n"
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    best = max((line["generation"] for line in lines if line["promoted"]), default=0)
    games, positions = (sum(line[name] for line in lines) for name in ("games", "positions"))
    assert page.text[:2] == ["copied-1", "tictactoe: copied-1"]  # of the tab, and on the page
    assert page.text[2].startswith("2 generations in 0.") and page.text[2].endswith(
        f" minutes, {games} games, {positions} positions. Best net: generation {best}."
    )
    assert len(page.pictures()) == PICTURES
    evaluation = json.loads((run / "evaluation.json").read_text())
    assert f"Matches of generation {best}" in page.text
    for match in evaluation["matches"]:
        low, high = match["score_interval"]
        score = [f"{match['score']:.1%}", f"{low:.1%} to {high:.1%}"]
        counts = [str(match[name]) for name in ("wins", "draws", "losses", "simulations")]
        assert [match["opponent"], *score, *counts] in page.rows and counts[-1] == "3"
    assert {match["opponent"] for match in evaluation["matches"]} == {"random", "greedy"}


@pytest.mark.usefixtures("no_pictures")
def test_the_page_has_all_settings_and_all_figures_of_the_last_generation(run):
    rows = page_of(run).rows
    for setting in (
        ["game", '"tictactoe"'], ["seed", "0"], ["settings.net.channels", "8"], ["settings.gate.enabled", "true"],
        ["settings.self_play.games_per_generation", "8"], ["settings.evaluation.opponents", '["random", "greedy"]'],
    ):  # fmt: skip
        assert setting in rows
    last = read_metrics(run)[-1]
    names = [row[0] for row in rows if len(row) == 2]
    assert {name.replace("_", " ") for name in last} <= set(names)
    assert ["generation", "2"] in rows and ["policy loss", f"{last['policy_loss']:,.5g}"] in rows


def test_the_page_loads_nothing_and_runs_nothing(page):
    allowed = {"html", "head", "meta", "title", "style", "body", "div", "img", "h1", "h2", "p", "ul", "li"}
    assert {tag for tag, _ in page.elements} <= allowed | {"table", "tr", "th", "td"}
    attributes = {name for _, found in page.elements for name in found}
    assert attributes <= {"lang", "charset", "class", "alt", "src"}
    assert all(found["src"].startswith("data:") for _, found in page.elements if "src" in found)
    assert not re.search(r"https?:|url\(|@import|href\s*=", page.source, re.IGNORECASE)


def test_the_pictures_load_nothing_and_run_nothing(page):
    for picture in page.pictures().values():
        assert picture.tag == "{http://www.w3.org/2000/svg}svg"
        for element in picture.iter():
            assert not str(element.tag).endswith(("script", "image", "foreignObject"))
            links = [value for name, value in element.attrib.items() if name.endswith(("href", "src"))]
            assert all(link.startswith("#") for link in links)
            assert all(link.startswith("#") for link in re.findall(r"url\(([^)]*)", " ".join(element.attrib.values())))
            assert "@import" not in (element.text or "")


def test_names_and_texts_from_the_files_are_shown_and_not_obeyed(finished, tmp_path):
    """Whoever sends you a run does not get to run anything in your browser."""
    evil = "<script>alert('1')</script>"
    run = copy_of(finished, tmp_path / '<script>"&amp;')
    change_json(
        run / "config.json",
        lambda saved: saved | {"game": evil, "settings": {f"{evil} name": f"{evil} value"}},
    )
    change_json(
        run / "evaluation.json",
        lambda evaluation: {
            "generation": 1,
            "benchmark": {},
            "matches": [match | {"opponent": f"{evil} {i}"} for i, match in enumerate(evaluation["matches"])],
        },
    )
    name = f'"><img src=x onerror=alert(1)>{evil}'
    change_lines(run, lambda line: line | {"benchmark_figures": [name], name: 0.5, f"{evil} figure": 1})
    page = page_of(run)
    assert "<script" not in page.source.lower() and "<img src=x" not in page.source
    assert not {"script", "b"} & {tag for tag, _ in page.elements}
    assert all(found.keys() <= {"alt", "src"} for tag, found in page.elements if tag == "img")
    assert page.text[:2] == ['<script>"&amp;', f'{evil}: <script>"&amp;']
    assert [f"settings.{evil} name", json.dumps(f"{evil} value")] in page.rows
    assert [f"{evil} figure", "1"] in page.rows
    assert {f"{evil} 0", f"{evil} 1"} <= {row[0] for row in page.rows if row}
    assert name in page.pictures() and len(page.pictures()) == PICTURES + 1


# --- runs of every kind ----------------------------------------------------------------------------------------------


def test_benchmark_figures_have_pictures_and_the_first_one_a_sentence(page, run):
    assert "now" not in page.text[2]  # tic-tac-toe has none
    names = ["planted_accuracy", "entropy of $\\nothing$"]  # which is no formula
    figures = {"benchmark_figures": names, names[1]: 1}
    change_lines(run, with_figures(figures | {names[0]: 0.75}, figures | {names[0]: 0.25}))
    page = page_of(run)
    assert page.text[2].endswith("Planted accuracy: 0.250 now; the highest was 0.750, in generation 1.")
    assert list(page.pictures())[:2] == ["planted accuracy", "entropy of $\\nothing$"]
    assert len(page.pictures()) == PICTURES + 2


@pytest.mark.parametrize(("seconds", "unit"), [(60.0, "minutes"), (20_000.0, "hours")])
def test_long_runs_are_drawn_in_hours(run, seconds, unit):
    change_lines(run, lambda line: line | {"seconds": seconds * line["generation"]})
    sources = [found["src"].partition(",")[2] for tag, found in page_of(run).elements if tag == "img"]
    pictures = [base64.b64decode(source).decode() for source in sources]
    drawn = [found for picture in pictures for found in re.findall("<!-- (minutes|hours) -->", picture)]
    assert drawn == [unit] * PICTURES


@pytest.mark.usefixtures("no_pictures")
def test_warnings_are_told_with_their_generation_once(run):
    fine = {
        "sample_reuse": 2, "distinct_positions": 0.5, "policy_entropy": 1, "policy_surprise": 0.5,
        "value_calibration_error": 0.1, "drawn_positions": 0.1, "generations_since_promotion": 0,
    }  # fmt: skip
    change_lines(run, lambda line: line | fine)
    assert page_of(run).after("Warnings") == "None."
    change_lines(run, lambda line: line | {"sample_reuse": 50})
    page = page_of(run)
    assert page.after("Warnings").startswith("generation 1: sample reuse is 50: ")
    assert [tag for tag, _ in page.elements].count("li") == 1


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("content", [b'{"generation": 9, "sec', b"\xff\xfe\x00\n", b"[1, 2]\n", b'{"seconds": 1}\n'])
def test_damaged_lines_are_left_out_and_this_is_said(run, content, caplog):
    whole = page_of(run).rows
    with open(run / "metrics.jsonl", "ab") as file:
        file.write(content)
    assert page_of(run).rows == whole
    assert "metrics.jsonl has damaged lines (1), which are left out" in caplog.text


# --- what is refused -------------------------------------------------------------------------------------------------


def fails(capsys, *argv: str) -> str:
    """The one error on stderr of a command that must fail with exit code 2; damaged lines may be said before it."""
    capsys.readouterr()
    assert run_command(report, [str(word) for word in argv]) == 2
    output, said = capsys.readouterr()
    *warnings, error = said.splitlines()
    assert output == "" and error.startswith("error: ")
    assert all("which are left out" in warning for warning in warnings) and len(warnings) < 2
    return error


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("missing", "does not exist"), ("empty", "is not a run folder: it has no config.json"),
        ("x" * 300, "does not exist"), (".", "is not a run folder"),
    ],
    ids=["missing", "empty", "long", "here"],
)  # fmt: skip
def test_a_folder_without_a_run_is_refused(name, why, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert f"{shorten_path(name)} {why}" in fails(capsys, name)
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def planted(**figures: object) -> Callable[[Path], None]:
    """Changes figures in all lines; None takes one out."""
    new = {name: x for name, x in figures.items() if x is not None}
    return lambda run: change_lines(
        run, lambda line: {name: x for name, x in line.items() if name not in figures} | new
    )


def without_score(run: Path) -> None:
    (match, *others) = json.loads((run / "evaluation.json").read_text())["matches"]
    del match["score"]
    change_json(run / "evaluation.json", lambda found: found | {"matches": [match, *others]})


def cut_off(run: Path) -> None:
    (run / "config.json").write_bytes((run / "config.json").read_bytes()[:-20])


def flipped(run: Path) -> None:
    """A bit of the first digit of a score: its value is another one then."""
    path = run / "evaluation.json"
    flip(path, 8 * path.read_bytes().index(b'"score": ') + 8 * 9)


DAMAGE = {
    "no generation finished": (lambda run: (run / "metrics.jsonl").unlink(), "has no valid line"),
    "a line without games": (planted(games=None), "metrics.jsonl, generation 1: games is missing"),
    "text for a drawn figure": (planted(policy_loss="low"), "has no valid line"),
    "benchmark without its figure": (planted(benchmark_figures=["nowhere"]), "has no valid line"),
    "settings cut off": (cut_off, "config.json is not valid JSON"),
    "a flipped bit of the evaluation": (flipped, "evaluation.json is damaged"),
    "a match without score": (without_score, "evaluation.json: "),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_run_is_refused_in_one_sentence(damage, run, capsys):
    damaging, words = DAMAGE[damage]
    damaging(run)
    assert words in fails(capsys, run)
    assert not (run / "report.html").exists()


@pytest.mark.parametrize("output", ["config.json", "page", "."])
def test_a_page_that_is_not_html_is_refused_so_that_no_file_of_the_run_is_lost(output, run, capsys):
    before = (run / "config.json").read_bytes()
    assert "--output takes a file that ends in .html" in fails(capsys, run, "--output", run / output)
    assert (run / "config.json").read_bytes() == before


def test_without_matplotlib_the_page_says_how_to_get_pictures(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert run_command(report, [str(run)]) == 0
    page = (run / "report.html").read_text()
    assert "matplotlib is missing: pip install" in page and "<img" not in page and "Settings" in page
