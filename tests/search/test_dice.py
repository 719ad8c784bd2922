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


def planted(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Priors and values that a hash of the state gives."""
    rows = [np.random.default_rng([int(word) for word in state]).random(legal_masks.shape[1] + 1) for state in states]
    drawn = np.array(rows, np.float32).reshape(len(states), legal_masks.shape[1] + 1)
    return drawn[:, 1:] * legal_masks, (2 * drawn[:, 0] - 1) * F(0.9)


class Node:
    """A position; `q`, `visits`, `known` by action, or by outcome where a die is due, for who moves here."""

    def __init__(self, position: Position):
        self.position, self.children = position, dict[int, Node]()
        self.prior: dict[int, F] = {}
        self.q, self.visits = dict[int, F](), dict[int, int]()
        self.known: dict[int, float] = {}
        self.exact: float | None = None
        self.raw = self.total = self.count = self.seen = F(0)


def order_of(position: Position, outcome: int) -> int:
    """Of equal outcomes the one with the largest hash of (position, outcome) comes first."""
    key = np.uint64(0)
    with np.errstate(over="ignore"):
        for word in position.state:
            key = plain(combine)(key, word)
        return int(plain(combine)(key, outcome))


class Plain:
    """PUCT in a game with dice: one object a node, one simulation at a time."""

    def __init__(self, config: SearchConfig):
        self.config = config

    def run(self, position: Position) -> Node:
        root = Node(position)
        self.open(root)
        total = sum(float(prior) for prior in root.prior.values())
        root.prior = {action: F(float(prior) / total) for action, prior in root.prior.items()}
        for _ in range(self.config.num_simulations):
            self.simulate(root)
        return root

    def open(self, node: Node) -> F:
        at = node.position
        if at.terminal:
            node.exact = float(at.game.plain_rules.terminal_value(at.state))
            return F(node.exact)
        priors, values = planted(at.state[None], at.legal_mask[None])
        total = F(0)
        for action in at.legal_actions:
            total += priors[0, action]
        node.prior = {action: priors[0, action] * (F(1) / total) for action in at.legal_actions}
        node.raw = node.total = values[0]
        node.count = F(1)
        return node.raw

    def choose(self, node: Node) -> int:
        if node.position.chances:
            share = {o: F(p) / F(1 + node.visits.get(o, 0)) for o, p in enumerate(node.position.chances)}
            return max(share, key=lambda outcome: (share[outcome], order_of(node.position, outcome)))
        weight = F(self.config.c_puct) * F(np.sqrt(node.count))
        new = node.total / node.count - F(self.config.fpu_reduction) * F(np.sqrt(node.seen))
        scores = {
            action: (node.q[action] if action in node.visits else new)
            + prior * weight / F(1 + node.visits.get(action, 0))
            for action, prior in node.prior.items()
        }
        return max(scores, key=lambda action: scores[action])

    def simulate(self, root: Node) -> None:
        path, node, value = list[tuple[Node, int]](), root, F(0)
        while True:
            action = self.choose(node)
            path.append((node, action))
            child = node.children.get(action)
            if child is None:
                child = node.children[action] = Node(node.position.play(action))
                if not child.position.chances:
                    value = self.open(child)
                    break
            elif child.exact is not None:
                value = F(child.exact)
                break
            node = child
        exact = child.exact
        for node, action in reversed(path):
            below = node.children[action]
            if below.position.to_play != node.position.to_play:
                value, exact = -value, None if exact is None else -exact
            die, before = bool(node.position.chances), node.total
            visits = node.visits.get(action, 0)
            if not visits and not die:
                node.seen += node.prior[action]
            node.visits[action] = visits + 1
            node.count += F(1)
            node.total += value
            if action not in node.known:
                old = node.q.get(action, F(0))
                node.q[action] = old + (value - old) / F(visits + 1)
            if exact is not None:
                node.known[action], node.q[action] = exact, F(1e6) * F(exact)
                exact = node.exact = self.proven(node, die)
                value = value if exact is None else F(exact)
            if exact is None:
                mean = self.mean_of_die(node) if die else self.mean_of_actions(node)
                node.total = node.count * mean
                value = node.total - before

    def proven(self, node: Node, die: bool) -> float | None:
        known = [node.known.get(action) for action in (range(len(node.position.chances)) if die else node.prior)]
        if die:
            return known[0] if len(set(known)) == 1 else None
        return 1.0 if 1.0 in known else None if None in known else max(known)

    def mean_of_die(self, node: Node) -> F:
        total, mass = F(0), F(0)
        for outcome, probability in enumerate(node.position.chances):
            if outcome in node.visits:
                value = F(node.known[outcome]) if outcome in node.known else node.q[outcome]
                total += F(probability) * value
                mass += F(probability)
        return total / mass

    def mean_of_actions(self, node: Node) -> F:
        most = max(node.visits.values())
        best = max(node.q[action] for action, visits in node.visits.items() if visits == most)
        return (node.raw + F(most) * F(np.clip(best, -1, 1))) / F(1 + most)


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


@pytest.mark.parametrize("game", [PIG, RACE], ids=lambda game: game.name)
@pytest.mark.parametrize("simulations", [1, 7, 60])
def test_the_search_is_the_plain_one_visit_by_visit(game: Game, simulations: int):
    config, tried = replace(QUIET, num_simulations=simulations), some_positions(game, 8)
    search = Search(Kernels(game), config, planted, len(tried))
    found = search.run(np.array([at.state for at in tried]), np.arange(len(tried)), np.zeros(len(tried), np.int64))
    for row, at in enumerate(tried):
        root = Plain(config).run(at)
        assert found.visit_counts[row].tolist() == [root.visits.get(action, 0) for action in range(game.num_actions)]
        value = F(root.exact) if root.exact is not None else root.total / root.count
        assert found.values[row] == value
    assert found.visit_counts.sum(axis=1).tolist() == [simulations] * len(tried)


def test_a_position_is_searched_alone_as_among_others():
    config, tried = replace(QUIET, num_simulations=40), some_positions(PIG, 6)
    states, kernels = np.array([at.state for at in tried]), Kernels(PIG)
    together = Search(kernels, config, planted, 6).run(states, np.arange(6), np.zeros(6, np.int64))
    for row in range(6):
        alone = Search(kernels, config, planted, 1).run(states[row : row + 1], np.array([row]), np.zeros(1, np.int64))
        assert alone.visit_counts[0].tolist() == together.visit_counts[row].tolist()


def expected(position: Position, known: dict[Any, float]) -> float:
    """The exact value for the player to move, by expectimax over all games."""
    key = position.to_play, position.state.tobytes()
    if key not in known:
        if position.terminal:
            known[key] = float(position.game.plain_rules.terminal_value(position.state))
        else:
            after = [position.play(action) for action in position.legal_actions]
            values = [expected(at, known) * (1 if at.to_play == position.to_play else -1) for at in after]
            known[key] = float(np.dot(values, position.chances)) if position.chances else max(values)
    return known[key]


@pytest.mark.parametrize("gumbel_actions", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_values_come_to_those_of_expectimax(gumbel_actions: int):
    """With equal priors and no opinion of positions: all comes from the ends of games."""

    def blank(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return legal_masks.astype(np.float32), np.zeros(len(states), np.float32)

    tried, known, errors = some_positions(RACE, 12), dict[Any, float](), []
    exact = np.array([expected(at, known) for at in tried])
    assert len(known) > 300 and np.abs(exact).max() < 1.01 and len(set(exact.tolist())) > 5
    for simulations in (50, 4000):
        config = replace(QUIET, num_simulations=simulations, gumbel_actions=gumbel_actions)
        search = Search(Kernels(RACE), config, blank, len(tried))
        states, zeros = np.array([at.state for at in tried]), np.zeros(len(tried), np.int64)
        errors.append(float(np.abs(search.run(states, np.arange(len(tried)), zeros).values - exact).mean()))
    assert errors[1] < 0.05 and errors[1] < errors[0]


def test_only_what_every_outcome_wins_is_proven():
    """After sixteen sixes a roll wins unless it is a 1, 2 or 3."""
    rolls = az.search(PIG.position([0, 5] * 16), planted, simulations=300)
    assert not rolls.proven
    won = az.search(RACE.position([1, 1, 1, 1, 1, 1]), planted, simulations=50)  # three steps each: one more wins
    assert won.proven and won.value == 1.0 and won.best == 1


def test_what_a_search_of_dice_cannot_do_is_refused():
    due = PIG.start().play(0)
    with pytest.raises(IllegalAction, match="a die is due"):
        az.search(due, planted, simulations=4)
    with pytest.raises(IllegalAction, match="a die is due"):
        Search(Kernels(PIG), QUIET, planted, 1).run(due.state[None], np.zeros(1, np.int64), np.zeros(1, np.int64))
    for setting in ({"reuse_subtree": True}, {"leaves_per_step": 2}):
        with pytest.raises(InvalidSetting, match="keeps no subtree and takes a leaf a step"):
            Search(Kernels(PIG), replace(QUIET, **setting), planted, 1)
