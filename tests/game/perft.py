"""Perft: how many sequences of actions a game has, the standard check of its rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from alphazero.game.kernels import Kernels

# Names that `Kernels.bind` replaces by one game's own.
legal: Any
step: Any
is_terminal: Any
perft: Any


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


def count_games(kernels: Kernels, depth: int) -> int:
    """Perft: the number of sequences of `depth` actions from the start position."""
    stack = np.empty((depth + 1, kernels.game.num_actions), bool)
    return int(kernels.bind(_perft_start, _perft)(kernels.start_states(1)[0], depth, stack))
