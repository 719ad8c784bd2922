"""The solver in a published file knows what the server's knows, from the middle of the game on."""

import json
from typing import Any

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game.kernels import Kernels
from alphazero.web.engine import Engine, Stage
from alphazero.web.message import question_of
from alphazero.web.searches import Stop
from games.connect4.solver import KNOWN_PLY
from tests.wasm.engines import needs_node, random_games
from tests.wasm.published import ask, on_server, page_with_solver, small_page

GAME = "connect4"


def compare_results(count: int, most_plies: int) -> None:
    """Positions of random games from KNOWN_PLY stones on, their ends included."""
    rng, games = np.random.default_rng(6), random_games(Kernels(registry.load(GAME).game), 2 * count, seed=6)
    long = [actions for actions in games if len(actions) > KNOWN_PLY][:count]
    lists = [actions[: int(rng.integers(KNOWN_PLY, min(most_plies, len(actions)) + 1))] for actions in long]
    questions = [{"ask": "oracle", "game": GAME, "actions": actions} for actions in [*lists, long[0]]]
    known = 0
    for question, (answer,) in zip(questions, ask(page_with_solver(), *questions), strict=True):
        assert answer == on_server(GAME, question)
        known += bool(answer["results"])
    assert known > count // 2


@needs_node
def test_exact_results_are_the_servers():
    compare_results(40, 42)


@needs_node
@pytest.mark.slow
def test_a_thousand_exact_results_are_the_servers():
    compare_results(1000, 30)


@needs_node
def test_the_opening_is_not_known_and_games_without_a_solver_know_nothing():
    questions = {"ask": "oracle", "actions": [3, 3, 4]}, {"ask": "game", "game": "tictactoe"}
    (opening,), (game,) = ask(page_with_solver(), *questions)
    assert opening["results"] == [] and game["oracle"] == {"how": "in", "unit": "move"}
    (other,), (without,) = ask(small_page("tictactoe"), *questions)
    assert other["results"] == [] and not without["oracle"]


def review_on_server(question: dict[str, Any]) -> list[dict[str, Any]]:
    engine = Engine(Stage(GAME, registry.load(GAME), device="cpu"))
    answers = engine.searches["review"](object(), question_of({"id": 1, "game": GAME, **question}), Stop())
    return json.loads(json.dumps(list(answers)))


@needs_node
@pytest.mark.slow
def test_a_review_judges_by_exact_results_where_they_are_known():
    actions = next(
        actions for actions in random_games(Kernels(registry.load(GAME).game), 20, seed=7) if len(actions) > 25
    )
    question = {"ask": "review", "actions": actions}
    answers, expected = ask(small_page(GAME), question)[0], review_on_server(question)
    rows = [row for answer in answers for row in answer["rows"]]
    for row, whole in zip(rows, [row for answer in expected for row in answer["rows"]], strict=True):
        if row["ply"] >= KNOWN_PLY:
            assert row == whole
        else:
            assert row == {**whole, "results": []}
    assert sum(bool(row.get("results")) for row in rows) > 10
