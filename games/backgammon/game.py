"""Backgammon without the doubling cube: a gammon counts 2 points, a backgammon 3.

Each player numbers the places in the direction of play: 25 is the bar, 24 to 1 are the points, 0 holds the checkers
borne off. So a player's place p is the other's 25 - p. Four bits hold the checkers of a place, two words those of a
player. `state` is (own, own, other's, other's, larger die, smaller die, moves left, player); 0 left: dice are due.

Each checker's move is an action: 6 * (place - 1) + die - 1; the last action is the pass, where no move is legal.
The opening roll is no double, since it decides who begins. Here the first player begins: the colours are alike.
"""

from __future__ import annotations

import re

import numpy as np
from numba import njit

from alphazero.game import Game, Rules, Score

ZERO, ONE = np.uint64(0), np.uint64(1)
BAR, PASS = 25, 150
OPENING_ROLLS, ROLLS = 15, 21
START = ((24, 2), (13, 5), (8, 3), (6, 5))


def _start_words() -> tuple[np.uint64, np.uint64]:
    word = sum(count << 4 * place for place, count in START)
    return np.uint64(word & (1 << 64) - 1), np.uint64(word >> 64)


START_LOW, START_HIGH = _start_words()


@njit
def count_at(low, high, place):
    """A player's checkers on a place."""
    word = low if place < 16 else high
    return np.int64((word >> np.uint64(4 * (place % 16))) & np.uint64(15))


@njit
def is_home(low, high):
    """No checker is behind the player's point 6."""
    return high == ZERO and low >> np.uint64(28) == ZERO


@njit
def can_move(low, high, other_low, other_high, place, die):
    """A checker can go from the place by the die, whatever else must be played."""
    if count_at(low, high, place) == 0 or (place != BAR and count_at(low, high, BAR) > 0):
        return False
    target = place - die
    if target > 0:
        return count_at(other_low, other_high, BAR - target) < 2
    if not is_home(low, high):
        return False
    return target == 0 or low >> np.uint64(4 * (place + 1)) == ZERO  # a larger die bears off from the highest point


@njit
def can_play(low, high, other_low, other_high, die):
    """Any checker can go by the die."""
    for place in range(1, BAR + 1):
        if can_move(low, high, other_low, other_high, place, die):
            return True
    return False


@njit
def moved(low, high, other_low, other_high, place, die):
    """The four words after a move; a lone checker of the other player on the target goes to the bar."""
    target = place - die if place > die else 0
    source_bit, target_bit = ONE << np.uint64(4 * (place % 16)), ONE << np.uint64(4 * (target % 16))
    if place < 16:
        low -= source_bit
    else:
        high -= source_bit
    if target < 16:
        low += target_bit
    else:
        high += target_bit
    there = BAR - target
    if target > 0 and count_at(other_low, other_high, there) == 1:
        hit = ONE << np.uint64(4 * (there % 16))
        if there < 16:
            other_low -= hit
        else:
            other_high -= hit
        other_high += ONE << np.uint64(4 * (BAR - 16))
    return low, high, other_low, other_high


@njit
def leaves_move(low, high, other_low, other_high, place, die, next_die):
    """The move is legal, and any checker can go by the next die then."""
    if not can_move(low, high, other_low, other_high, place, die):
        return False
    low, high, other_low, other_high = moved(low, high, other_low, other_high, place, die)
    return can_play(low, high, other_low, other_high, next_die)


@njit
def pips(low, high):
    """The sum of the places of a player's checkers, borne off at 0."""
    total = 0
    for place in range(1, BAR + 1):
        total += place * count_at(low, high, place)
    return total


@njit
def blots(low, high):
    """A player's lone checkers on points."""
    total = 0
    for place in range(1, BAR):
        total += 1 if count_at(low, high, place) == 1 else 0
    return total


@njit
def init(state):
    state[0] = state[2] = START_LOW
    state[1] = state[3] = START_HIGH
    state[4] = ONE  # the opening: no doubles
    state[5] = state[6] = state[7] = ZERO


@njit
def legal(state, legal_mask):
    """Both dice must be played where they can be, else the larger; moves of doubles take none from each other."""
    low, high, other_low, other_high = state[0], state[1], state[2], state[3]
    large, small = np.int64(state[4]), np.int64(state[5])
    for action in range(PASS + 1):
        legal_mask[action] = False
    found = False
    if state[6] == np.uint64(2) and large != small:
        for place in range(1, BAR + 1):
            if leaves_move(low, high, other_low, other_high, place, large, small):
                legal_mask[6 * (place - 1) + large - 1] = found = True
            if leaves_move(low, high, other_low, other_high, place, small, large):
                legal_mask[6 * (place - 1) + small - 1] = found = True
    for attempt in range(2):
        die = large if attempt == 0 else small
        if not found and die > 0:
            for place in range(1, BAR + 1):
                if can_move(low, high, other_low, other_high, place, die):
                    legal_mask[6 * (place - 1) + die - 1] = found = True
    legal_mask[PASS] = not found


@njit
def end_turn(state):
    state[0], state[2] = state[2], state[0]
    state[1], state[3] = state[3], state[1]
    state[4] = state[5] = state[6] = ZERO
    state[7] = ONE - state[7]


@njit
def step(state, action):
    if action == PASS:
        end_turn(state)
        return
    place, die = action // 6 + 1, action % 6 + 1
    state[0], state[1], state[2], state[3] = moved(state[0], state[1], state[2], state[3], place, die)
    state[6] -= ONE
    if state[6] == ZERO or count_at(state[0], state[1], 0) == 15:
        end_turn(state)
    elif state[4] != state[5]:
        if np.int64(state[4]) == die:
            state[4] = state[5]
        state[5] = ZERO


@njit
def chance(state, probabilities):
    if state[6] > ZERO:
        return 0
    if state[4] == ONE:
        for outcome in range(OPENING_ROLLS):
            probabilities[outcome] = 1.0 / 15.0
        return OPENING_ROLLS
    for outcome in range(ROLLS):
        probabilities[outcome] = 2.0 / 36.0 if outcome < OPENING_ROLLS else 1.0 / 36.0
    return ROLLS


@njit
def dice_of(outcome):
    """The larger and the smaller die: 21, 31, 32, ... 65, then 11 to 66."""
    if outcome >= OPENING_ROLLS:
        return outcome - 14, outcome - 14
    large = 2
    while outcome >= large - 1:
        outcome -= large - 1
        large += 1
    return large, outcome + 1


@njit
def settle(state, outcome):
    large, small = dice_of(outcome)
    state[4], state[5] = np.uint64(large), np.uint64(small)
    state[6] = np.uint64(4 if large == small else 2)


@njit
def is_terminal(state):
    return count_at(state[2], state[3], 0) == 15


@njit
def terminal_value(state):
    """The loser's points: -3 with a checker on the bar or in the winner's home, if none is borne off."""
    if count_at(state[0], state[1], 0) > 0:
        return -1.0
    return -3.0 if state[1] >> np.uint64(12) > ZERO else -2.0  # places 19 to 25


@njit
def observe(state, planes):
    """For both players: at least 1, 2, 3 checkers, and how many more; the dice to play; the moves left."""
    for place in range(BAR + 1):
        for player in range(2):
            count = count_at(state[2 * player], state[2 * player + 1], place)
            column = place if player == 0 else BAR - place
            for least in range(3):
                planes[4 * player + least, 0, column] = 1.0 if count > least else 0.0
            planes[4 * player + 3, 0, column] = (count - 3) / 12.0 if count > 3 else 0.0
        if state[6] > ZERO:
            for die in range(1, 7):
                due = np.int64(state[4]) == die or np.int64(state[5]) == die
                planes[7 + die, 0, place] = 1.0 if due else 0.0
        planes[14, 0, place] = np.int64(state[6]) / 4.0


@njit
def to_play(state):
    return np.int64(state[7])


@njit
def heuristic(state):
    """The lead in the race, with two pips for each lone checker."""
    own = pips(state[0], state[1]) + 2 * blots(state[0], state[1])
    lead = pips(state[2], state[3]) + 2 * blots(state[2], state[3]) - own
    return lead / (100.0 + abs(lead))


class Backgammon(Game):
    """People write a move as 13/7, bar/20 or 6/off:6 with the die, and "pass"."""

    name = "backgammon"
    num_actions, num_outcomes, state_words = PASS + 1, ROLLS, 8
    max_plies = 20_000  # nothing ends games that go on and on; random ones take some hundred moves
    observation_shape = (15, 1, BAR + 1)
    score = Score(-3, 3)
    rules = Rules(
        init,
        legal,
        step,
        is_terminal,
        terminal_value,
        observe,
        to_play,
        heuristic=heuristic,
        chance=chance,
        settle=settle,
    )

    def format_outcome(self, outcome: int, state: np.ndarray) -> str:
        large, small = dice_of(outcome)
        return f"{large}{small}"

    def format_action(self, action: int, state: np.ndarray) -> str:
        if action == PASS:
            return "pass"
        place, die = action // 6 + 1, action % 6 + 1
        source = "bar" if place == BAR else str(place)
        return f"{source}/{place - die}" if place > die else f"{source}/off:{die}"

    def parse_action(self, text: str, state: np.ndarray) -> int:
        if text.lower() == "pass":
            return PASS
        found = re.fullmatch(r"(bar|\d+)/(?:(\d+)|off:([1-6]))", text.lower())
        if found is None:
            raise ValueError(text)
        place = BAR if found[1] == "bar" else int(found[1])
        die = int(found[3]) if found[3] else place - int(found[2])
        if not (1 <= place <= BAR and 1 <= die <= 6) or (not found[3] and place <= die):
            raise ValueError(text)
        return 6 * (place - 1) + die - 1

    def render(self, state: np.ndarray, to_play: int) -> str:
        """The board as the mover sees it: X is the first player; below a point stands how many checkers it has."""
        own, other = ("X", "O") if to_play == 0 else ("O", "X")

        def at(place: int) -> str:
            mine, theirs = count_at(state[0], state[1], place), count_at(state[2], state[3], BAR - place)
            return f"{own}{mine}" if mine else f"{other}{theirs}" if theirs else "."

        def row(cells: list[str]) -> str:
            return " ".join(f"{cell:>3}" for cell in cells[:6]) + "  |" + " ".join(f"{cell:>3}" for cell in cells[6:])

        upper, lower = list(range(13, 25)), list(range(12, 0, -1))
        rows = [row([*map(str, upper)]), row([*map(at, upper)]), row([*map(at, lower)]), row([*map(str, lower)])]
        for mark, first in ((own, 0), (other, 2)):
            words = state[first], state[first + 1]
            rows.append(f"{mark}: bar {count_at(*words, BAR)}, off {count_at(*words, 0)}, pips {pips(*words)}")
        dice = [int(die) for die in state[4:6] if die] if state[6] else []
        dice = dice[:1] * int(state[6]) if len(set(dice)) == 1 else dice
        return "\n".join([*rows, "dice: " + (" ".join(map(str, dice)) or "due")])
