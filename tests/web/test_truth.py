"""Exact results, the judgement of moves, and the review of a game."""

from __future__ import annotations

import json

import pytest

from alphazero.errors import InputError
from alphazero.game import registry
from alphazero.web.engine import Engine, Stage
from alphazero.web.message import Question
from alphazero.web.searches import Stop
from alphazero.web.truth import judge_by_truth, results_of
from tests.search.searches import ThreadedNet


def truth_of(name: str, moves: str):
    loaded = registry.load(name)
    return results_of(loaded.make_truth(loaded.game), loaded.game.position(moves))


def test_exact_results_are_numbers_as_well_as_words():
    results = truth_of("connect4", "")
    assert [(result.action, result.outcome) for result in results[:3]] == [(3, 1), (2, 0), (4, 0)]
    assert results[0].words == "wins in 21 moves" and results[0].distance == 21 and results[-1].outcome == -1


def test_othello_is_known_near_its_end_alone():
    game = registry.load("othello6").game
    position = game.start()
    assert truth_of("othello", "") == []
    while 36 - sum(int(word).bit_count() for word in position.state[:2]) > 10:
        position = position.play(position.legal_actions[0])
    results = results_of(registry.load("othello6").make_truth(game), position)
    assert {result.action for result in results} == set(position.legal_actions)
    assert all(result.distance is not None for result in results if result.outcome)


def test_words_that_nobody_understands_are_no_results():
    position = registry.load("tictactoe").game.start()
    assert results_of(lambda _: {0: "perhaps"}, position) == []
    assert results_of(None, position) == []


def test_a_move_is_judged():
    results = truth_of("connect4", "")
    right, draw, lost = (judge_by_truth(results, action) for action in (3, 2, 0))
    assert right["right"] and right["perfect"] and right["sentence"] == "" and right["choice"]
    assert not draw["right"] and draw["best"] == 3
    assert draw["sentence"] == "turns a win into a draw: draw; the best move wins in 21 moves"
    assert lost["outcome"] == -1 and "turns a win into a loss" in lost["sentence"]
    slow = judge_by_truth(truth_of("connect4", "121212"), 6)
    assert slow is not None and slow["choice"]
    assert judge_by_truth([], 3) is None


def review(game: str, moves: str, player: dict | None, simulations: int = 30) -> tuple[list[dict], dict]:
    engine = Engine(Stage(game, registry.load(game), device="cpu"))
    fields = {"id": 1, "ask": "review", "game": game, "moves": moves, "simulations": simulations}
    question = Question(fields if player is None else {**fields, "player": player})
    answers = json.loads(json.dumps(list(engine.searches["review"](object(), question, Stop())), allow_nan=False))
    assert [answer["more"] for answer in answers] == [True] * (len(answers) - 1) + [False]
    return [row for answer in answers for row in answer["rows"]], answers[-1]["summary"]


def test_a_review_finds_the_mistakes_by_the_oracle():
    """The first player wins in the middle alone, and begins with 1; then nobody blocks."""
    rows, summary = review("connect4", "1212121", None)
    assert [row["ply"] for row in rows] == list(range(8)) and rows[-1]["value"] == 1.0
    mistakes = {mistake["ply"]: mistake for mistake in summary["mistakes"]}
    assert all(mistake["by"] == "oracle" and "turns a" in mistake["sentence"] for mistake in mistakes.values())
    assert 0 in mistakes, "the first player wins only in the middle"
    for player, side in enumerate(summary["sides"]):
        wrong = sum(mistake["mover"] == player for mistake in mistakes.values())
        assert side["known"] - side["right"] == wrong and side["known"] == (4, 3)[player]


def test_a_review_without_an_oracle_goes_by_a_search():
    rows, summary = review("tictactoe", "a1 b2 b1 a2 c1", {"id": "mcts"}, 400)
    (mistake,) = [mistake for mistake in summary["mistakes"] if mistake["ply"] == 3]
    assert mistake["by"] == "search" and mistake["mover"] == 1 and mistake["best"] == 2, "c1 was to be blocked"
    assert rows[3]["value"] < 1 == rows[4]["value"] == rows[5]["value"]
    assert summary["sides"][0]["known"] == 0 and summary["sides"][1]["lost"] > summary["sides"][0]["lost"]


def test_a_review_runs_its_net_on_one_thread():
    """As all searches of single positions do: more are slower for them."""
    net = ThreadedNet()
    engine = Engine(Stage("tictactoe", registry.load("tictactoe"), [net], device="cpu"))
    question = Question(
        {
            "id": 1,
            "ask": "review",
            "game": "tictactoe",
            "actions": [4, 0, 1],
            "player": {"id": "given:0"},
            "simulations": 9,
        }
    )
    assert len(list(engine.searches["review"](object(), question, Stop()))) == 5
    assert net.used == {1} and net.threads == 2


def test_a_game_that_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("alphazero.web.review.MOST_PLIES", 3)
    assert len(review("tictactoe", "a1 b2 c3", None)[0]) == 4
    with pytest.raises(InputError, match="more than 3 plies is too long"):
        review("tictactoe", "a1 b2 c3 a2", None)
