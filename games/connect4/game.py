"""Connect Four: seven columns, six rows, four in a line wins.

A player's stones are one word, seven bits a column; `state` is (own, opponent).
Layout after J. Tromp, https://tromp.github.io/c4/c4.html.

     6 13 20 27 34 41 48     always empty: keeps lines from wrapping round
     5 12 19 26 33 40 47
     4 11 18 25 32 39 46
     3 10 17 24 31 38 45     square = 7 * column + row
     2  9 16 23 30 37 44     action = column
     1  8 15 22 29 36 43
     0  7 14 21 28 35 42
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
from numba import njit

from alphazero.game import (
    Board,
    Colors,
    Game,
    Position,
    Rules,
    cells_in_line,
    check_turns,
    edge_labels,
    grid_cells,
    read_grid,
)

COLUMNS, ROWS = 7, 6
ZERO, ONE = np.uint64(0), np.uint64(1)
COLUMN = np.uint64(0b111111)
TOP = np.uint64(0b100000)
COLORS = Colors(panel="#1746a8", text="#dbe6ff", cell="#2463d6", shaded="#0d2357", first="#e5484d", second="#ffd43b")
BOARD = np.uint64(sum(0b111111 << 7 * column for column in range(COLUMNS)))


@njit
def has_four(stones):
    """Four in a line: pairs of neighbours, then pairs of pairs two apart."""
    for line in (1, 7, 6, 8):  # up, across, down-right, up-right
        pairs = stones & (stones >> np.uint64(line))
        if pairs & (pairs >> np.uint64(2 * line)):
            return True
    return False


@njit
def init(state):
    state[0] = np.uint64(0)
    state[1] = np.uint64(0)


@njit
def legal(state, legal_mask):
    stones = state[0] | state[1]
    for column in range(COLUMNS):
        legal_mask[column] = (stones >> np.uint64(7 * column)) & TOP == np.uint64(0)


@njit
def step(state, action):
    own, opponent = state[0], state[1]
    shift = np.uint64(7 * action)
    stone = ((own | opponent) + (ONE << shift)) & (COLUMN << shift)  # the carry lands on the first gap
    state[0] = opponent  # the board turns round
    state[1] = own | stone


@njit
def is_terminal(state):
    return has_four(state[1]) or state[0] | state[1] == BOARD


@njit
def terminal_value(state):
    return -1.0 if has_four(state[1]) else 0.0  # only the last mover can have won


@njit
def completing_squares(stones):
    """Squares that a fourth stone in a line of `stones` would take, be they empty or not."""
    squares = (stones << np.uint64(1)) & (stones << np.uint64(2)) & (stones << np.uint64(3))
    for line in (7, 6, 8):
        one, two, three = np.uint64(line), np.uint64(2 * line), np.uint64(3 * line)
        pairs = (stones << one) & (stones << two)
        squares |= pairs & ((stones << three) | (stones >> one))
        pairs = (stones >> one) & (stones >> two)
        squares |= pairs & ((stones >> three) | (stones << one))
    return squares


@njit
def on_all_squares(stones, step):
    """The first squares of the lines of four, `step` bits apart, that hold four of `stones`."""
    pairs = stones & (stones >> np.uint64(step))
    return pairs & (pairs >> np.uint64(2 * step))


@njit
def on_any_square(stones, step):
    """The first squares of the lines of four, `step` bits apart, that hold any of `stones`."""
    pairs = stones | (stones >> np.uint64(step))
    return pairs | (pairs >> np.uint64(2 * step))


@njit
def add_open_lines(state, planes):
    """Counts the lines of four through each square that can still become somebody's.

    A line that holds 1-3 stones of one side (0 = mover) alone counts in plane 6 * direction + 3 * side + stones - 1,
    where the directions are up, across, and both diagonals together, since these turn into each other in the mirror.
    """
    for step in (1, 7, 6, 8):
        direction = 0 if step == 1 else 1 if step == 7 else 2
        lines = on_all_squares(BOARD, step)  # a line is the bit of its first square
        own, opponent = on_any_square(state[0], step), on_any_square(state[1], step)
        lines &= (own ^ opponent) & ~on_all_squares(state[0], step) & ~on_all_squares(state[1], step)
        stones = state[0] | state[1]  # on open lines they are of one side
        one, two, three = np.uint64(step), np.uint64(2 * step), np.uint64(3 * step)
        is_odd_number = stones ^ (stones >> one) ^ (stones >> two) ^ (stones >> three)
        pairs, others = stones | (stones >> one), stones >> two | (stones >> three)
        at_least_two = (stones & (stones >> one)) | (stones >> two & (stones >> three)) | (pairs & others)
        for first in range(49 - 3 * step):
            bit = ONE << np.uint64(first)
            if lines & bit == ZERO:
                continue
            number = 1 if at_least_two & bit == ZERO else 2 if is_odd_number & bit == ZERO else 3
            plane = 6 * direction + (0 if own & bit else 3) + number - 1
            for i in range(4):
                square = first + i * step
                planes[plane, ROWS - 1 - square % 7, square // 7] += np.float32(1.0)


@njit
def is_odd(word):
    """The number of bits that are 1 is odd."""
    for shift in (32, 16, 8, 4, 2, 1):
        word ^= word >> np.uint64(shift)
    return word & ONE == ONE


@njit
def observe(state, planes):
    """Writes the network's planes; row 0 is the top.

    Own stones; the opponent's; empty squares that would complete four for the mover, and for the opponent; the rows
    that are the mover's when columns fill up in turns (the first, third and fifth from below for the first player,
    V. Allis 1988); the board, as against what convolutions see around it; the lines that can still become four, by
    direction, side and stones (docs/ablations.md has what they are worth).
    """
    stones = state[0] | state[1]
    empty = BOARD & ~stones
    own_row = 1 if is_odd(stones) else 0
    own_wins, opponent_wins = completing_squares(state[0]) & empty, completing_squares(state[1]) & empty
    for column in range(COLUMNS):
        for row in range(ROWS):
            square = np.uint64(7 * column + row)
            planes[0, ROWS - 1 - row, column] = (state[0] >> square) & ONE
            planes[1, ROWS - 1 - row, column] = (state[1] >> square) & ONE
            planes[2, ROWS - 1 - row, column] = (own_wins >> square) & ONE
            planes[3, ROWS - 1 - row, column] = (opponent_wins >> square) & ONE
            planes[4, ROWS - 1 - row, column] = 1.0 if row % 2 == own_row else 0.0
            planes[5, ROWS - 1 - row, column] = 1.0
    add_open_lines(state, planes[6:])


@njit
def transform(state, symmetry):
    if symmetry == 1:  # left and right
        for i in range(2):
            mirrored = np.uint64(0)
            for column in range(COLUMNS):
                stones = (state[i] >> np.uint64(7 * column)) & COLUMN
                mirrored |= stones << np.uint64(7 * (COLUMNS - 1 - column))
            state[i] = mirrored


class Connect4(Game):
    """Actions are the columns, 0-6 from the left; people write them 1-7."""

    name = "connect4"
    num_actions, state_words, max_plies = COLUMNS, 2, COLUMNS * ROWS
    observation_shape = (24, ROWS, COLUMNS)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, transform=transform)

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        cells = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)
        actions = np.arange(COLUMNS)
        return np.stack([cells.ravel(), cells[:, ::-1].ravel()]), np.stack([actions, actions[::-1]])

    def render(self, state: np.ndarray, to_play: int) -> str:
        first, second = int(state[to_play]), int(state[1 - to_play])
        marks = ["X" if first >> i & 1 else "O" if second >> i & 1 else "." for i in range(7 * COLUMNS)]
        rows = [" ".join(marks[row::7]) for row in reversed(range(ROWS))]
        return "\n".join([*rows, " ".join(str(column + 1) for column in range(COLUMNS))])

    @cached_property
    def board(self) -> Board:
        names = [f"{column + 1}, row {ROWS - row}" for row in range(ROWS) for column in range(COLUMNS)]
        columns = [str(column + 1) for column in range(COLUMNS)]
        return Board(grid_cells(ROWS, COLUMNS, names, "hole"), edge_labels([""] * ROWS, columns), colors=COLORS)

    def winning_cells(self, position: Position) -> list[int]:
        return cells_in_line(self.pieces(position), COLUMNS, 4)

    def format_action(self, action: int, state: np.ndarray) -> str:
        return str(action + 1)

    def parse_action(self, text: str, state: np.ndarray) -> int:
        return int(text) - 1

    def split_moves(self, text: str) -> list[str]:
        """A move is one digit, so "4453" needs no spaces, and may have hyphens."""
        return list(re.sub(r"(?<=\w)-(?=\w)", "", "".join(super().split_moves(text))))

    def read_board(self, text: str) -> Position | None:
        """A sign for each cell, row by row from the top; who moves follows from the stones."""
        grid = read_grid(text, ROWS, COLUMNS)
        if grid is None:
            return None
        check_turns(grid)
        empty = set(range(COLUMNS * ROWS)) - {*grid.first, *grid.second}
        for cell in (*grid.first, *grid.second):
            if cell + COLUMNS in empty:
                raise ValueError(f"in column {cell % COLUMNS + 1} a stone lies above an empty cell")
        to_play = len(grid.first) - len(grid.second)
        sides = (grid.second, grid.first) if to_play else (grid.first, grid.second)
        words = [sum(1 << 7 * (cell % COLUMNS) + ROWS - 1 - cell // COLUMNS for cell in cells) for cells in sides]
        state = np.array(words, np.uint64)
        if has_four.py_func(state[0]):
            raise ValueError("the game was over before: the player to move has four in a row")
        return Position(self, state, to_play, ())
