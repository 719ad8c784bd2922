"""The players without a network: random, alpha-beta to a depth, greedy, and the best by a score; what solvers share."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from alphazero.errors import InvalidSetting, Stopped
from alphazero.game.kernels import Kernels
from alphazero.machine import Threads, count_cores
from alphazero.players.player import Chooser, Player
from alphazero.search.tree import make_arrays
from alphazero.settings import check_range

NO_SCORE = -100
"""In arrays of scores: the action is not legal."""
GREEDY_PLIES = 2
"""Plies that `greedy` looks ahead where no dice fall."""


class RandomPlayer(Player):
    """Every legal action is equally likely."""

    name = "random"

    def __init__(self, kernels: Kernels, seed: int):
        self._kernels, self._chooser = kernels, Chooser(seed)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        legal_masks, _, _ = self._kernels.describe_all(states)
        return self._chooser.by_weight(legal_masks, games, plies)


class MinimaxPlayer(Player):
    """Alpha-beta to `depth` plies; wins as soon and loses as late as it can see, equal actions at random.

    In games with dice it looks at one ply, and takes exact means over the dice. In games for one it wants the most
    points. In games for more than two it expects that all others play against it (the paranoid search of Sturtevant and
    Korf 2000).
    """

    def __init__(self, kernels: Kernels, depth: int, seed: int, threads: int = 1):
        check_range("the depth of minimax", depth, 1, kernels.game.max_plies)
        if kernels.game.num_outcomes and depth > 1:
            law = "minimax looks one ply ahead in a game with dice: take minimax:1, or mcts:400, which looks further"
            raise InvalidSetting(f"{law} (not minimax:{depth})")
        self.name = f"minimax:{depth}"
        self._stop = np.zeros(1, bool)
        self._values, self._chooser = action_values(kernels, depth, self._stop), Chooser(seed)
        self._pool = Threads(threads)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        pieces = [states[start : start + 16] for start in range(0, len(states), 16)]
        try:
            values = self._pool.run(self._values, pieces, self.interrupt)
        finally:
            stopped, self._stop[0] = bool(self._stop[0]), False
        if stopped:
            raise Stopped
        return self._chooser.best(np.concatenate(values), games, plies)

    def interrupt(self) -> None:
        self._stop[0] = True


class GreedyPlayer(MinimaxPlayer):
    """Takes a win, blocks a loss, else plays at random (or as the game's `heuristic` says): minimax at two plies.

    In games with dice at one ply.
    """

    def __init__(self, kernels: Kernels, seed: int):
        super().__init__(kernels, 1 if kernels.game.num_outcomes else min(GREEDY_PLIES, kernels.game.max_plies), seed)
        self.name = "greedy"


class AlphaBeta(NamedTuple):
    """The positions on the way from the root to the one that is looked at; those with l plies left are in row l."""

    states: Annotated[np.ndarray, "uint64[D, K]"]
    movers: Annotated[np.ndarray, "int8[D]"]
    legal_masks: Annotated[np.ndarray, "bool[D, A]"]
    actions: Annotated[np.ndarray, "int64[D]"]  # that was tried last
    best: Annotated[np.ndarray, "float64[D]"]
    alpha: Annotated[np.ndarray, "float64[D]"]
    beta: Annotated[np.ndarray, "float64[D]"]
    results: Annotated[np.ndarray, "float32[1, V]"]  # scratch space


def _result_for(viewer, state, player, results):
    """The viewer's result at the end of a game, where `player` is to move; `results float32[1, V]`: scratch space."""
    write_result(state, results, 0)
    seats = results.shape[1]
    result = float(results[0, (viewer - player) % seats])
    return -result if seats == 1 and viewer != player else result


def _on_one_side(player, other, root):
    """The two are the root's player, or both are none."""
    return (player == root) == (other == root)


def _go_down(way, left, root, action):
    """Plays the action in row `left`, which gives the row below; it begins with the same window, for its mover."""
    for word in range(way.states.shape[1]):
        way.states[left - 1, word] = way.states[left, word]
    step(way.states[left - 1], int(action))  # as in `game.kernels._play`
    way.movers[left - 1] = mover(way.states[left - 1], following(way.movers[left]))
    same = on_one_side(way.movers[left - 1], way.movers[left], root)
    way.alpha[left - 1] = way.alpha[left] if same else -way.beta[left]
    way.beta[left - 1] = way.beta[left] if same else -way.alpha[left]


def _search_alpha_beta(way, depth, root, alone, stop):
    """Exact result at `depth` plies for the mover in row `depth`; wins sooner and losses later count more.

    Values are in (-1, 1) at the horizon and +-(2 + plies left) at the end of a game, so that they never mix. In a game
    for one (`alone`) they are thrice the result, with the points since the first of all states, and what the heuristic
    expects. `root` is the player who is to find an action. Values mean nothing once another thread has set
    `stop bool[1]`. Without recursion, whose code cannot be kept on disk.
    """
    left, first = depth, way.states[len(way.states) - 1]
    while True:
        state, known, value = way.states[left], True, 0.0
        if is_terminal(state):
            value = result_for(root, state, way.movers[left], way.results) * (3.0 if alone else 2.0 + left)
            value = value if on_one_side(way.movers[left], root, root) else -value
        elif left == 0 or stop[0]:
            value = float(heuristic(state))
        else:
            known = False
            legal(state, way.legal_masks[left])
            way.best[left], way.actions[left] = -1e9, -1
        if known and alone:
            value += 3.0 * gained(first, state)
        while True:  # up, as far as there is nothing more to try
            if known:
                if left == depth:
                    return value
                left += 1
                value = value if on_one_side(way.movers[left - 1], way.movers[left], root) else -value
                way.best[left] = max(way.best[left], value)
                way.alpha[left] = max(way.alpha[left], value)
            action = way.actions[left] + 1
            while action < way.legal_masks.shape[1] and not way.legal_masks[left, action]:
                action += 1
            if action < way.legal_masks.shape[1] and way.alpha[left] < way.beta[left]:
                break
            known, value = True, way.best[left]
        way.actions[left] = action
        go_down(way, left, root, action)
        left -= 1


def _action_values(states, depth, way, alone, stop, values):
    """Minimax values `float64[n, A]` of every legal action at `depth` plies."""
    for i in range(len(states)):
        for word in range(states.shape[1]):
            way.states[depth, word] = states[i, word]
        way.movers[depth] = root = mover(states[i], 0)
        way.alpha[depth], way.beta[depth] = -1e9, 1e9
        legal(states[i], way.legal_masks[depth])
        for action in range(values.shape[1]):
            values[i, action] = -1e9
            if way.legal_masks[depth, action]:
                go_down(way, depth, root, action)
                value = search_alpha_beta(way, depth - 1, root, alone, stop)
                values[i, action] = value if on_one_side(way.movers[depth - 1], root, root) else -value


def action_values(kernels: Kernels, depth: int, stop: np.ndarray | None = None):
    """A function from `uint64[n, K]` to the minimax values `float64[n, A]` of the actions, -1e9 where illegal.

    `stop bool[1]`: another thread may set it, and the values are worth nothing then.
    """
    if kernels.game.num_outcomes:
        return _means_over_dice(kernels)
    stopping = np.zeros(1, bool) if stop is None else stop
    kernel = kernels.bind(_action_values, _result_for, _on_one_side, _go_down, _search_alpha_beta)
    num_actions, words = kernels.game.num_actions, kernels.game.state_words

    def evaluate(states: np.ndarray) -> np.ndarray:
        values, sizes = np.empty((len(states), num_actions)), {"K": words, "A": num_actions}
        way = make_arrays(AlphaBeta, np.empty, D=depth + 1, V=kernels.game.num_values, **sizes)
        kernel(states, depth, way, kernels.game.num_players == 1, stopping, values)
        return values

    return evaluate


class Dice(NamedTuple):
    """The states on the way from an action to a state where no die is due, D dice later at most."""

    states: Annotated[np.ndarray, "uint64[D, K]"]
    movers: Annotated[np.ndarray, "int8[D]"]
    masses: Annotated[np.ndarray, "float64[D]"]  # the probability to come here
    probabilities: Annotated[np.ndarray, "float64[D, C]"]
    counts: Annotated[np.ndarray, "int64[D]"]
    shown: Annotated[np.ndarray, "int64[D]"]  # the outcome that is looked at
    results: Annotated[np.ndarray, "float32[1, V]"]  # scratch space


def _action_means(states, dice, legal_mask, values):
    """The means `float64[n, A]` of the legal actions over all dice that follow, for the mover; results count thrice."""
    for i in range(len(states)):
        player = mover(states[i], 0)
        legal(states[i], legal_mask)
        for action in range(len(legal_mask)):
            values[i, action] = 0.0 if legal_mask[action] else -1e9
            if not legal_mask[action]:
                continue
            for word in range(states.shape[1]):
                dice.states[0, word] = states[i, word]
            step(dice.states[0], action)
            dice.movers[0], dice.masses[0] = mover(dice.states[0], following(player)), 1.0
            at, is_new = 0, True
            while at >= 0:
                state, over = dice.states[at], is_terminal(dice.states[at])
                if is_new:
                    is_last = over or at + 1 == len(dice.counts)  # a game may have more dice in a row than it says
                    dice.counts[at], dice.shown[at] = 0 if is_last else chance(state, dice.probabilities[at]), -1
                if dice.counts[at] == 0:
                    if over:
                        value = 3.0 * result_for(player, state, dice.movers[at], dice.results)
                    else:
                        value = heuristic(state) if dice.movers[at] == player else -heuristic(state)
                    values[i, action] += dice.masses[at] * (value + 3.0 * gained(states[i], state))
                dice.shown[at] += 1
                if dice.shown[at] >= dice.counts[at]:
                    at, is_new = at - 1, False
                    continue
                for word in range(states.shape[1]):
                    dice.states[at + 1, word] = state[word]
                settle(dice.states[at + 1], dice.shown[at])
                dice.movers[at + 1] = mover(dice.states[at + 1], dice.movers[at])
                dice.masses[at + 1] = dice.masses[at] * dice.probabilities[at, dice.shown[at]]
                at, is_new = at + 1, True


def _means_over_dice(kernels: Kernels):
    """`action_values` at one ply for a game with dice."""
    game, kernel = kernels.game, kernels.bind(_action_means, _result_for)

    def evaluate(states: np.ndarray) -> np.ndarray:
        values, mask = np.empty((len(states), game.num_actions)), np.empty(game.num_actions, bool)
        sizes = {"K": game.state_words, "C": game.num_outcomes, "V": game.num_values}
        dice = make_arrays(Dice, np.zeros, D=1 + game.dice_in_a_row, **sizes)
        kernel(states, dice, mask, values)
        return values

    return evaluate


# --- for games that can be solved ---


class ExactSolver:
    """Solves positions on all cores. Each thread has a memory of its own, which `make_memory` makes for its kernels.

    The first word of a memory's last array counts the positions looked at.
    """

    def __init__(self, make_memory: Callable[[], tuple[np.ndarray, ...]], threads: int | None = None):
        self.threads = count_cores() if threads is None else threads
        self._make_memory = make_memory
        self._pool, self._own = Threads(self.threads), threading.local()
        self._memories: list[tuple[np.ndarray, ...]] = []

    @property
    def num_nodes(self) -> int:
        """Positions looked at so far."""
        return sum(int(memory[-1].flat[0]) for memory in self._memories)

    def memory(self) -> tuple[np.ndarray, ...]:
        """The memory of this thread."""
        if not hasattr(self._own, "memory"):
            self._own.memory = self._make_memory()
            self._memories.append(self._own.memory)
        return self._own.memory  # type: ignore[no-any-return]

    def share(self, count: int, size: int, work: Callable[..., Any], threads: int | None = None) -> None:
        """Calls `work(slice, *memory)` for `count` rows, `size` at a time, on some or all of the solver's `threads`."""
        starts = iter(range(0, count, size))

        def take(_: int) -> None:
            memory = self.memory()
            for start in starts:
                work(slice(start, start + size), *memory)

        list(self._pool.map(take, range(min(threads or self.threads, math.ceil(count / size)))))


class ScorePlayer(Player):
    """Plays an action of the highest score, equally good ones at random; `score(states) -> [n, A]`."""

    def __init__(self, name: str, seed: int, score: Callable[[np.ndarray], np.ndarray]):
        self.name, self._score, self._chooser = name, score, Chooser(seed)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        return self._chooser.best(self._score(states), games, plies)
