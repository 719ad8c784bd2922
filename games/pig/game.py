"""Pig: who first has 100 points wins. The mover rolls a die as often as they like, and holds to keep the turn's points.

A 1 ends the turn and loses its points. As soon as the points of the turn reach 100 with those kept before, the game is
won. `state` is one word, with a number in each of these fields:

own points    other's points    points of the turn    a die is due    player to move    actions played
7 bits        7 bits            7 bits                1 bit           1 bit             16 bits
"""

from __future__ import annotations

import numpy as np
from numba import njit

from alphazero.game import Game, Rules

ROLL, HOLD = 0, 1
WORDS = ("roll", "hold")
GOAL = 100
SIDES = 6
MOST_ACTIONS = 400
"""The game is drawn after so many actions of both players, so that it ends whatever they do. Perfect players need 83 on
average, and in one game of a million more than 300."""
OWN, OTHER, TURN, DIE, PLAYER, COUNT = 0, 7, 14, 21, 22, 23
"""The lowest bit of each field."""
SEVEN_BITS, ONE = np.uint64(0b111_1111), np.uint64(1)
STEP = 5
BANDS = GOAL // STEP


@njit
def points(state, field):
    return np.int64((state[0] >> np.uint64(field)) & SEVEN_BITS)


@njit
def flag(state, field):
    return np.int64((state[0] >> np.uint64(field)) & ONE)


@njit
def count(state):
    return np.int64(state[0] >> np.uint64(COUNT))


@njit
def write(state, own, other, turn, die, player, actions):
    """Writes all fields."""
    word = np.uint64(own) | np.uint64(other) << np.uint64(OTHER) | np.uint64(turn) << np.uint64(TURN)
    word |= np.uint64(die) << np.uint64(DIE) | np.uint64(player) << np.uint64(PLAYER)
    state[0] = word | np.uint64(actions) << np.uint64(COUNT)


@njit
def init(state):
    state[0] = np.uint64(0)


@njit
def legal(state, legal_mask):
    legal_mask[ROLL] = True
    legal_mask[HOLD] = points(state, TURN) > 0


@njit
def pass_die(state, own):
    """Ends the mover's turn with `own` points: the other player has the die."""
    write(state, points(state, OTHER), own, 0, 0, 1 - flag(state, PLAYER), count(state))


@njit
def step(state, action):
    state[0] += ONE << np.uint64(COUNT)
    if action == ROLL:
        state[0] |= ONE << np.uint64(DIE)
    else:
        pass_die(state, points(state, OWN) + points(state, TURN))


@njit
def chance(state, probabilities):
    if flag(state, DIE) == 0:
        return 0
    for outcome in range(SIDES):
        probabilities[outcome] = 1.0 / SIDES
    return SIDES


@njit
def settle(state, outcome):
    own, turn = points(state, OWN), points(state, TURN)
    if outcome == 0:
        pass_die(state, own)
    else:
        write(state, own, points(state, OTHER), turn + outcome + 1, 0, flag(state, PLAYER), count(state))


@njit
def has_won(state):
    return points(state, OWN) + points(state, TURN) >= GOAL


@njit
def is_terminal(state):
    return flag(state, DIE) == 0 and (has_won(state) or count(state) >= MOST_ACTIONS)


@njit
def terminal_value(state):
    return 1.0 if has_won(state) else 0.0  # only the mover, whose roll was the last, can have won


@njit
def draw_bar(planes, first, amount):
    """Fills BANDS planes from `first` on, one after another, each with STEP points of the amount."""
    for band in range(BANDS):
        planes[first + band, 0, 0] = min(max(amount - STEP * band, 0), STEP) / STEP


@njit
def observe(state, planes):
    """The points of the mover, of the other, of the turn, and the mover's if they hold; and whether they may hold."""
    own, other, turn = points(state, OWN), points(state, OTHER), points(state, TURN)
    draw_bar(planes, 0, own)
    draw_bar(planes, BANDS, other)
    draw_bar(planes, 2 * BANDS, turn)
    draw_bar(planes, 3 * BANDS, own + turn)
    planes[4 * BANDS, 0, 0] = 1.0 if turn > 0 else 0.0


@njit
def to_play(state):
    return flag(state, PLAYER)


class Pig(Game):
    """Action 0 rolls, 1 holds; outcome i of the die is the number i + 1."""

    name = "pig"
    num_actions, num_outcomes, state_words, max_plies = 2, SIDES, 1, MOST_ACTIONS
    observation_shape = (4 * BANDS + 1, 1, 1)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, to_play, chance=chance, settle=settle)

    def render(self, state: np.ndarray, to_play: int) -> str:
        """A line for each player, the mover's with the points of the turn, and what they do."""
        own, other, turn = (int(state[0]) >> field & 0b111_1111 for field in (OWN, OTHER, TURN))
        rolls = int(state[0]) >> DIE & 1
        kept = (own, other) if to_play == 0 else (other, own)
        lines = [f"player {player + 1}   {amount:3}" for player, amount in enumerate(kept)]
        lines[to_play] += f" + {turn}{', rolls' * rolls}"
        return "\n".join(lines)

    def format_action(self, action: int, state: np.ndarray) -> str:
        return WORDS[action]

    def parse_action(self, text: str, state: np.ndarray) -> int:
        return WORDS.index(text.lower())
