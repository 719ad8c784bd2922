"""A game with repetitions for tests: three in a row win, and a position that is there a third time is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from alphazero.game import Game, Rules

ZERO, ONE = np.uint64(0), np.uint64(1)
SHOWN, PLIES = 3, 24
STEPS = np.array([-3, 3, -1, 1])
LINES = np.array([0o070, 0o111, 0o222, 0o444, 0o421, 0o124], np.uint64)
MIRRORED = np.array([int(f"{bits:03b}"[::-1], 2) for bits in range(8)], np.uint64)


def init(state):
    state[:] = ZERO
    state[0] = np.uint64(0o007)
    state[1] = np.uint64(0o700)


def fits(state, action):
    cell, direction = action // 4, action % 4
    to = cell + STEPS[direction]
    if to < 0 or to > 8 or (direction > 1 and to // 3 != cell // 3):
        return False
    return (state[0] >> np.uint64(cell)) & ONE == ONE and ((state[0] | state[1]) >> np.uint64(to)) & ONE == ZERO


def legal(state, legal_mask):
    for action in range(36):
        legal_mask[action] = fits(state, action)


def key(state):
    return ONE << np.uint64(63) | state[2] << np.uint64(18) | state[1] << np.uint64(9) | state[0]


def played(state):
    """Positions before this one, as far as the state knows."""
    count = 0
    while count < PLIES and state[SHOWN + count] != ZERO:
        count += 1
    return count


def step(state, action):
    count = played(state)
    if count < PLIES:
        state[SHOWN + count] = key(state)
    cell = action // 4
    own = state[0] ^ (ONE << np.uint64(cell) | ONE << np.uint64(cell + STEPS[action % 4]))
    state[0], state[1], state[2] = state[1], own, ONE - (state[2] & ONE)


def has_lost(state):
    for line in range(len(LINES)):
        if state[1] & LINES[line] == LINES[line]:
            return True
    return False


def is_terminal(state):
    times, count = 0, played(state)
    for ply in range(count):
        times += state[SHOWN + ply] == key(state)
    if times >= 2 or count == PLIES or has_lost(state):
        return True
    for action in range(36):
        if fits(state, action):
            return False
    return True


def terminal_value(state):
    return -1.0 if has_lost(state) else 0.0


def observe(state, planes):
    for cell in range(9):
        planes[0, cell // 3, cell % 3] = state[0] >> np.uint64(cell) & ONE
        planes[1, cell // 3, cell % 3] = state[1] >> np.uint64(cell) & ONE
        planes[2, cell // 3, cell % 3] = state[2] & ONE


def transform(state, symmetry):
    if symmetry == 1:
        for word in range(2):
            rows, mirrored = state[word], ZERO
            for row in range(3):
                mirrored |= MIRRORED[rows >> np.uint64(3 * row) & np.uint64(7)] << np.uint64(3 * row)
            state[word] = mirrored


class Repetition(Game):
    """`state` is (own men, the opponent's, player to move), then the positions that were there before.

    Three men each begin in the rows at the edges and step up, down, left or right.
    """

    name = "repetition"
    num_actions, state_words, history_words, max_plies = 36, SHOWN + PLIES, PLIES, PLIES
    observation_shape = (3, 3, 3)
    rules: Any = Rules(init, legal, step, is_terminal, terminal_value, observe, transform=transform)

    @property
    def symmetries(self) -> Any:
        cells = np.arange(9).reshape(3, 3)[:, ::-1].ravel()
        actions = (4 * cells[:, None] + [0, 1, 3, 2]).ravel()
        return np.stack([np.arange(9), cells]), np.stack([np.arange(36), actions])


REPETITION = Repetition()
