"""The page with a game for three: a seat and a bar for each player, who has won, records with all names."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import alphazero as az
from alphazero.catalogue import registry
from alphazero.errors import InputError
from alphazero.game.kernels import kernels_of
from alphazero.game.record import line_of, parse_record
from alphazero.search.analysis import Analysis
from alphazero.search.mcts import QUIET
from alphazero.search.rollouts import Playouts
from alphazero.web.engine import Engine, Stage
from alphazero.web.message import question_of
from alphazero.web.searches import Stop, review
from tests.search.test_seats import Walk
from tests.web.browser import PHONE, choose_opponent, fits_phones, needs_chromium, page_at, status, wait_status
from tests.web.client import serving
from tests.web.judging import call, needs_node

VIEW = "play"
WON = [0, 1, 10, 6, 2, 14, 12]
"""The first player has the diagonal a1 b2 c3."""
NET = {"id": "given:0"}


@pytest.fixture(scope="module")
def engine() -> Engine:
    loaded = registry.load("tictacmo")
    return Engine(Stage("tictacmo", loaded, [loaded.make_net(loaded.game, {"blocks": 1, "channels": 8})], device="cpu"))


def ask(engine: Engine, kind: str, **fields: Any) -> dict[str, Any]:
    found = engine.quick[kind](None, question_of({"id": 1, "ask": kind, "game": "tictacmo", **fields}))
    return json.loads(json.dumps(found, allow_nan=False))


def search(engine: Engine, kind: str, **fields: Any) -> list[dict[str, Any]]:
    question = question_of({"id": 1, "ask": kind, "game": "tictacmo", **fields})
    return json.loads(json.dumps(list(engine.searches[kind](None, question, Stop())), allow_nan=False))


def test_a_position_says_who_has_won_and_what_each_player_gets(engine):
    assert ask(engine, "game")["seats"] == 3
    view = ask(engine, "position", actions=WON)["view"]
    assert view["winners"] == [0] and view["values"] == [1.0, -0.5, -0.5] and view["winning"] == [0, 6, 12]
    assert "values" not in ask(engine, "position", actions=WON[:-1])["view"]


def test_an_analysis_has_a_value_for_each_player(engine):
    (*_, report) = search(engine, "analyse", actions=WON[:-1], player={"id": "mcts"}, limit=60)
    assert report["proven"] and report["values"] == [1.0, -0.5, -0.5] and report["value"] == 1.0
    (*_, report) = search(engine, "analyse", actions=[0], player=NET, limit=40)
    assert len(report["values"]) == 3 and report["value"] == report["values"][1]
    assert ask(engine, "policy", actions=[0], player=NET)["policy"][0]["prior"] > 0


def test_a_review_judges_each_player_by_the_own_value(engine):
    answers = search(engine, "review", actions=WON, player={"id": "mcts"}, simulations=60)
    rows = [row for answer in answers for row in answer["rows"]]
    assert [row["mover"] for row in rows] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert all(row["value"] is None and len(row["values"]) == 3 for row in rows)
    assert rows[-2]["values"] == rows[-1]["values"] == [1.0, -0.5, -0.5]


@pytest.mark.slow
def test_a_review_with_dice_for_four_has_values_where_a_die_is_due():
    game = Walk()
    end = game.start()
    while not end.terminal:
        end = end.play(1)  # throws the coin, which shows its second side
    analysis = Analysis(kernels_of(game), QUIET, Playouts(kernels_of(game), 0))
    rows = [row for answer in review(end, analysis, 40, lambda at: [], Stop()) for row in answer["rows"]]
    assert all(len(row["values"]) == 4 for row in rows) and any(row.get("rolled") for row in rows)
    assert rows[-1]["values"] == list(end.results)


@needs_node
def test_a_move_costs_what_its_player_loses():
    rows = [
        {"ply": 0, "mover": 0, "value": None, "values": [0.2, 0, -0.2], "action": 0, "word": "a1", "results": []},
        {"ply": 1, "mover": 1, "value": None, "values": [0.2, 0.4, -0.6], "action": 1, "word": "b1", "results": []},
        {"ply": 2, "mover": 2, "value": None, "values": [0.8, -0.2, -0.6], "action": 2, "word": "c1", "results": []},
        {"ply": 3, "mover": 0, "value": None, "values": None},
    ]
    points = call("judge", rows, {"how": "in", "unit": "move"}, 3, {"size": 2, "unit": "coins"})
    assert "1.20 expected coins" in points["mistakes"][0]["sentence"]
    found = call("judge", rows, {"how": "in", "unit": "move"}, 3)
    assert [mistake["ply"] for mistake in found["mistakes"]] == [1] and "0.60" in found["mistakes"][0]["sentence"]
    assert [side["judged"] for side in found["sides"]] == [1, 1, 0]


def test_a_record_names_all_players_and_is_loaded_again(engine):
    names = {"first": "human", "second": "net", "others": ["random"]}
    for actions, more, result, forfeit in (
        (WON, {}, "1-0", ""), (WON[:3], {}, "*", ""), (WON[:3], {"resigned": 0}, "0-1", "human: resigns"),
        (WON[:3], {"resigned": 2}, "1/2-1/2", "random: resigns"),
    ):  # fmt: skip
        text = ask(engine, "record", actions=actions, **names, **more)["text"]
        record = parse_record(text.encode(), "the file")
        assert record.contestants == ("human", "net", "random")
        assert (record.result, record.forfeit) == (result, forfeit)
        assert [record.player_at(seat, engine.stage.loaded.game) for seat in range(3)] == ["human", "net", "random"]
        assert ask(engine, "load", text=text)["actions"] == actions
    for wrong in ({"others": []}, {"others": ["a", "b"]}, {"resigned": 3}):
        with pytest.raises(InputError):
            ask(engine, "record", actions=WON, **{**names, **wrong})


def test_a_record_of_a_pair_says_which_player_the_first_is(engine):
    match = az.match("random", "greedy", "tictacmo", games=6)
    for record, player in zip(match.games, (1, 1, 2, 2, 3, 3), strict=True):
        loaded = ask(engine, "load", text=line_of(record))
        assert loaded["contestants"] == [f"{record.contestants[0]} (player {player})", record.contestants[1]]


@needs_chromium
def test_three_sit_at_one_page(browser, address):
    with page_at(browser, address("tictacmo"), PHONE) as page:
        wait_status(page, "Your turn")
        assert page.locator(".seat").count() == 3
        for seat in (1, 2):
            choose_opponent(page, "human", seat)
        for ply, cell in enumerate(WON):
            name = ("First", "Second", "Third")[ply % 3]
            wait_status(page, f"{name} player to move")
            page.locator(".stage .cell").nth(cell).click()
        wait_status(page, "First player has won")
        page.get_by_role("button", name="Undo", exact=True).click()
        wait_status(page, "First player to move")
        choose_opponent(page, "random", 1)
        choose_opponent(page, "random", 2)
        page.get_by_role("button", name="Resign", exact=True).click()
        assert status(page) == "You have resigned. The others share the win."
        page.get_by_role("button", name="Analyse", exact=True).first.click()
        page.wait_for_selector(".analysis .lines tbody tr")
        page.wait_for_function(
            "() => document.querySelectorAll('.bar-text')[2]?.textContent.startsWith('Third player: ')"
        )
        assert page.locator(".bar").count() == 3 and fits_phones(page)


@needs_chromium
def test_points_of_three_are_shown_as_points(browser, tmp_path):
    source = tmp_path / "coins.py"
    source.write_text(
        "from alphazero.game import Score\nfrom games.tictacmo.game import TicTacMo\n"
        "class Coins(TicTacMo):\n    name, score = 'coins', Score(-1, 4, 'coins')\n"
    )
    played = ".".join(map(str, WON[:-1]))
    with (
        serving(str(source)) as server,
        page_at(browser, f"{server.address}#/analyse?game={source}&actions={played}") as page,
    ):
        page.locator(".desk select").first.select_option("mcts")
        page.locator(".bar-text", has_text=re.compile(r"First player: \+(0\.9\d|1\.00) expected coins")).wait_for()
        assert re.fullmatch(
            r"Second player: .0\.(4\d|50) expected coins", page.locator(".bar-text").nth(1).inner_text()
        )
        assert "Expected coins of each player" in page.locator(".chart-card").inner_text()
