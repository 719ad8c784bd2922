"""The nets that are shipped: each loads, is what its card says, and is as good as its card says."""

import json
from pathlib import Path

import pytest

import alphazero as az
from alphazero.catalogue import registry
from alphazero.matches.judge import Labelled
from alphazero.players.contestants import make_player
from alphazero.storage.checkpoint import load_checkpoint, read_card
from games.connect4.benchmark import load_frozen

FOLDER = Path(__file__).resolve().parents[2] / "pretrained"
NETS = sorted(FOLDER.glob("*/*.safetensors"))
MAX_BYTES = 6_000_000
"""Of a game's nets together."""
SHARE = 0.005
"""Positions that may turn out otherwise on another processor."""


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_connect4_has_a_ladder_of_three_strengths():
    ladder = [read_card(FOLDER / "connect4" / f"{name}.safetensors") for name in ("beginner", "club", "best")]
    figures = [card["benchmark"]["0"]["pons_accuracy"] for card in ladder]
    assert figures == sorted(figures) and figures[0] < figures[-1] - 0.05
    ratings = [card["rating"] for card in ladder]
    assert [rating["elo"] for rating in ratings] == sorted(rating["elo"] for rating in ratings)
    assert len({rating["above"] for rating in ratings}) == 1, "ratings are above the same opponent"


@pytest.mark.parametrize("folder", sorted({path.parent for path in NETS}), ids=lambda path: path.name)
def test_the_nets_of_a_game_are_small(folder):
    assert sum(path.stat().st_size for path in folder.iterdir()) <= MAX_BYTES


@pytest.mark.parametrize("path", NETS, ids=name_of)
def test_a_card_says_where_its_net_comes_from(path):
    _, card = load_checkpoint(path)
    assert card["game"] == path.parent.name and card["description"]
    assert card["command"].startswith(f"python main.py --game {card['game']} --preset ")
    assert card["data"]["source"] == "self-play" and min(card["data"]["games"], card["data"]["positions"]) > 0
    assert 0 < card["cpu_hours"] <= card["hours"] * 2 * 1.05 and card["hardware"], "all were made on two cores"
    for match in card["matches"]:
        low, high = match["score_interval"]
        assert match["games"] == match["wins"] + match["draws"] + match["losses"] and low <= match["score"] <= high


def has_benchmark(path: Path) -> bool:
    return registry.load(path.parent.name).make_benchmark is not None


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if path.parent.name == "dots_and_boxes" else pytest.mark.slow)
        for path in NETS
        if not has_benchmark(path)
    ],
    ids=name_of,
)
def test_a_net_plays_as_well_as_its_card_says(path):
    """20 games against the same opponent: fewer than the lower end of its interval, by four games, would be a fault."""
    card = json.loads(path.with_suffix(".json").read_text())
    promised = next(match for match in card["matches"] if match["opponent"] == "greedy")
    settings = {"simulations": promised["simulations"]}
    result = az.match(str(path), "greedy", card["game"], games=20, seed=1, **settings)
    assert result.score > promised["score_interval"][0] - 0.2


LARGE = sorted(FOLDER.glob("connect4/*.safetensors"))
"""Nets that take up to a minute for all positions: of every eighth their figures are those of all within 3 percent."""


@pytest.mark.parametrize(
    ("path", "step"),
    [(path, 1) for path in NETS if has_benchmark(path) and path not in LARGE]
    + [pytest.param(path, step, marks=pytest.mark.slow if step == 1 else ()) for path in LARGE for step in (8, 1)],
    ids=lambda value: name_of(value) if isinstance(value, Path) else str(value),
)
def test_a_net_is_as_good_as_its_card_says(path: Path, step: int, monkeypatch: pytest.MonkeyPatch):
    """Processors differ, as bf16 does from float32: half a percent of the positions may turn out otherwise.

    Then a mean number of discs changes by that share of ten discs at most. In 2048 another move leads to another game:
    its figures are means of 64 games, with the errors of these.
    """
    card = json.loads(path.with_suffix(".json").read_text())
    loaded = registry.load(card["game"])
    assert loaded.make_benchmark is not None
    if step > 1:
        some = Labelled(**{name: rows[::step] for name, rows in vars(load_frozen()).items()})
        monkeypatch.setattr("games.connect4.benchmark.load_frozen", lambda: some)
    player = make_player(str(path), loaded, seed=0, threads=2, simulations=0)
    measured = loaded.make_benchmark(loaded.game)(player)
    promised = card["benchmark"]["0"]
    assert measured.keys() == promised.keys()
    share = SHARE if step == 1 else 0.03
    for name, figure in promised.items():
        most = 10 * share if name.endswith("disc_loss") else share
        if card["game"] == "2048":
            most = 0.4 * promised["mean_points"] if name == "mean_points" else 0.1
        assert measured[name] == pytest.approx(figure, abs=most), name
