"""A small game with all that dice can do, for the searches on a GPU: `tests.search.dice_games:PointsRace`."""

import numpy as np

from alphazero.game import Game, Rules, Score

NONE, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)
GOAL, LAST = np.uint64(6), np.uint64(14)


def init(state):
    """Words: the steps of both players, dice due, who moves, plies. The first move is rolled for."""
    state[:] = NONE
    state[2] = ONE


def legal(state, legal_mask):
    legal_mask[:] = True


def step(state, action):
    """Action 0 throws two dice, one after another; action 1 walks, and moves again after an odd step."""
    state[4] += ONE
    if action == 0:
        state[2] = TWO
    else:
        state[state[3]] += ONE
        if state[state[3]] % TWO == NONE:
            state[3] = ONE - state[3]


def chance(state, probabilities):
    if state[2] == NONE:
        return 0
    if state[2] == ONE:  # the second die is a coin
        probabilities[0] = probabilities[1] = 0.5
        return 2
    probabilities[0], probabilities[1], probabilities[2], probabilities[3] = 0.1, 0.2, 0.3, 0.4
    return 4


def settle(state, outcome):
    """A 4 throws away the second die, and moves again."""
    mover = state[3]
    state[2] -= ONE
    state[mover] += np.uint64(1 + outcome)
    if state[mover] >= GOAL or outcome == 3:
        state[2] = NONE
    if state[2] == NONE and outcome < 3:
        state[3] = ONE - mover


def is_terminal(state):
    return state[0] >= GOAL or state[1] >= GOAL or state[4] >= LAST


def terminal_value(state):
    """Points: two if the other one has walked two steps or fewer."""
    if state[0] < GOAL and state[1] < GOAL:
        return 0
    won = 0 if state[0] >= GOAL else 1
    points = 2 if state[1 - won] <= TWO else 1
    return points if np.uint64(won) == state[3] else -points


def observe(state, planes):
    for word in range(5):
        planes[word, 0, 0] = state[word]


def to_play(state):
    return np.int64(state[3])


class PointsRace(Game):
    """To six steps, for points: dice at the start, two in a row, dice that decide who moves, and double moves."""

    name = "points_race"
    num_actions, num_outcomes, dice_in_a_row, state_words, max_plies = 2, 4, 2, 5, 14
    observation_shape, score = (5, 1, 1), Score(-2, 2)
    rules = Rules(
        init, legal, step, is_terminal, terminal_value, observe, chance=chance, settle=settle, to_play=to_play
    )


class SaysOne(PointsRace):
    """Has more dice in a row than it says, so that its trees have too little room."""

    name, dice_in_a_row = "says_one", 1
