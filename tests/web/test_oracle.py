"""Exact results, the judgement of moves, and the review of a game."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict

import pytest

from alphazero.catalogue import registry
from alphazero.errors import GameError, InputError
from alphazero.game.spec import ExactResult, Oracle
from alphazero.web.engine import Engine, Stage
from alphazero.web.message import question_of
from alphazero.web.searches import Stop
from alphazero.web.viewer import Viewer
from tests.search.searches import ThreadedNet
from tests.web.judging import call, needs_node


def oracle_of(name: str) -> Oracle:
    loaded = registry.load(name)
    return loaded.make_oracle(loaded.game)


def test_an_oracle_that_answers_in_words_is_refused():
    position = registry.load("tictactoe").game.start()
    with pytest.raises(GameError, match="the oracle of tictactoe must map actions to ExactResult"):
        Oracle(lambda _: {0: "wins in 5"}).results(position)


WORDS = {
    ExactResult(1, 3): "wins in 3 moves",
    ExactResult(1, 1): "wins in 1 move",
    ExactResult(-1, 18): "loses in 18 moves",
    ExactResult(0): "draw",
    ExactResult(-1): "loses",
    ExactResult(0.0612): "scores 53.06%",
}


def test_results_have_words():
    oracle, othello = Oracle(lambda _: {}), oracle_of("othello")
    assert {result: oracle.words(result) for result in WORDS} == WORDS
    assert [othello.words(ExactResult(1, discs)) for discs in (1, 12)] == ["wins by 1 disc", "wins by 12 discs"]


@needs_node
def test_the_page_has_the_same_words():
    for oracle in (oracle_of("connect4"), oracle_of("othello")):
        said = {"how": oracle.how, "unit": oracle.unit}
        assert [call("wordsOf", asdict(result), said) for result in WORDS] == [oracle.words(one) for one in WORDS]


def judge(rows: list[dict]) -> dict:
    return call("judge", rows, {"how": "in", "unit": "move"})


def row(ply: int, action: int | None, results: list[tuple], value: float | None = None) -> dict:
    """A position of a review, whose results are (action, outcome, distance)."""
    given = [dict(zip(("action", "outcome", "distance"), result, strict=True)) for result in results]
    played = {} if action is None else {"action": action, "word": f"m{action}", "results": given}
    return {"ply": ply, "mover": ply % 2, "value": value, **played}


@needs_node
def test_moves_are_judged_by_exact_results():
    results = [(3, 1, 5), (2, 1, 7), (1, 0, None), (0, -1, 9)]
    rows = [row(2 * i, action, results) for i, action in enumerate((3, 2, 1, 0))]
    found = judge([*rows, row(8, None, [])])
    assert found["sides"][0] == {"right": 2, "perfect": 1, "known": 4, "lost": 0, "judged": 0}
    assert [(mistake["ply"], mistake["word"], mistake["sentence"]) for mistake in found["mistakes"]] == [
        (4, "m1", "turns a win into a draw: draw; the best move wins in 5 moves"),
        (6, "m0", "turns a win into a loss: loses in 9 moves; the best move wins in 5 moves"),
    ]


@needs_node
def test_moves_are_judged_by_the_search_where_nobody_knows():
    """Values are those of the first player: 0.5, then the first one gives away 0.2, then the second one 0.05."""
    found = judge([row(0, 1, [], 0.5), row(1, 2, [], 0.3), row(2, 3, [(3, 1, 2)], 0.35), row(3, None, [], 1.0)])
    first, second = found["sides"]
    assert (first["known"], first["judged"], second["judged"]) == (1, 2, 1)
    assert first["lost"] == pytest.approx(0.1) and second["lost"] == pytest.approx(0.05)
    (mistake,) = found["mistakes"]
    assert mistake["ply"] == 0 and mistake["sentence"] == "gives away 20 percentage points of expected score"


def review(game: str, moves: str, player: dict | None, simulations: int = 30) -> list[dict]:
    engine = Engine(Stage(game, registry.load(game), device="cpu"))
    fields = {"id": 1, "ask": "review", "game": game, "moves": moves, "simulations": simulations}
    question = question_of(fields if player is None else {**fields, "player": player})
    answers = json.loads(json.dumps(list(engine.searches["review"](object(), question, Stop())), allow_nan=False))
    assert [answer["more"] for answer in answers] == [True] * (len(answers) - 1) + [False]
    assert {answer["of"] for answer in answers} == {len(answers)}
    return [row for answer in answers for row in answer["rows"]]


@needs_node
def test_a_review_finds_the_mistakes_by_the_oracle():
    """The first player wins in the middle alone, and begins with 1; then nobody blocks."""
    rows = review("connect4", "1212121", None)
    found = judge(rows)
    assert [row["ply"] for row in rows] == list(range(8)) and rows[-1]["value"] == 1.0
    mistakes = {mistake["ply"]: mistake for mistake in found["mistakes"]}
    assert all("turns a" in mistake["sentence"] for mistake in mistakes.values())
    assert 0 in mistakes, "the first player wins only in the middle"
    for player, side in enumerate(found["sides"]):
        wrong = sum(mistake["mover"] == player for mistake in mistakes.values())
        assert side["known"] - side["right"] == wrong and side["known"] == (4, 3)[player]


@needs_node
def test_a_review_without_an_oracle_goes_by_a_search():
    rows = review("tictactoe", "a1 b2 b1 a2 c1", {"id": "mcts"}, 400)
    found = judge(rows)
    (mistake,) = [mistake for mistake in found["mistakes"] if mistake["ply"] == 3]
    assert mistake["mover"] == 1 and "gives away" in mistake["sentence"], "c1 was to be blocked"
    assert rows[3]["value"] < 1 == rows[4]["value"] == rows[5]["value"]
    assert found["sides"][0]["known"] == 0 and found["sides"][1]["lost"] > found["sides"][0]["lost"]


def test_no_row_of_a_review_is_lost_where_the_connection_is_slow():
    async def outbox() -> dict:
        viewer = Viewer(None, None, None)  # type: ignore[arg-type]
        for answer in ({"rows": [1], "more": True}, {"rows": [2], "more": False}):
            viewer._put(7, answer)
        return viewer._outbox

    assert asyncio.run(outbox()) == {7: {"rows": [1, 2], "more": False}}


def test_a_review_runs_its_net_on_one_thread():
    """As all searches of single positions do: more are slower for them."""
    net = ThreadedNet()
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), [net], device="cpu"))
    fields = {"game": "tictactoe", "actions": [4, 0, 1], "player": {"id": "given:0"}, "simulations": 9}
    question = question_of({"id": 1, "ask": "review", **fields})
    assert len(list(engine.searches["review"](object(), question, Stop()))) == 4
    assert net.used == {1} and net.threads == 2


def test_a_game_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("alphazero.web.searches.MOST_PLIES", 3)
    assert len(review("tictactoe", "a1 b2 c3", None)) == 4
    with pytest.raises(InputError, match="more than 3 plies is too long"):
        review("tictactoe", "a1 b2 c3 a2", None)
