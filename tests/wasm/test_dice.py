"""Games with dice in WebAssembly: the same searches and the same dice as on the processor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game import Game, Score
from alphazero.game.kernels import Kernels
from alphazero.search.analysis import Analysis
from alphazero.search.mcts import QUIET, Search
from alphazero.search.tree import UNPROVEN
from alphazero.wasm.engine import GameModule, ModuleBuilder
from alphazero.wasm.moves import add_moves
from tests.search.test_dice import Race, some_positions
from tests.search.test_seats import Walk
from tests.wasm.engines import Answers, needs_node, planted, planted_for, run_node


def terminal_points(state):
    """The loser is as many points behind as steps."""
    return float(state[0]) - float(state[1])


class PointsRace(Race):
    """The race with two coins in a row, for points."""

    name = "points_race"
    score = Score(-6, 6)
    rules = replace(Race.rules, terminal_value=terminal_points)


GAMES = {"points_race": PointsRace(), "walk": Walk()} | {
    name: registry.load(name).game for name in ("pig", "cantstop3")
}
LEARNED = replace(QUIET, gumbel_actions=2)
pytestmark = needs_node


@pytest.fixture(
    scope="module",
    params=[*(pytest.param(name, marks=pytest.mark.slow) for name in ("pig", "cantstop3")), "points_race", "walk"],
)
def game(request: pytest.FixtureRequest) -> Game:
    return GAMES[request.param]


@pytest.fixture(scope="module")
def engine(game: Game) -> GameModule:
    builder = ModuleBuilder(game)
    builder.add_search(planted, QUIET)
    add_moves(builder, LEARNED)
    return builder.build()


def test_searches_and_moves_have_the_visits_of_the_processor(game: Game, engine: GameModule, tmp_path: Path):
    starts = some_positions(game, 30)
    searches = [{"actions": at.actions, "simulations": 150, "slice": 1 + i} for i, at in enumerate(starts)]
    moves = [{"actions": at.actions, "simulations": 20, "seed": i} for i, at in enumerate(starts)]
    answers, kernels = Answers(run_node(engine, {"searches": searches, "moves": moves}, tmp_path)), Kernels(game)
    width, explored = max(game.num_actions, game.num_outcomes), 0
    for request in (searches, moves):
        steps, config = request[0]["simulations"], QUIET if request is searches else LEARNED
        for i, at in enumerate(starts):
            search = Search(kernels, replace(config, num_simulations=steps), planted_for(game), 1, i)
            found = search.run(at.state[None], np.array([i]), np.array([at.ply]))
            assert answers.take(np.int32)[0] == found.actions[0]
            for expected in (found.visit_counts[0], found.policy[0], found.q[0]):
                told = answers.take(expected.dtype, width)[: game.num_actions]
                np.testing.assert_allclose(told, expected, 0.0 if request is searches else 1e-6, 0.0)
            np.testing.assert_allclose(answers.take(np.float32, game.num_values), found.values.reshape(-1), 1e-6)
            explored += np.count_nonzero(found.visit_counts) > 1
            if request is searches:
                assert answers.take(bool)[0] == (search.tree.proven[0, 0] != UNPROVEN)
                answers.take(np.int32, answers.take(np.int32)[0])
    assert answers.ended and explored


def test_dice_show_what_the_server_throws(game: Game, engine: GameModule, tmp_path: Path):
    due = [at.play(action) for at in some_positions(game, 40) for action in at.legal_actions]
    throws = [{"actions": at.actions, "seed": seed} for seed, at in enumerate(due) if at.chances]
    answers, kernels, seen = Answers(run_node(engine, {"throws": throws}, tmp_path)), Kernels(game), set[int]()
    for request in throws:
        at = game.position(request["actions"])
        state, movers = at.state[None].copy(), np.array([at.to_play], np.int8)
        outcomes = kernels.roll(state, movers, request["seed"], np.zeros(1, np.int64), np.array([at.ply]))[0]
        assert answers.take(np.int32, game.dice_in_a_row).tolist() == outcomes.tolist()
        assert answers.take(np.uint64, game.state_words).tolist() == state[0].tolist()
        assert answers.take(np.int8)[0] == movers[0]
        seen |= set(outcomes.tolist())
    assert answers.ended and len(seen - {-1}) == game.num_outcomes


def test_the_tree_is_walked_through_dice_to_ends_with_points(game: Game, engine: GameModule, tmp_path: Path):
    """The value of an end between -1 and 1 is its points on that scale."""
    analysis, between = Analysis(Kernels(game), replace(QUIET, num_simulations=300), planted_for(game)), set[float]()
    analysis.run(game.start())
    paths = [()]
    for path in paths:
        paths += [(*path, edge.action) for edge in analysis.node(path).edges if edge.visits and len(paths) < 300]
    answers = Answers(run_node(engine, {"looks": [(300, path) for path in paths]}, tmp_path))
    width = max(game.num_actions, game.num_outcomes)
    for path in paths:
        node = analysis.node(path)
        visits, prior, q = (
            answers.take(np.int32, width),
            answers.take(np.float32, width),
            answers.take(np.float32, width),
        )
        values, proven = answers.take(np.float32, game.num_values), answers.take(bool)[0]
        assert visits.sum() == node.visits and proven == node.proven
        assert np.clip(values[0], -1, 1) == np.float32(node.value), path
        if game.value_shape:
            expected = np.roll(node.values, -game.position(path).to_play)
            assert np.clip(values, -1, 1).tolist() == np.float32(expected).tolist()
        for edge in node.edges:
            assert visits[edge.action] == edge.visits
            assert edge.value is None or np.clip(q[edge.action], -1, 1) == np.float32(edge.value)
            assert prior[edge.action] == pytest.approx(edge.prior, rel=1e-5)
        between |= {node.value} if proven and abs(node.value) not in (0, 1) else set()
    assert answers.ended and bool(between) == (game.score is not None)
