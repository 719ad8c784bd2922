"""A game for one without dice: who takes numbers from both ends of a row wants a large sum."""

from __future__ import annotations

import numpy as np

from alphazero.game import Game, Rules, Score

NUMBERS = (3, 1, 6, 2, 5, 4, 1, 6, 2, 3, 9, 1, 4, 2, 8, 5)
ONE = np.uint64(1)


def init(state):
    state[:] = np.uint64(0)


def legal(state, legal_mask):
    legal_mask[:] = True


def step(state, action):
    """Action 0 takes the first number, 1 the last one, 2 the second and drops the first."""
    if action == 1:
        state[2] += np.uint64(NUMBERS[len(NUMBERS) - 1 - np.int64(state[1])])
        state[1] += ONE
    else:
        state[2] += np.uint64(NUMBERS[np.int64(state[0]) + action // 2])
        state[0] += np.uint64(1 + action // 2)
    state[3] += ONE


def is_terminal(state):
    return state[3] == np.uint64(8)


def terminal_value(state):
    return float(state[2])


def observe(state, planes):
    for row in range(3):
        planes[row, 0, np.int64(state[(0, 1, 3)[row]])] = 1.0


class Row(Game):
    """8 numbers are taken."""

    name = "row"
    num_players, score, points_word = 1, Score(0, 72), 2
    num_actions, state_words, max_plies = 3, 4, 8
    observation_shape = (3, 1, 17)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe)

    def render(self, state: np.ndarray, to_play: int) -> str:
        return " ".join(map(str, state))


ROW = Row()
