"""The page with a die: the engine throws it, the list of moves shows it, and nobody chooses it in a game."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from alphazero.catalogue import registry
from alphazero.errors import IllegalAction, InputError
from alphazero.web.engine import Engine, Stage
from alphazero.web.message import question_of
from alphazero.web.searches import Stop
from tests.web.browser import choose_opponent, needs_chromium, page_at, status, wait_status
from tests.web.judging import call, needs_node

ROLL, HOLD = 0, 1
VIEW = "play"
NET = {"id": "given:0"}


@pytest.fixture(scope="module")
def engine() -> Engine:
    loaded = registry.load("pig")
    return Engine(Stage("pig", loaded, [loaded.make_net(loaded.game, {"blocks": 1, "channels": 8})], device="cpu"))


def ask(engine: Engine, kind: str, **fields: Any) -> dict[str, Any]:
    found = engine.quick[kind](None, question_of({"id": 1, "ask": kind, "game": "pig", **fields}))
    return json.loads(json.dumps(found, allow_nan=False))


def test_the_engine_throws_the_die_by_the_seed(engine):
    shown = [ask(engine, "roll", actions=[ROLL], seed=seed)["actions"] for seed in range(300)]
    assert all(actions[0] == ROLL and len(actions) == 2 for actions in shown)
    assert {actions[1] for actions in shown} == set(range(6))
    assert shown[:20] == [ask(engine, "roll", actions=[ROLL], seed=seed)["actions"] for seed in range(20)]
    assert ask(engine, "roll", actions=[ROLL, 4], seed=1)["actions"] == [ROLL, 4]  # no die is due


def test_a_position_tells_what_a_die_has_shown_and_whether_one_is_due(engine):
    found = ask(engine, "position", actions=[ROLL, 4, ROLL])
    assert (found["words"], found["rolled"], found["movers"]) == (
        ["roll", "5", "roll"],
        [False, True, False],
        [0, 0, 0],
    )
    assert found["view"]["dice"] and found["view"]["text"].startswith("player 1     0 + 5, rolls")
    assert [click["name"] for click in found["view"]["clicks"]] == list("123456")
    assert not ask(engine, "position", actions=[ROLL, 4])["view"]["dice"]
    tictactoe = engine.quick["position"](None, question_of({"id": 1, "ask": "position", "game": "tictactoe"}))
    assert "rolled" not in tictactoe and "dice" not in tictactoe["view"]


@pytest.mark.parametrize("kind", ["move", "analyse"])
def test_nobody_moves_where_a_die_is_due(engine, kind: str):
    question = question_of({"id": 1, "ask": kind, "game": "pig", "actions": [ROLL], "player": NET})
    with pytest.raises(IllegalAction, match="a die is due"):
        list(engine.searches[kind](None, question, Stop()))
    with pytest.raises(InputError):
        ask(engine, "policy", actions=[ROLL], player=NET)


def test_a_review_asks_about_choices_alone(engine):
    fields = {"actions": [ROLL, 5, ROLL, 5, HOLD], "player": NET, "simulations": 20}
    question = question_of({"id": 1, "ask": "review", "game": "pig", **fields})
    rows = [row for answer in engine.searches["review"](None, question, Stop()) for row in answer["rows"]]
    assert [row.get("rolled", False) for row in rows] == [False, True, False, True, False, False]
    assert all(0 <= row["value"] <= 1 for row in rows)


@needs_node
def test_nobody_is_blamed_for_what_a_die_shows():
    rows = [
        {"ply": 0, "mover": 0, "value": 0.6, "action": ROLL, "word": "roll", "results": []},
        {"ply": 1, "mover": 0, "value": 0.45, "action": 0, "word": "1", "results": [], "rolled": True},
        {"ply": 2, "mover": 1, "value": 0.3, "action": ROLL, "word": "roll", "results": []},
        {"ply": 3, "mover": 1, "value": 0.3},
    ]
    found = call("judge", rows, {"how": "in", "unit": "move"})
    assert [mistake["ply"] for mistake in found["mistakes"]] == [0]
    assert [side["judged"] for side in found["sides"]] == [1, 1]


@needs_chromium
def test_a_game_with_a_die_is_played(browser, address):
    with page_at(browser, address("pig")) as page:
        wait_status(page, "Your turn")
        choose_opponent(page, "random")
        buttons = page.locator(".stage .actions button")
        buttons.first.click()
        page.wait_for_selector(".move.rolled")
        assert re.fullmatch("rolled [1-6]", page.locator(".move.rolled").first.inner_text())
        wait_status(page, "Your turn")
        for _ in range(4):
            wait_status(page, "Your turn")
            count = page.locator(".move").count()
            buttons.last.click()
            page.wait_for_function("count => document.querySelectorAll('.move').length > count + 1", arg=count)
        page.get_by_role("button", name="Undo", exact=True).click()
        wait_status(page, "Your turn")
        page.locator(".move").nth(1).click()  # after one's first roll
        wait_status(page, "Looking back: You roll")
        assert not buttons.count() or buttons.first.is_disabled()
        page.get_by_role("button", name="Redo", exact=True).click()
        page.get_by_role("button", name="Analyse", exact=True).first.click()
        page.wait_for_selector(".analysis .lines tbody tr")
        assert status(page)
