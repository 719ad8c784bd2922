"""A game for tests in which a player may move twice in a row: stones are taken from a pile of twelve.

A turn takes one, two or three stones. Who takes one from an odd pile moves again. When the pile is gone, more stones
win. `state` is (pile, own stones, opponent's stones, player to move).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from alphazero.game import Game, Rules

PILE = 12
ZERO, ONE = np.uint64(0), np.uint64(1)


@njit
def init(state):
    state[0] = np.uint64(PILE)
    state[1] = state[2] = state[3] = ZERO


@njit
def legal(state, legal_mask):
    for action in range(3):
        legal_mask[action] = state[0] >= np.uint64(action + 1)


@njit
def step(state, action):
    taken = np.uint64(action + 1)
    again = taken == ONE and state[0] & ONE == ONE
    own = state[1] + taken
    state[0] = state[0] - taken
    if again:
        state[1] = own
    else:
        state[1] = state[2]
        state[2] = own
        state[3] = ONE - state[3]


@njit
def is_terminal(state):
    return state[0] == ZERO


@njit
def terminal_value(state):
    if state[1] == state[2]:
        return 0.0
    return 1.0 if state[1] > state[2] else -1.0


@njit
def observe(state, planes):
    for i in range(3):
        planes[0, 0, i] = float(state[i]) / PILE


@njit
def to_play(state):
    return int(state[3])


class DoubleMove(Game):
    """Actions 0-2 take one to three stones; people write 1-3."""

    name = "double_move"
    num_actions, state_words, max_plies = 3, 4, PILE
    observation_shape = (1, 1, 3)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, to_play)

    def render(self, state: np.ndarray, to_play: int) -> str:
        stones = int(state[1]), int(state[2])
        first, second = stones if to_play == 0 else stones[::-1]
        return f"pile {int(state[0])}, first player {first}, second player {second}"

    def format_action(self, action: int, state: np.ndarray) -> str:
        return str(action + 1)

    def parse_action(self, text: str, state: np.ndarray) -> int:
        return int(text) - 1


def exact_result(pile: int = PILE, first: int = 0, second: int = 0, to_play: int = 0) -> int:
    """+1 if the first player wins with best play, 0 for a draw, -1: by brute force, from the words above alone."""
    if pile == 0:
        return (first > second) - (first < second)
    results = []
    for taken in range(1, min(3, pile) + 1):
        stones = [first, second]
        stones[to_play] += taken
        mover = to_play if taken == 1 and pile % 2 == 1 else 1 - to_play
        results.append(exact_result(pile - taken, *stones, mover))
    return max(results) if to_play == 0 else min(results)
