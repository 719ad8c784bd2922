"""The pictures of the README and the documents are those that the program draws."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from alphazero.catalogue import registry
from benchmarks import pictures

FOLDER = pictures.ROOT / "docs" / "pictures"


def test_every_game_has_a_picture_of_its_own():
    assert sorted(pictures.POSITIONS) == sorted(registry.NAMES)


@pytest.mark.parametrize("name", sorted(registry.NAMES))
def test_the_pictures_of_boards_are_up_to_date(name: str):
    moves = pictures.POSITIONS[name]
    svg = registry.load(name).game.position(moves).svg()
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == svg, "run python -m benchmarks.pictures"


def test_the_chart_has_a_line_for_each_run(tmp_path: Path):
    pytest.importorskip("matplotlib")
    pictures.draw_accuracy(tmp_path / "chart.svg")
    for path in (tmp_path / "chart.svg", FOLDER / "connect4_accuracy.svg"):
        words = [element.text for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
        assert {"quick, AVX2", "standard, AVX2", "smaller net, AVX2", "standard, AMX"} <= set(words)
        assert {"90.3%", "91.8%", "92.8%", "95.4%"} <= set(words)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("backgammon_points", {"points a game", "as strong as GNU Backgammon at 0 plies", "the search of now"}),
        ("go7_score", {"score, %", "as strong as GNU Go", "100 simulations", "400 simulations"}),
        ("go9_score", {"score, %", "as strong as GNU Go", "100 simulations", "400 simulations"}),
    ],
)
def test_a_chart_of_strength_says_what_it_shows(name: str, shown: set[str], tmp_path: Path):
    pytest.importorskip("matplotlib")
    pictures.draw_strength(tmp_path / f"{name}.svg")
    for path in (tmp_path / f"{name}.svg", FOLDER / f"{name}.svg"):
        words = {element.text for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")}
        assert shown | {"minutes of training on one core"} <= words
