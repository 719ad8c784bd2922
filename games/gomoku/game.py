"""Gomoku: five or more of one's stones in a row, in any direction, win; a full board is a draw.

`state` holds own stones, then the opponent's, one bit a cell (cell = size * row + column, 64 cells a word), and in its
last word whether the last ply has won. Action = cell:

        a b c d e ...
     1  . . . . .
     2  . . . . .
"""

from __future__ import annotations

import re
from functools import cache, cached_property

import numpy as np
from numba import njit

from alphazero.game import (
    Board,
    Colors,
    Game,
    Position,
    Rules,
    Stroke,
    cells_in_line,
    edge_labels,
    grid_cells,
    placed_in_turn,
    read_grid,
)

ZERO, ONE = np.uint64(0), np.uint64(1)
LETTERS = "abcdefghijklmno"
DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))
IN_A_ROW = 5
NO_STATE = np.zeros(0, np.uint64)
COLORS = Colors(panel="#dfb36a", text="#3d2a0e", line="#7d5a24", first="#181818", second="#fafaf5")


@cache  # games of the same functions share compiled code
def make_rules(size: int, images: tuple[tuple[int, ...], ...]) -> Rules:
    """The rules on `size` x `size` cells; `images`: by symmetry, the cell that lands on each cell."""
    cells, symmetries = size * size, np.array(images)
    words = -(-cells // 64)

    @njit
    def has_stone(state, side, cell):
        return (state[side * words + cell // 64] >> np.uint64(cell % 64)) & ONE == ONE

    @njit
    def run_length(state, cell, down, right):
        """Own stones in a row beyond `cell` in one direction."""
        row, column, length = cell // size + down, cell % size + right, 0
        while 0 <= row < size and 0 <= column < size and has_stone(state, 0, size * row + column):
            row, column, length = row + down, column + right, length + 1
        return length

    @njit
    def init(state):
        state[:] = ZERO

    @njit
    def legal(state, legal_mask):
        for cell in range(cells):
            legal_mask[cell] = not has_stone(state, 0, cell) and not has_stone(state, 1, cell)

    @njit
    def step(state, action):
        won = ZERO
        for down, right in DIRECTIONS:
            if 1 + run_length(state, action, down, right) + run_length(state, action, -down, -right) >= IN_A_ROW:
                won = ONE
        state[action // 64] |= ONE << np.uint64(action % 64)
        for word in range(words):  # the board turns round
            state[word], state[words + word] = state[words + word], state[word]
        state[2 * words] = won

    @njit
    def is_full(state):
        for cell in range(cells):
            if not has_stone(state, 0, cell) and not has_stone(state, 1, cell):
                return False
        return True

    @njit
    def is_terminal(state):
        return state[2 * words] == ONE or is_full(state)

    @njit
    def terminal_value(state):
        return -1.0 if state[2 * words] == ONE else 0.0

    @njit
    def observe(state, planes):
        """Own stones, the opponent's stones, the board."""
        for cell in range(cells):
            planes[0, cell // size, cell % size] = has_stone(state, 0, cell)
            planes[1, cell // size, cell % size] = has_stone(state, 1, cell)
            planes[2, cell // size, cell % size] = 1.0

    @njit
    def transform(state, symmetry):
        # cell by cell along the cycles of the permutation, which needs no copy of the position
        for first in range(cells):
            lowest, cell = first, symmetries[symmetry, first]
            while cell != first:
                lowest, cell = min(lowest, cell), symmetries[symmetry, cell]
            if lowest < first:
                continue
            for side in range(2):
                kept, cell = has_stone(state, side, first), first
                while True:
                    source = symmetries[symmetry, cell]
                    stone = kept if source == first else has_stone(state, side, source)
                    word, bit = side * words + cell // 64, ONE << np.uint64(cell % 64)
                    state[word] = state[word] | bit if stone else state[word] & ~bit
                    if source == first:
                        break
                    cell = source

    return Rules(init, legal, step, is_terminal, terminal_value, observe, transform=transform)


class Gomoku(Game):
    """Actions are the cells row by row; people write them a1-i9, column and row."""

    name = "gomoku"
    size = 9

    def __init__(self) -> None:
        self.num_actions = self.max_plies = self.size**2
        self.state_words = 2 * -(-self.num_actions // 64) + 1
        self.observation_shape = (3, self.size, self.size)
        self.rules = make_rules(self.size, tuple(map(tuple, self.symmetries[0].tolist())))

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        board = np.arange(self.size**2).reshape(self.size, self.size)
        images = [np.rot90(side, turns).ravel() for side in (board, board[:, ::-1]) for turns in range(4)]
        return np.stack(images), np.stack(images)

    def render(self, state: np.ndarray, to_play: int) -> str:
        words = len(state) // 2
        first, second = (
            sum(int(word) << 64 * i for i, word in enumerate(state[side * words : (side + 1) * words]))
            for side in (to_play, 1 - to_play)
        )
        marks = ["X" if first >> i & 1 else "O" if second >> i & 1 else "." for i in range(self.size**2)]
        rows = [f"{row + 1:2} " + " ".join(marks[row * self.size : (row + 1) * self.size]) for row in range(self.size)]
        return "\n".join(["   " + " ".join(LETTERS[: self.size]), *rows])

    @cached_property
    def board(self) -> Board:
        middles = [index + 0.5 for index in range(self.size)]
        first, last = middles[0], middles[-1]
        strokes = [Stroke(((first, at), (last, at))) for at in middles]
        strokes += [Stroke(((at, first), (at, last))) for at in middles]
        stars = (2, self.size // 2, self.size - 3) if self.size < 13 else (3, self.size // 2, self.size - 4)
        strokes += [Stroke(((middles[i], middles[j]),) * 2, 0.2) for i in stars for j in stars]
        names = [self.format_action(cell, NO_STATE) for cell in range(self.size**2)]
        cells = grid_cells(self.size, self.size, names, "open")
        labels = edge_labels([str(row + 1) for row in range(self.size)], LETTERS[: self.size])
        return Board(cells, labels, tuple(strokes), colors=COLORS)

    def winning_cells(self, position: Position) -> list[int]:
        return cells_in_line(self.pieces(position), self.size, IN_A_ROW)

    def format_action(self, action: int, state: np.ndarray) -> str:
        return f"{LETTERS[action % self.size]}{action // self.size + 1}"

    def parse_action(self, text: str, state: np.ndarray) -> int:
        """Also column and row as Piskvork's programs count them, from 0: `7,7` is h8."""
        if "," in text:
            column, row = (int(number) for number in text.split(","))
        else:
            column, row = LETTERS[: self.size].index(text[0].lower()), int(text[1:]) - 1
        if not 0 <= min(row, column) <= max(row, column) < self.size:
            raise ValueError(text)
        return column + self.size * row

    def split_moves(self, text: str) -> list[str]:
        """Two numbers with a comma between them are one move."""
        return re.findall(r"\d+,\d+|[^\s,]+", text)

    def read_board(self, text: str) -> Position | None:
        grid = read_grid(text, self.size, self.size)
        return None if grid is None else placed_in_turn(self, grid)


class Gomoku15(Gomoku):
    """The same on 15 x 15 cells, a1-o15."""

    name = "gomoku15"
    size = 15
