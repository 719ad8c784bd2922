"""Can't Stop (Sid Sackson 1980) for two to four players: who first holds three columns wins.

The mover throws four dice and makes two pairs of them; each pair's sum is a column, in which a runner goes up a step.
Both runners must go if they can, and there are three in a turn. Then the mover rolls on or stops. Who stops keeps the
runners' places; who can move no runner after a throw loses them. A column whose top somebody has kept is closed.

`state` is (the runners' places, the dice and more, own places, the next player's, ...). A word of places has five bits
for each of the columns 2 to 12, from the lowest on: the steps in it, 0 at the start. The second word has these fields:

numbers of dice that show 1, ..., 6    dice still due    player to move    actions played
3 bits each                            3 bits            2 bits            the other bits

The four dice fall one after another: a node of the search has six outcomes, all equally likely, instead of the 126
different throws, whose likely ones a short search would see first.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numba import njit

from alphazero.game import Board, Cell, Clicks, Game, Label, Piece, Position, Rules, square

LENGTHS = 3, 5, 7, 9, 11, 13, 11, 9, 7, 5, 3
COLUMNS, FIRST = len(LENGTHS), 2
"""A column's index is its sum of two dice less FIRST."""
ROLL, STOP = COLUMNS, COLUMNS + 1
DICE, SIDES, RUNNERS, TO_WIN = 4, 6, 3, 3
PLACES, REST, OWN = 0, 1, 2
"""The words of a state."""
DUE, PLAYER, COUNT = 18, 21, 23
"""The lowest bit of each field behind those of the numbers of dice."""
MOST_ACTIONS = 1000
"""The game is drawn after so many actions of all players, so that it ends even if nobody ever stops."""
ZERO, ONE, PLACE, THREE_BITS = np.uint64(0), np.uint64(1), np.uint64(31), np.uint64(7)
EACH = np.uint64(sum(1 << 5 * column for column in range(COLUMNS)))  # a bit for each column, as in all sets of them
TO_ONE = np.uint64(sum(15 << 5 * column for column in range(COLUMNS)))
TO_TOP = np.uint64(sum(16 - length << 5 * column for column, length in enumerate(LENGTHS)))
"""Added to a word of places they set the highest bit of columns with a step, and of those where the top is reached."""


@njit
def columns_with(word, added):
    """The columns of a word of places that have a step, or reach the top."""
    return ((word + added) >> np.uint64(4)) & EACH


@njit
def has(columns, column):
    return (columns >> np.uint64(5 * column)) & ONE == ONE


@njit
def place(word, column):
    return np.int64((word >> np.uint64(5 * column)) & PLACE)


@njit
def count(columns):
    total = 0
    for column in range(COLUMNS):
        total += has(columns, column)
    return total


@njit
def field(state, bit):
    """A number of three bits in the second word."""
    return np.int64((state[REST] >> np.uint64(bit)) & THREE_BITS)


@njit
def player(state):
    return np.int64((state[REST] >> np.uint64(PLAYER)) & np.uint64(3)) % (len(state) - OWN)


@njit
def sums(state):
    """The columns that two of the dice make."""
    found = ZERO
    for one in range(1, SIDES + 1):
        for other in range(one, SIDES + 1):
            if field(state, 3 * one - 3) > (one == other) and field(state, 3 * other - 3) > 0:
                found |= ONE << np.uint64(5 * (one + other - FIRST))
    return found


@njit
def partner(state, column):
    """The column of the other two dice: both columns' indices have the same sum however the dice are paired."""
    other = -2 * FIRST - column
    for number in range(1, SIDES + 1):
        other += number * field(state, 3 * number - 3)
    return other


@njit
def movable(state):
    """The columns in which a runner can go up a step now."""
    closed = columns_with(state[PLACES], TO_TOP)
    for word in range(OWN, len(state)):
        closed |= columns_with(state[word], TO_TOP)
    placed = columns_with(state[PLACES], TO_ONE)
    return EACH & ~closed & (placed if count(placed) >= RUNNERS else EACH)


@njit
def go_up(state, column):
    """Moves the runner of a column up a step, or puts one above the mover's place there."""
    bit = np.uint64(5 * column)
    if place(state[PLACES], column) == 0:
        state[PLACES] |= state[OWN] & (PLACE << bit)
    state[PLACES] += ONE << bit


@njit
def advance(state, column):
    """Moves the runners of a column and of its partner, if that can go up, too; returns the partner, else -1."""
    go_up(state, column)
    other = partner(state, column)
    if not (0 <= other < COLUMNS and has(movable(state), other)):
        return -1
    go_up(state, other)
    return other


@njit
def end_turn(state):
    """The next player is to move, whose places come first then."""
    own, last = state[OWN], len(state) - 1
    for word in range(OWN, last):
        state[word] = state[word + 1]
    state[last] = own
    following = np.uint64((player(state) + 1) % (len(state) - OWN))
    state[PLACES] = ZERO
    state[REST] = (state[REST] >> np.uint64(COUNT) << np.uint64(COUNT)) | following << np.uint64(PLAYER)


@njit
def init(state):
    state[:] = ZERO


@njit
def legal(state, legal_mask):
    """A column stands for it and its partner where both can go up; then the larger one is no action."""
    legal_mask[:] = False
    pairs = sums(state)
    if pairs == ZERO:
        legal_mask[ROLL] = True
        legal_mask[STOP] = state[PLACES] != ZERO
        return
    free, placed = movable(state), columns_with(state[PLACES], TO_ONE)
    for column in range(COLUMNS):
        if has(pairs & free, column):
            other = partner(state, column)
            both = has(free, other) and (has(placed, column) or has(placed, other) or count(placed) + 2 <= RUNNERS)
            legal_mask[column] = column <= other or not both


@njit
def step(state, action):
    state[REST] += ONE << np.uint64(COUNT)
    if action == ROLL:
        state[REST] |= np.uint64(DICE) << np.uint64(DUE)
    elif action == STOP:
        gone = columns_with(state[PLACES], TO_ONE) * PLACE  # all bits of their fields
        state[OWN] = (state[OWN] & ~gone) | state[PLACES]
        end_turn(state)
    else:
        advance(state, action)
        state[REST] = state[REST] >> np.uint64(DUE) << np.uint64(DUE)


@njit
def chance(state, probabilities):
    if field(state, DUE) == 0:
        return 0
    for outcome in range(SIDES):
        probabilities[outcome] = 1.0 / SIDES
    return SIDES


@njit
def settle(state, outcome):
    """The last die ends the turn if no runner can go up."""
    state[REST] += (ONE << np.uint64(3 * outcome)) - (ONE << np.uint64(DUE))
    if field(state, DUE) == 0 and sums(state) & movable(state) == ZERO:
        end_turn(state)


@njit
def has_won(state):
    """Only the last mover can have."""
    return count(columns_with(state[len(state) - 1], TO_TOP)) >= TO_WIN


@njit
def is_terminal(state):
    return has_won(state) or (field(state, DUE) == 0 and state[REST] >> np.uint64(COUNT) >= np.uint64(MOST_ACTIONS))


@njit
def terminal_value(state):
    return -1.0 if has_won(state) else 0.0


@njit
def returns(state, results):
    """1 for the winner, who moved last, and the same for the others, whose sum is -1; or 0 for all."""
    last = len(results) - 1
    for seat in range(last + 1):
        results[seat] = 0.0 if not has_won(state) else 1.0 if seat == last else -1.0 / last


@njit
def observe(state, planes):
    """A cell for each column; planes of each player's places, of the runners, of the dice, and of their number."""
    pairs, placed, free = sums(state), columns_with(state[PLACES], TO_ONE), movable(state)
    players = len(state) - OWN
    for column in range(COLUMNS):
        length = LENGTHS[column]
        for word in range(players + 1):
            steps = place(state[OWN + word if word < players else PLACES], column)
            planes[3 * word, 0, column] = steps / length
            planes[3 * word + 1, 0, column] = 1.0 if steps >= length else 0.0
            planes[3 * word + 2, 0, column] = 1.0 if steps + 2 >= length else 0.0
        own = 3 * (players + 1)
        planes[own, 0, column] = 1.0 if has(placed, column) else 0.0
        planes[own + 1, 0, column] = 1.0 if has(free, column) else 0.0
        planes[own + 2, 0, column] = 1.0 if has(pairs, column) else 0.0
        planes[own + 3, 0, column] = 1.0 if has(pairs, column) and partner(state, column) == column else 0.0
    planes[own + 4, 0, min(count(placed), RUNNERS)] = 1.0
    if pairs != ZERO:
        total = min(max(partner(state, 0), 0), 2 * COLUMNS - 2)
        planes[own + 5 + total // COLUMNS, 0, total % COLUMNS] = 1.0


@njit
def progress(word, runners):
    """The shares of the columns that a player has behind, and one more for each whole one."""
    total = 0.0
    for column in range(COLUMNS):
        steps = max(place(word, column), place(runners, column))
        total += steps / LENGTHS[column] + (steps >= LENGTHS[column])
    return total


@njit
def heuristic(state):
    """The mover's lead over the mean of the others, and a step or two more for dice that fell. Where a turn begins, the
    last player's, negated: so `greedy` compares the same player's lead whether it stops or rolls on."""
    last, pairs = len(state) - 1, sums(state)
    begins = pairs == ZERO and state[PLACES] == ZERO
    viewer = last if begins else OWN
    lead = progress(state[viewer], state[PLACES]) + 0.2 * (pairs != ZERO)
    for word in range(OWN, last + 1):
        lead -= progress(state[word], ZERO) / (last - OWN) if word != viewer else 0.0
    return (-lead if begins else lead) / (3.0 + abs(lead))


@njit
def to_play(state):
    return player(state)


class CantStop(Game):
    """Actions 0-10 are the columns 2-12, 11 rolls, 12 stops. People write 6, 6+8 (both go up), roll and stop."""

    name, num_players = "cantstop", 2
    num_actions, num_outcomes, dice_in_a_row, max_plies = STOP + 1, SIDES, DICE, MOST_ACTIONS
    rules = Rules(
        init, legal, step, is_terminal, terminal_value, observe, to_play,
        heuristic=heuristic, chance=chance, settle=settle,
    )  # fmt: skip

    def __init__(self) -> None:
        self.state_words = OWN + self.num_players
        self.observation_shape = 3 * self.num_players + 10, 1, COLUMNS

    def format_action(self, action: int, state: np.ndarray) -> str:
        if action >= ROLL:
            return "roll" if action == ROLL else "stop"
        other = advance(state.copy(), action)
        return str(action + FIRST) if other < 0 else f"{action + FIRST}+{other + FIRST}"

    def parse_action(self, text: str, state: np.ndarray) -> int:
        """The smaller one of two columns stands for both."""
        words = {"roll": ROLL, "stop": STOP}
        return words[text.lower()] if text.lower() in words else min(map(int, text.split("+"))) - FIRST

    def cell(self, column: int, steps: int, seat: int = -1) -> int:
        """The cell of a step, or the place for a player's marker on it."""
        return DICE + (sum(LENGTHS[:column]) + steps - 1) * (self.num_players + 1) + 1 + seat

    @cached_property
    def board(self) -> Board:
        """The dice, then all steps, each followed by a place for each player on it, which are two in a row."""
        cells, labels = [Cell("die", square(die // 2, die % 2), "open") for die in range(DICE)], list[Label]()
        height = (self.num_players + 1) // 2 / 2
        for column, length in enumerate(LENGTHS):
            left, bottom = 1.25 * column, height * (max(LENGTHS) + length) / 2
            for steps in range(1, length + 1):
                name, top = f"{column + FIRST}, step {steps}", bottom - height * steps
                outline = (left, top), (left + 1, top), (left + 1, top + height), (left, top + height)
                cells.append(Cell(name, outline, "plain" if steps < length else "shaded"))
                places = [(2 * top + seat // 2, 2 * left + seat % 2) for seat in range(self.num_players)]
                cells += [Cell(name, square(*at, 0.5), "open") for at in places]
            labels.append(Label((left + 0.5, bottom + 0.3), str(column + FIRST)))
        return Board(tuple(cells), tuple(labels))

    def pieces(self, position: Position) -> list[Piece]:
        """The players' markers, a column that is won in one colour, and the mover's runners, which have no owner."""
        state, mover = position.state, position.to_play
        dice = [number + 1 for number in range(SIDES) for _ in range(field(state, 3 * number))]
        found = [Piece(die, mover, "fill", str(number)) for die, number in enumerate(dice)]
        for column, length in enumerate(LENGTHS):
            for seat in range(self.num_players):
                steps = place(state[OWN + (seat - mover) % self.num_players], column)
                if steps >= length:
                    found += [Piece(self.cell(column, step), seat, "fill") for step in range(1, length + 1)]
                elif steps > 0:
                    found.append(Piece(self.cell(column, steps, seat), seat))
            if steps := place(state[PLACES], column):
                found.append(Piece(self.cell(column, steps, mover), None))
        return found

    def clicks(self, position: Position) -> Clicks:
        """Anywhere in a column, or in either of two that go up together; first where its runner comes to stand."""
        found = dict[tuple[int, ...], int]()
        for action in [] if position.chances else position.legal_actions:
            after = position.state.copy()
            for column in sorted({action, advance(after, action)} - {-1}) if action < ROLL else ():
                reached = self.cell(column, place(after[PLACES], column), position.to_play)
                every = range(self.cell(column, 1), self.cell(column, LENGTHS[column] + 1))
                found |= {(cell,): action for cell in (reached, *every)}
        return found

    def render(self, state: np.ndarray, to_play: int) -> str:
        """A line for each player: the steps in each column; the mover's runners below, and the dice."""
        lines = [("column", range(FIRST, FIRST + COLUMNS)), ("steps", LENGTHS)]
        for seat in range(self.num_players):
            for word in (OWN + (seat - to_play) % self.num_players, PLACES)[: 1 + (seat == to_play)]:
                name = "runners" if word == PLACES else "XOTV"[seat]
                lines.append((name, [place(state[word], column) for column in range(COLUMNS)]))
        rows = [f"{name:7}" + "".join(f"{number or '.':>4}" for number in numbers) for name, numbers in lines]
        dice = [str(number + 1) for number in range(SIDES) for _ in range(field(state, 3 * number))]
        return "\n".join([*rows, "dice   " + (" ".join(dice) or "to roll")])


class CantStop3(CantStop):
    """The same for three."""

    name, num_players = "cantstop3", 3
    rules = replace(CantStop.rules, terminal_value=None, returns=returns)


class CantStop4(CantStop3):
    """The same for four."""

    name, num_players = "cantstop4", 4
