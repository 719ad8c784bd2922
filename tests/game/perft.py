"""Perft: how many sequences of actions a game has, the standard check of its rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from alphazero.game import Position
from alphazero.game.kernels import Kernels

# Names that `Kernels.bind` replaces by one game's own.
legal: Any
step: Any
is_terminal: Any


def _perft(states, masks, actions):
    """Sequences of as many actions as `actions` has from `states[0]`; a game that ends sooner does not count."""
    total = level = 0
    actions[0] = 0
    legal(states[0], masks[0])
    while level >= 0:
        action = actions[level]
        actions[level] += 1
        if action == masks.shape[1]:
            level -= 1
        elif masks[level, action] and level + 1 == len(actions):
            total += 1
        elif masks[level, action]:
            for word in range(states.shape[1]):
                states[level + 1, word] = states[level, word]
            step(states[level + 1], action)
            if not is_terminal(states[level + 1]):
                level += 1
                actions[level] = 0
                legal(states[level], masks[level])
    return total


def count_games(kernels: Kernels, depth: int, position: Position | None = None) -> int:
    """Perft: the number of sequences of `depth` actions from the start position, or another one."""
    if depth == 0:
        return 1
    masks, states = np.empty((depth, kernels.game.num_actions), bool), kernels.start_states(depth)
    if position is not None:
        states[0] = position.state
    return int(kernels.bind(_perft)(states, masks, np.zeros(depth, np.int64)))
