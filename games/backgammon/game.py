"""Backgammon without the doubling cube: a gammon counts 2 points, a backgammon 3.

Each player numbers the places in the direction of play: 25 is the bar, 24 to 1 are the points, 0 holds the checkers
borne off. So a player's place p is the other's 25 - p. Four bits hold the checkers of a place, two words those of a
player. `state` is (own, own, other's, other's, larger die, smaller die, moves left, player). With no moves left, (0, 0)
for dice: the mover is to roll; (0, 1): the dice are due; (1, 0): those of the opening, which are no double, since they
decide who begins. Here the first player begins: the colours are alike.

Each checker's move is an action: 6 * (place - 1) + die - 1; then come the pass, where no move is legal, and the roll.
The roll lets a network see the position between two turns, whose value needs no dice.
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
from numba import njit

from alphazero.game import Board, Cell, Clicks, Game, Label, Piece, Position, Rules, Score, Stroke, square

ZERO, ONE = np.uint64(0), np.uint64(1)
BAR, PASS, ROLL = 25, 150, 151
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
def places_of(low, high):
    """The places 1 to 25 where a player has a checker, as bits."""
    places = 0
    for place in range(1, BAR + 1):
        places |= (count_at(low, high, place) > 0) << place
    return places


@njit
def blocked_by(other_low, other_high):
    """The mover's places where the other player has two checkers or more, as bits."""
    places = 0
    for place in range(1, BAR):
        places |= (count_at(other_low, other_high, BAR - place) > 1) << place
    return places


@njit
def movable(own, blocked, die):
    """The places, as bits, from which a checker can go by the die, whatever else must be played."""
    if own >> BAR:
        return (1 << BAR) & ~(blocked << die)
    found = own & ~(blocked << die) & -(2 << die)
    if own < 1 << 7:  # all are in the home: they can be borne off, by a larger die from the highest point
        found |= own & (1 << die)
        if own < 1 << die:
            for place in range(1, die):
                if own >> place == 1:
                    found = 1 << place
    return found


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
    low, high = state[0], state[1]
    large, small = np.int64(state[4]) & 7, np.int64(state[5]) & 7  # a state out of a file may say more
    own, blocked = places_of(low, high), blocked_by(state[2], state[3])
    for action in range(ROLL + 1):
        legal_mask[action] = False
    found = legal_mask[ROLL] = state[6] == ZERO
    if state[6] == np.uint64(2) and large != small:
        for order in range(2):
            die, next_die = (large, small) if order == 0 else (small, large)
            sources = movable(own, blocked, die)
            for place in range(1, BAR + 1):
                if sources >> place & 1:
                    after = own & ~(1 << place) if count_at(low, high, place) == 1 else own
                    after |= 1 << place - die if place > die else 0
                    if movable(after, blocked, next_die):
                        legal_mask[6 * (place - 1) + die - 1] = found = True
    for attempt in range(2):
        die = large if attempt == 0 else small
        if not found and die > 0:
            sources = movable(own, blocked, die)
            for place in range(1, BAR + 1):
                if sources >> place & 1:
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
    if action == ROLL:
        state[5] = ONE
        return
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
    if state[5] == ZERO:
        return 0
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


HEIGHT, MIDDLE = 5, 6.2
"""The checkers that are drawn on a point, and where the lower half of the board begins, in cells."""
BARS, TRAYS, DICE = HEIGHT * 24, HEIGHT * 24 + 2, HEIGHT * 24 + 4
"""The first cells that are no points: the bar and the tray of both players, and four dice."""


def corner(point: int) -> tuple[float, float, int]:
    """The left edge of a point, numbered as the first player does, its outer edge, and which way checkers pile up."""
    column = (point - 13 if point > 12 else 12 - point) + (0 if 7 <= point <= 18 else 1)
    return (column, 0, 1) if point > 12 else (column, MIDDLE + HEIGHT - 1, -1)


class Backgammon(Game):
    """People write a move as 13/7, bar/20 or 6/off:6 with the die, "pass", and "roll", which may be left out."""

    name = "backgammon"
    num_actions, num_outcomes, state_words = ROLL + 1, ROLLS, 8
    max_plies = 4096  # nothing ends games that go on and on; random ones take some hundred moves, the longest 800
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
        if action >= PASS:
            return "pass" if action == PASS else "roll"
        place, die = action // 6 + 1, action % 6 + 1
        source = "bar" if place == BAR else str(place)
        return f"{source}/{place - die}" if place > die else f"{source}/off:{die}"

    def parse_action(self, text: str, state: np.ndarray) -> int:
        if text.lower() in ("pass", "roll"):
            return PASS if text.lower() == "pass" else ROLL
        found = re.fullmatch(r"(bar|\d+)/(?:(\d+)|off:([1-6]))", text.lower())
        if found is None:
            raise ValueError(text)
        place = BAR if found[1] == "bar" else int(found[1])
        die = int(found[3]) if found[3] else place - int(found[2])
        if not (1 <= place <= BAR and 1 <= die <= 6) or (not found[3] and place <= die):
            raise ValueError(text)
        return 6 * (place - 1) + die - 1

    @cached_property
    def board(self) -> Board:
        """Seen by the first player: five cells for each point, then the bars, the trays and the dice."""
        cells, strokes, labels = list[Cell](), list[Stroke](), list[Label]()
        for point in range(1, 25):
            left, outer, way = corner(point)
            cells += [Cell(f"{point}", square(outer + way * i, left), "open") for i in range(HEIGHT)]
            ends = (left + 0.5, outer + 0.5), (left + 0.5, outer + 0.5 + way * (HEIGHT - 1))
            strokes.append(Stroke(ends, 0.94, "shaded" if point % 2 else "cell"))
            labels.append(Label((left + 0.5, outer + 0.5 - 0.8 * way), str(point)))
        lower = MIDDLE + HEIGHT - 1
        for name, left in (("bar", 6), ("off", 13.2)):
            cells += [Cell(name, square(top, left), "shaded") for top in ((0, lower) if name == "bar" else (lower, 0))]
            labels += [Label((left + 0.5, top), name) for top in (-0.3, lower + 1.3)]
        cells += [Cell("die", square(HEIGHT + 0.1, 8 + i), "open") for i in range(4)]
        return Board(tuple(cells), tuple(labels), tuple(strokes))

    def pieces(self, position: Position) -> list[Piece]:
        """The checkers; a number says how many there are where not all are drawn. The dice are those still to play."""
        found, state = list[Piece](), position.state
        for side in range(2):
            player = position.to_play if side == 0 else 1 - position.to_play
            counts = [int(count_at(state[2 * side], state[2 * side + 1], place)) for place in range(BAR + 1)]
            for place in range(1, BAR):
                shown, first = min(counts[place], HEIGHT), HEIGHT * ((place if player == 0 else BAR - place) - 1)
                texts = [""] * (shown - 1) + [str(counts[place]) if counts[place] > HEIGHT else ""]
                found += [Piece(first + i, player, text=texts[i]) for i in range(shown)]
            for cell, place in ((BARS + player, BAR), (TRAYS + player, 0)):
                if counts[place]:
                    found.append(Piece(cell, player, text=str(counts[place])))
        left = int(state[6])
        dice = [int(state[4])] * left if state[4] == state[5] else [int(die) for die in state[4:6] if die]
        return found + [Piece(DICE + i, position.to_play, "fill", str(die)) for i, die in enumerate(dice[:left])]

    def clicks(self, position: Position) -> Clicks:
        """A point, then the place where a checker goes; where both dice bear it off, that is by the larger one.

        Each point is the outermost of its cells, which pages take for all of them.
        """
        found, player = dict[tuple[int, ...], int](), position.to_play

        def cell_of(place: int) -> int:
            if place in (0, BAR):
                return (BARS if place else TRAYS) + player
            return HEIGHT * ((place if player == 0 else BAR - place) - 1)

        legal = [] if position.chances else [action for action in position.legal_actions if action < PASS]
        for action in sorted(legal, key=lambda action: -(action % 6)):
            found.setdefault((cell_of(action // 6 + 1), cell_of(max(action // 6 - action % 6, 0))), action)
        return found

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
        return "\n".join([*rows, "dice: " + (" ".join(map(str, dice)) or "to roll")])
