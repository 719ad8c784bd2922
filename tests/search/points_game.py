"""A game with points for tests: a throw decides who moves next, and a double move makes two throws due at once."""

from __future__ import annotations

import numpy as np

from alphazero.game import Game, Rules, Score

ONE = np.uint64(1)


def init(state):
    state[:] = np.uint64(0)


def legal(state, legal_mask):
    legal_mask[:] = True
    legal_mask[2] = state[0] % np.uint64(2) == 0


def hand_over(state):
    state[0], state[1], state[3] = state[1], state[0], ONE - state[3]


def step(state, action):
    state[4] += ONE
    if action == 0:
        state[2] = ONE
    elif action == 1:
        state[0] += np.uint64(2)
        hand_over(state)
    else:
        state[0] += ONE
        state[2] = np.uint64(2)


def chance(state, probabilities):
    if state[2] == np.uint64(0):
        return 0
    probabilities[0], probabilities[1] = 0.7, 0.3
    return 2


def settle(state, outcome):
    state[2] -= ONE
    if outcome == 1:
        state[1] += ONE
        hand_over(state)


def is_terminal(state):
    return state[4] >= np.uint64(8) and state[2] == np.uint64(0)


def terminal_value(state):
    return min(max(float(np.int64(state[0]) - np.int64(state[1])), -3.0), 3.0)


def observe(state, planes):
    planes[0, 0, 0] = state[0]
    planes[1, 0, 0] = state[1]


def to_play(state):
    return np.int64(state[3])


class Points(Game):
    """Action 0 throws, 1 takes two points and hands over, 2 takes one of an even number, with two throws due.

    Outcome 1 gives the other player a point, and the turn.
    `state` is (own points, other's, throws due, player, actions).
    """

    name = "points"
    num_actions, num_outcomes, dice_in_a_row, state_words, max_plies = 3, 2, 2, 5, 8
    observation_shape = (2, 1, 1)
    score = Score(-3, 3)
    rules = Rules(
        init, legal, step, is_terminal, terminal_value, observe, to_play, chance=chance, settle=settle,
    )  # fmt: skip


POINTS = Points()
