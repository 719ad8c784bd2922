"""Searches of games with dice, beside a plain search of objects and beside exact values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import alphazero as az
from alphazero.catalogue import registry
from alphazero.errors import IllegalAction, InvalidSetting
from alphazero.game import Game, Position, Rules
from alphazero.game.functions import plain
from alphazero.game.kernels import Kernels
from alphazero.game.randomness import combine
from alphazero.search.mcts import QUIET, Search, SearchConfig
from games.pig.game import OTHER, OWN, TURN
from games.pig.solver import exact_values
from tests.search.dense import dense
from tests.search.points_game import POINTS
from tests.search.reference_search import SURE, Edge, Node, ReferenceSearch, compare_trees, neutral, value_at_end
from tests.search.reference_search import planted as planted_by
from tests.search.searches import BASE, finish, row_bytes

F = np.float32
PIG = registry.load("pig").game


def init(state):
    state[:] = np.uint64(0)


def legal(state, legal_mask):
    legal_mask[:] = True


def step(state, action):
    """Action 0 throws two coins one after another, action 1 walks one step; words: own, other's steps, coins due."""
    own = state[0] + np.uint64(action)
    state[0], state[1], state[2] = state[1], own, np.uint64(2 if action == 0 else 0)
    state[3] += np.uint64(1)


def chance(state, probabilities):
    if state[2] == np.uint64(0):
        return 0
    probabilities[0], probabilities[1], probabilities[2] = 0.5, 0.25, 0.25
    return 3


def settle(state, outcome):
    """It belongs to the player who threw, who does not move now."""
    state[2] -= np.uint64(1)
    state[1] += np.uint64(outcome)


def is_terminal(state):
    return (state[1] >= np.uint64(4) and state[2] == np.uint64(0)) or state[3] >= np.uint64(12)


def terminal_value(state):
    return 0.0 if state[3] >= np.uint64(12) and state[1] < np.uint64(4) else -1.0


def observe(state, planes):
    planes[0, 0, 0] = state[0]
    planes[1, 0, 0] = state[1]


class Race(Game):
    """To four steps; who throws has two coins in a row, who walks has none."""

    name = "coin_race"
    num_actions, num_outcomes, dice_in_a_row, state_words, max_plies = 2, 3, 2, 4, 12
    observation_shape = (2, 1, 1)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, chance=chance, settle=settle)


RACE = Race()


planted = planted_by()


class DiceSearch(ReferenceSearch):
    """Outcomes come by p / (N + 1) and count by p; what goes up is by how much N times a node's mean has grown."""

    def _choose(self, node: Node) -> int:
        if not node.position.chances:
            return super()._choose(node)
        shares = {outcome: edge.prior / F(1 + edge.visits) for outcome, edge in node.edges.items()}
        return max(shares, key=lambda outcome: (shares[outcome], self.order_of(node.position, outcome)))

    def order_of(self, position: Position, outcome: int) -> int:
        """Of equal outcomes the one with the largest hash of (position, outcome) comes first."""
        key = np.uint64(0)
        with np.errstate(over="ignore"):
            for word in position.state:
                key = plain(combine)(key, word)
            return int(plain(combine)(key, outcome))

    def _walk(self, several: bool) -> tuple[Node, bool]:
        """A walk goes on through the dice."""
        node, is_new = super()._walk(several)
        while is_new and node.position.chances:
            node.edges = {outcome: Edge(F(p)) for outcome, p in enumerate(node.position.chances)}
            node.pending, outcome = False, self._choose(node)
            child = node.edges[outcome].child = self._new_node(node.position.play(outcome), node, outcome)
            node = child
        return node, is_new

    def _back_up(self, node: Node, value: F, several: bool) -> None:
        exact = self.config.prove and node.proven is not None
        while node.parent is not None:
            parent, edge = node.parent, node.parent.edges[node.action]
            if parent.position.to_play != node.position.to_play:
                value = -value
            before = parent.value_sum
            self._count(parent, node.action, value)
            if exact:
                edge.proven, edge.q = int(value), SURE * value
                known = [other.proven for other in parent.edges.values()]
                if parent.position.chances:
                    parent.proven = known[0] if len(set(known)) == 1 else None
                else:
                    parent.proven = (
                        1 if 1 in known else None if None in known else max(k for k in known if k is not None)
                    )
                exact = parent.proven is not None
                value = F(parent.proven) if parent.proven is not None else value
            if not exact:
                parent.value_sum = parent.visits * self.mean_at(parent)
                value = parent.value_sum - before
            node = parent

    def mean_at(self, node: Node) -> F:
        seen = [edge for edge in node.edges.values() if edge.visits]
        if node.position.chances:
            total = mass = F(0)
            for edge in seen:
                total += edge.prior * (edge.q if edge.proven is None else F(edge.proven))
                mass += edge.prior
            if only_throws(node.parent):  # what has not come yet is as good as what is known of all
                same = node.parent.position.to_play == node.position.to_play
                return total + (F(1) - mass) * (node.parent.raw_value if same else -node.parent.raw_value)
            return total / mass
        most = max(edge.visits for edge in seen)
        best = max(edge.q for edge in seen if edge.visits == most)
        if only_throws(node):
            return F(np.clip(best, -1, 1))
        return (node.raw_value + F(most) * F(np.clip(best, -1, 1))) / F(1 + most)


def only_throws(node: Node | None) -> bool:
    """A player is to move there and can only throw."""
    if node is None or node.position.chances or len(node.position.legal_actions) != 1:
        return False
    return bool(node.position.play(node.position.legal_actions[0]).chances)


def some_positions(game: Game, count: int) -> list[Position]:
    """Positions of random games where a player is to move."""
    rng, found = np.random.default_rng(0), list[Position]()
    while len(found) < count:
        position = game.start()
        while not position.terminal:
            if not position.chances and rng.random() < 0.2:
                found.append(position)
            position = position.play(int(rng.choice(position.legal_actions)))
    return found[:count]


CONFIGS = {
    "one": replace(BASE, num_simulations=1),
    "puct": replace(BASE, num_simulations=60),
    "unproven": replace(BASE, num_simulations=30, prove=False),
    "gumbel-2": replace(BASE, num_simulations=7, gumbel_actions=2, noise_fraction=0.25),
    "gumbel-3": replace(BASE, num_simulations=60, gumbel_actions=3, noise_fraction=0.25, gumbel_visit_offset=5.0),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("game", [PIG, RACE, POINTS], ids=lambda game: game.name)
def test_the_search_is_the_plain_one_node_by_node_alone_and_among_others(game: Game, config: SearchConfig):
    tried, kernels = some_positions(game, 8), Kernels(game)
    search, plies = Search(kernels, config, planted, len(tried)), np.zeros(len(tried), np.int64)
    states, numbers = np.array([at.state for at in tried]), np.arange(len(tried))
    search.start(numbers, states, numbers, plies)
    finish(search)
    found, ends = search.read(numbers), 0
    for row, at in enumerate(tried):
        root = DiceSearch(config, planted)
        root.start(at, None, dense(search.tree, row).root_gumbel[row])
        root.run()
        compare_trees(search, row, root)
        assert found.visit_counts[row].tolist() == root.visit_counts().tolist()
        assert {action: found.q[row, action] for action in at.legal_actions} == root.completed_q()
        if config.gumbel_actions:
            assert found.values[row] == pytest.approx(root.value(), abs=1e-6)
        else:
            assert found.values[row] == root.value()
        ends += sum(node.position.terminal and node.proven is None for node in root.nodes())
        alone = Search(kernels, config, planted, 1).run(states[row : row + 1], numbers[row : row + 1], plies[:1])
        assert row_bytes(alone, 0) == row_bytes(found, row)
    assert found.visit_counts.sum(axis=1).tolist() == [config.num_simulations] * len(tried)
    assert (ends > 0) == (game is POINTS and config.num_simulations > 1)


def expected(position: Position, known: dict[Any, float]) -> float:
    """The exact value for the player to move, by expectimax over all games."""
    key = position.to_play, position.state.tobytes()
    if key not in known:
        if position.terminal:
            known[key] = float(value_at_end(position))
        else:
            after = [position.play(action) for action in position.legal_actions]
            values = [expected(at, known) * (1 if at.to_play == position.to_play else -1) for at in after]
            known[key] = float(np.dot(values, position.chances)) if position.chances else max(values)
    return known[key]


@pytest.mark.parametrize("gumbel_actions", [0, 3])
@pytest.mark.parametrize("game", [RACE, POINTS], ids=lambda game: game.name)
def test_values_come_to_those_of_expectimax(game: Game, gumbel_actions: int):
    """With equal priors and no opinion of positions: all comes from the ends of games."""
    tried, known, errors = some_positions(game, 12), dict[Any, float](), []
    exact = np.array([expected(at, known) for at in tried])
    assert len(known) > 300 and np.abs(exact).max() < 1.01 and len(set(exact.tolist())) > 5
    for simulations in (50, 16_000):
        config = replace(QUIET, num_simulations=simulations, gumbel_actions=gumbel_actions)
        search = Search(Kernels(game), config, neutral, len(tried))
        states, zeros = np.array([at.state for at in tried]), np.zeros(len(tried), np.int64)
        errors.append(float(np.abs(search.run(states, np.arange(len(tried)), zeros).values - exact).mean()))
    assert errors[1] < 0.02 < errors[0]


def test_pig_to_twenty_is_worth_what_the_solver_says():
    """From 80 points each; leaves are worth what they are, and priors know nothing."""
    exact = exact_values()

    def evaluate(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own, other, turn = (states[:, 0].astype(np.int64) >> field & 127 for field in (OWN, OTHER, TURN))
        return legal_masks.astype(F), (2 * exact[own, other, turn] - 1).astype(F)

    rng = np.random.default_rng(0)
    own, other, turn = rng.integers(80, 90, 60), rng.integers(80, 100, 60), rng.integers(10, size=60)
    states = (own | other << OTHER | turn << TURN).astype(np.uint64)[:, None]
    search = Search(Kernels(PIG), replace(QUIET, num_simulations=1000), evaluate, 60)
    found = search.run(states, np.arange(60), np.zeros(60, np.int64)).values
    assert np.abs(found - (2 * exact[own, other, turn] - 1)).mean() < 0.03


def test_only_what_every_outcome_wins_is_proven():
    """After sixteen sixes a roll wins unless it is a 1, 2 or 3."""
    rolls = az.search(PIG.position([0, 5] * 16), planted, simulations=300)
    assert not rolls.proven
    won = az.search(RACE.position([1, 1, 1, 1, 1, 1]), planted, simulations=50)  # three steps each: one more wins
    assert won.proven and won.value == 1.0 and won.best == 1


def settle_downwards(state, outcome):
    """The first outcome walks farthest."""
    state[2] -= np.uint64(1)
    state[1] += np.uint64(2 - outcome)


def test_a_die_is_not_proven_by_its_first_outcome():
    """Two steps from the goal, which the first outcome of the first coin reaches whatever the second one shows."""
    game: Game = type("Downwards", (Race,), {"rules": replace(Race.rules, settle=settle_downwards)})()
    found = az.search(game.position("1 1 1 1"), planted, simulations=300)
    assert found.visits[0] > 20 and not found.proven and abs(found.value) < 1.0


def test_what_a_search_of_dice_cannot_do_is_refused():
    due = PIG.start().play(0)
    with pytest.raises(IllegalAction, match="a die is due"):
        az.search(due, planted, simulations=4)
    with pytest.raises(IllegalAction, match="a die is due"):
        Search(Kernels(PIG), QUIET, planted, 1).run(due.state[None], np.zeros(1, np.int64), np.zeros(1, np.int64))
    for setting in ({"reuse_subtree": True}, {"leaves_per_step": 2}):
        with pytest.raises(InvalidSetting, match="keeps no subtree and takes a leaf a step"):
            Search(Kernels(PIG), replace(QUIET, **setting), planted, 1)
