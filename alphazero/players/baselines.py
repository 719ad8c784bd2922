"""The players without a network: random, alpha-beta to a depth, and greedy."""

from __future__ import annotations

from concurrent.futures import wait
from typing import Any

import numpy as np

from alphazero.errors import Stopped
from alphazero.game.kernels import Kernels
from alphazero.machine import Threads
from alphazero.players.player import Chooser, Player
from alphazero.settings import check_range

# Names that `Kernels.bind` replaces by one game's own.
legal: Any
step: Any
is_terminal: Any
terminal_value: Any
mover: Any
heuristic: Any
search_alpha_beta: Any


class RandomPlayer(Player):
    """Every legal action is equally likely."""

    name = "random"

    def __init__(self, kernels: Kernels, seed: int):
        self._kernels, self._chooser = kernels, Chooser(kernels, seed)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        legal_masks, _, _ = self._kernels.describe_all(states)
        return self._chooser.by_weight(legal_masks, games, plies)


class MinimaxPlayer(Player):
    """Alpha-beta to `depth` plies; wins as soon and loses as late as it can see, equal actions at random."""

    def __init__(self, kernels: Kernels, depth: int, seed: int, threads: int = 1):
        check_range("the depth of minimax", depth, 1, kernels.game.max_plies)
        self.name = f"minimax:{depth}"
        self._stop = np.zeros(1, bool)
        self._values, self._chooser = action_values(kernels, depth, self._stop), Chooser(kernels, seed)
        self._pool = Threads(threads)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        pieces = [states[start : start + 16] for start in range(0, len(states), 16)]
        tasks = [self._pool.submit(self._values, piece) for piece in pieces]
        try:
            values = np.concatenate([task.result() for task in tasks])
        except BaseException:
            self._stop[0] = True  # Ctrl-C reaches this thread alone: the others would go on
            raise
        finally:
            wait(tasks)
            stopped, self._stop[0] = bool(self._stop[0]), False
        if stopped:
            raise Stopped
        return self._chooser.best(values, games, plies)

    def interrupt(self) -> None:
        self._stop[0] = True


class GreedyPlayer(MinimaxPlayer):
    """Takes a win, blocks a loss, else plays at random (or as the game's `heuristic` says): minimax at two plies."""

    def __init__(self, kernels: Kernels, seed: int):
        super().__init__(kernels, min(2, kernels.game.max_plies), seed)
        self.name = "greedy"


def _search_alpha_beta(state, player, depth, alpha, beta, legal_mask_stack, stop):
    """Exact result at `depth` plies for `player`, who moves at `state`; wins sooner and losses later count more.

    Values are in (-1, 1) at the horizon and +-(2 + depth left) at the end of a game, so that they never mix.
    They mean nothing once another thread has set `stop bool[1]`.
    """
    if is_terminal(state):
        return terminal_value(state) * (2.0 + depth)
    if depth == 0 or stop[0]:
        return heuristic(state)
    mask = legal_mask_stack[depth]
    legal(state, mask)
    best = -1e9
    for action in range(len(mask)):
        if mask[action]:
            child = state.copy()
            step(child, action)
            child_player = mover(child, 1 - player)
            if child_player == player:
                value = search_alpha_beta(child, child_player, depth - 1, alpha, beta, legal_mask_stack, stop)
            else:
                value = -search_alpha_beta(child, child_player, depth - 1, -beta, -alpha, legal_mask_stack, stop)
            best = max(best, value)
            alpha = max(alpha, value)
            if alpha >= beta:
                break
    return best


def _action_values(states, depth, legal_mask_stack, stop, values):
    """Minimax values `float64[n, A]` of every legal action at `depth` plies; `legal_mask_stack bool[depth + 1, A]`."""
    for i in range(len(states)):
        player = mover(states[i], 0)
        mask = legal_mask_stack[depth].copy()
        legal(states[i], mask)
        for action in range(len(mask)):
            values[i, action] = -1e9
            if mask[action]:
                child = states[i].copy()
                step(child, action)
                child_player = mover(child, 1 - player)
                value = search_alpha_beta(child, child_player, depth - 1, -1e9, 1e9, legal_mask_stack, stop)
                values[i, action] = value if child_player == player else -value


def action_values(kernels: Kernels, depth: int, stop: np.ndarray | None = None):
    """A function from `uint64[n, K]` to the minimax values `float64[n, A]` of the actions, -1e9 where illegal.

    `stop bool[1]`: another thread may set it, and the values are worth nothing then.
    """
    stopping = np.zeros(1, bool) if stop is None else stop
    kernel = kernels.bind(_action_values, _search_alpha_beta)

    def evaluate(states: np.ndarray) -> np.ndarray:
        values = np.empty((len(states), kernels.game.num_actions))
        kernel(states, depth, np.empty((depth + 1, kernels.game.num_actions), bool), stopping, values)
        return values

    return evaluate
