"""A game of four cells for tests, whose rules are plain Python: each player takes cells, and the last one wins."""

from typing import Any

import numpy as np

from alphazero.game import Game, Rules

ONE = np.uint64(1)


def init(state):
    state[:] = np.uint64(0)


def legal(state, legal_mask):
    for action in range(4):
        legal_mask[action] = (state[0] | state[1]) >> np.uint64(action) & ONE == np.uint64(0)


def step(state, action):
    own = state[0] | ONE << np.uint64(action)
    state[0], state[1] = state[1], own


def is_terminal(state):
    return state[0] | state[1] == np.uint64(15)


def terminal_value(state):
    return -1.0


def observe(state, planes):
    for word in range(2):
        for cell in range(4):
            planes[word, cell // 2, cell % 2] = float(state[word] >> np.uint64(cell) & ONE)


RULES = Rules(init, legal, step, is_terminal, terminal_value, observe)


class FourCells(Game):
    """`state` is (own cells, the opponent's cells); who takes the last cell wins."""

    name = "four_cells"
    num_actions, state_words, max_plies = 4, 2, 4
    observation_shape = (2, 2, 2)
    rules: Any = RULES
