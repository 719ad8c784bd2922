"""Kernels of the players without a network: random playouts, minimax, and the counting of games.

Templates as in `alphazero.kernels`: they call the rules by name and are bound to a game by `Kernels.bind`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from alphazero.kernels import Kernels
from alphazero.noise import ROLLOUT, combine, make_key, uniform

# Names that `Kernels.bind` replaces by one game's own.
legal: Any
step: Any
is_terminal: Any
terminal_value: Any
mover: Any
heuristic: Any
play_at_random: Any
search_alpha_beta: Any
perft: Any


def _play_at_random(state, mark, legal_mask):
    """Plays a legal action, all equally likely if `mark` is uniform in (0, 1); `legal_mask bool[A]`: scratch space."""
    legal(state, legal_mask)
    choice = int(mark * legal_mask.sum())
    for action in range(len(legal_mask)):
        if legal_mask[action]:
            if choice == 0:
                step(state, action)
                break
            choice -= 1


def _roll_out(states, seed, legal_mask, values):
    """Plays random games to the end; `values float32[n]` are the results for the movers at `states`.

    The games depend on (seed, state) alone. `legal_mask bool[A]` is scratch space.
    """
    for i in range(len(states)):
        key = make_key(seed, 0, 0, ROLLOUT)
        for word in states[i]:
            key = combine(key, word)
        state = states[i].copy()
        player = first = mover(state, 0)
        ply = 0
        while not is_terminal(state):
            play_at_random(state, uniform(key, ply), legal_mask)
            player = mover(state, 1 - player)
            ply += 1
        value = terminal_value(state)
        values[i] = value if player == first else -value


def _perft(state, depth, legal_mask_stack):
    """Sequences of `depth` actions from `state`; a game that ends sooner does not count."""
    if depth == 0:
        return 1
    if is_terminal(state):
        return 0
    mask = legal_mask_stack[depth]
    legal(state, mask)
    total = 0
    for action in range(len(mask)):
        if mask[action]:
            child = state.copy()
            step(child, action)
            total += perft(child, depth - 1, legal_mask_stack)
    return total


def _perft_start(state, depth, legal_mask_stack):
    return perft(state, depth, legal_mask_stack)


def _search_alpha_beta(state, player, depth, alpha, beta, legal_mask_stack):
    """Exact result at `depth` plies for `player`, who moves at `state`; wins sooner and losses later count more.

    Values are in (-1, 1) at the horizon and +-(2 + depth left) at the end of a game, so that they never mix.
    """
    if is_terminal(state):
        return terminal_value(state) * (2.0 + depth)
    if depth == 0:
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
                value = search_alpha_beta(child, child_player, depth - 1, alpha, beta, legal_mask_stack)
            else:
                value = -search_alpha_beta(child, child_player, depth - 1, -beta, -alpha, legal_mask_stack)
            best = max(best, value)
            alpha = max(alpha, value)
            if alpha >= beta:
                break
    return best


def _action_values(states, depth, legal_mask_stack, values):
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
                value = search_alpha_beta(child, child_player, depth - 1, -1e9, 1e9, legal_mask_stack)
                values[i, action] = value if child_player == player else -value


def count_games(kernels: Kernels, depth: int) -> int:
    """Perft: the number of sequences of `depth` actions from the start position."""
    stack = np.empty((depth + 1, kernels.game.num_actions), bool)
    return int(kernels.bind(_perft_start, _perft)(kernels.start_states(1)[0], depth, stack))


def action_values(kernels: Kernels, depth: int):
    """A function from `uint64[n, K]` to the minimax values `float64[n, A]` of the actions, -1e9 where illegal."""
    kernel = kernels.bind(_action_values, _search_alpha_beta)

    def evaluate(states: np.ndarray) -> np.ndarray:
        values = np.empty((len(states), kernels.game.num_actions))
        kernel(states, depth, np.empty((depth + 1, kernels.game.num_actions), bool), values)
        return values

    return evaluate


def playouts(kernels: Kernels, seed: int):
    """An `evaluate` for the search: equal priors, and the result of one random game as the value."""
    kernel = kernels.bind(_roll_out, _play_at_random)

    def evaluate(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values = np.empty(len(states), np.float32)
        kernel(states, seed, np.empty(kernels.game.num_actions, bool), values)
        return legal_masks.astype(np.float32), values

    return evaluate
