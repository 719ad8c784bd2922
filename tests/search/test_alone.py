"""Searches of games for one, beside a plain search of objects and beside exact values."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import InvalidSetting
from alphazero.game import Game, Position, Rules, Score
from alphazero.game.kernels import Kernels
from alphazero.search.mcts import QUIET, Search, SearchConfig
from alphazero.search.rollouts import Playouts
from tests.search.dense import dense
from tests.search.reference_search import Node, compare_trees
from tests.search.searches import BASE, finish
from tests.search.test_dice import DiceSearch, some_positions
from tests.search.test_dice import planted as planted_by_state

F = np.float32
NONE, ONE = np.uint64(0), np.uint64(1)
TURNS, POINTS, DUE, LIVES = 0, 1, 2, 3
LENGTH = 6
SIZE = 20.0


def init(state):
    state[TURNS], state[POINTS], state[DUE], state[LIVES] = NONE, NONE, NONE, ONE + ONE


def legal(state, legal_mask):
    legal_mask[0] = legal_mask[1] = True


def step(state, action):
    state[TURNS] += ONE
    if action == 0:
        state[POINTS] += ONE  # a sure point
    else:
        state[DUE] = ONE  # or none to three, of which none costs a life


def chance(state, probabilities):
    if state[DUE] == NONE:
        return 0
    probabilities[0], probabilities[1], probabilities[2] = 0.25, 0.5, 0.25
    return 3


def settle(state, outcome):
    state[DUE] = NONE
    state[POINTS] += np.uint64(outcome + 1 if outcome else 0)
    state[LIVES] -= NONE if outcome else ONE


def is_terminal(state):
    return state[DUE] == NONE and (state[TURNS] >= np.uint64(LENGTH) or state[LIVES] == NONE)


def terminal_value(state):
    return float(state[POINTS]) + 2.0 * float(state[LIVES])  # each life left is worth two points at the end


def observe(state, planes):
    planes[0, 0, 0], planes[1, 0, 0] = state[TURNS], state[LIVES]


class Climb(Game):
    """Six turns; points along the way, and some at the end."""

    name = "climb"
    num_players, score, points_word = 1, Score(0, SIZE), POINTS
    num_actions, num_outcomes, state_words, max_plies = 2, 3, 4, LENGTH
    observation_shape = (2, 1, 1)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, chance=chance, settle=settle)


class Steep(Climb):
    """The best result comes with the first points."""

    name, score = "steep", Score(0, 2.0)


CLIMB = Climb()


def planted(states: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Answers that know nothing of the points so far, as a network's."""
    states = states.copy()
    states[:, POINTS] = 0
    return planted_by_state(states, masks)


class AloneSearch(DiceSearch):
    """Values hold the points from the root on, and exploration is measured by half the range of the actions' values."""

    lowest, highest = F(np.inf), F(-np.inf)

    def points_from_root(self, position: Position) -> F:
        points = int(position.state[POINTS]) - int(self.root.position.state[POINTS])
        return F(points) * F(1 / SIZE)

    def _ask(self, nodes: list[Node]) -> None:
        super()._ask(nodes)
        for node in nodes:
            node.raw_value = node.value_sum = node.raw_value + self.points_from_root(node.position)

    def _end(self, node: Node) -> None:
        to_come = node.position.points - int(node.position.state[POINTS])
        node.raw_value = F(to_come / SIZE) + self.points_from_root(node.position)

    def _count(self, node: Node, action: int, value: F) -> None:
        super()._count(node, action, value)
        if not node.position.chances:
            q = node.edges[action].q
            self.lowest, self.highest = min(self.lowest, q), max(self.highest, q)

    def _unit(self) -> F:
        return (self.highest - self.lowest) * F(0.5) if self.highest - self.lowest > F(1e-6) else F(1)

    def sigma(self, q: F) -> F:
        known = self.highest - self.lowest > F(1e-6)
        return super().sigma((q - self.lowest) / self._unit() - F(1) if known else q)


CONFIGS = {
    "one": replace(BASE, num_simulations=1),
    "puct": replace(BASE, num_simulations=60),
    "gumbel": replace(BASE, num_simulations=40, gumbel_actions=2, noise_fraction=0.25, gumbel_visit_offset=5.0),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_search_is_the_plain_one_node_by_node(config: SearchConfig):
    tried = some_positions(CLIMB, 8)
    assert any(int(at.state[POINTS]) for at in tried)
    search, zero = Search(Kernels(CLIMB), config, planted, len(tried)), np.zeros(len(tried), np.int64)
    numbers = np.arange(len(tried))
    search.start(numbers, np.array([at.state for at in tried]), numbers, zero)
    finish(search)
    found = search.read(numbers)
    for row, at in enumerate(tried):
        root = AloneSearch(config, planted)
        root.start(at, None, dense(search.tree, row).root_gumbel[row])
        root.run()
        compare_trees(search, row, root)
        assert found.visit_counts[row].tolist() == root.visit_counts().tolist()
        assert found.values[row] == pytest.approx(root.value(), abs=1e-6)


@cache
def still_to_come(turns: int, lives: int) -> float:
    """The expected points from here on, by hand from the rules."""
    if turns == LENGTH or lives == 0:
        return 2.0 * lives
    return max(still_to_come(turns + 1, lives) + 1, thrown(turns, lives))


def thrown(turns: int, lives: int) -> float:
    lost, kept = still_to_come(turns + 1, lives - 1), still_to_come(turns + 1, lives)
    return 0.25 * lost + 0.5 * (2 + kept) + 0.25 * (3 + kept)


def test_the_search_finds_the_expected_points_and_a_best_action():
    def exact_leaves(states, masks):
        exact = [still_to_come(int(state[TURNS]), int(state[LIVES])) / SIZE for state in states]
        return np.ones((len(states), 2), F), np.array(exact, F)

    search, zero = Search(Kernels(CLIMB), replace(QUIET, num_simulations=1000), exact_leaves, 1), np.zeros(1, np.int64)
    for at in some_positions(CLIMB, 8):
        found, turns, lives = search.run(at.state[None], zero, zero), int(at.state[TURNS]), int(at.state[LIVES])
        assert found.values[0] * SIZE == pytest.approx(still_to_come(turns, lives), abs=0.1)
        of_actions = [still_to_come(turns + 1, lives) + 1, thrown(turns, lives)]
        assert of_actions[found.actions[0]] > max(of_actions) - 0.1


def test_equal_gains_leave_the_choice_to_the_prior_at_first():
    """Until two values differ, their range says nothing, and the prior weighs as in games for two."""

    def even(states, masks):
        return np.tile(F([0.9, 0.1]), (len(states), 1)), np.zeros(len(states), np.float32)

    found = Search(Kernels(CLIMB), replace(QUIET, num_simulations=1), even, 1).run(
        Kernels(CLIMB).start_states(1), np.zeros(1, np.int64), np.zeros(1, np.int64)
    )
    assert found.visit_counts[0].tolist() == [1, 0]


def test_a_playout_counts_the_points_from_its_start_on():
    at = CLIMB.position("0 0 0 0 0")  # five points; one turn to go, and both lives
    _, values = Playouts(Kernels(CLIMB), 0)(np.tile(at.state, (200, 1)), np.ones((200, 2), bool))
    assert set(np.round(values * SIZE).tolist()) <= {2.0, 5.0, 6.0, 7.0}


def test_the_network_sees_no_points_and_states_that_differ_in_them_share_an_answer():
    rich = Position(CLIMB, np.array([1, 7, 0, 2], np.uint64), 0, ())
    poor = Position(CLIMB, np.array([1, 0, 0, 2], np.uint64), 0, ())
    kernels = Kernels(CLIMB)
    assert np.array_equal(*kernels.canonical(np.stack([poor.state, rich.state]))[0])
    assert np.array_equal(poor.observation, rich.observation)


def test_a_search_for_one_keeps_no_subtree():
    with pytest.raises(InvalidSetting, match="keeps no subtree"):
        Search(Kernels(registry.load("2048").game), replace(QUIET, reuse_subtree=True), planted, 1)
