"""Tic-tac-mo: three players on a board of three rows and five columns; three in a row win.

`state` is (own, next, last): the stones of the player to move, of the next one and of the one after, one bit a square.

 0  1  2  3  4        a1 b1 c1 d1 e1
 5  6  7  8  9        a2 b2 c2 d2 e2
10 11 12 13 14        a3 b3 c3 d3 e3
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numba import njit

from alphazero.game import Board, Game, Position, Rules, cells_in_line, grid_board

ROWS, COLUMNS = 3, 5
SQUARES = ROWS * COLUMNS
ONE = np.uint64(1)
FULL = np.uint64((1 << SQUARES) - 1)
LINES = (
    *(0b111 << row * COLUMNS + column for row in range(ROWS) for column in range(COLUMNS - 2)),
    *(0b10000100001 << column for column in range(COLUMNS)),
    *(0b1000001000001 << column for column in range(COLUMNS - 2)),
    *(0b100010001 << column for column in range(2, COLUMNS)),
)
BOARD = np.arange(SQUARES).reshape(ROWS, COLUMNS)
# entry s, i: the square that lands on square i
SYMMETRIES = np.stack([board.ravel() for board in (BOARD, BOARD[:, ::-1], BOARD[::-1], BOARD[::-1, ::-1])])


@njit
def has_line(stones):
    for line in LINES:
        if stones & np.uint64(line) == np.uint64(line):
            return True
    return False


@njit
def init(state):
    state[:] = np.uint64(0)


@njit
def legal(state, legal_mask):
    for square in range(SQUARES):
        legal_mask[square] = ((state[0] | state[1] | state[2]) >> np.uint64(square)) & ONE == np.uint64(0)


@njit
def step(state, action):
    own = state[0] | (ONE << np.uint64(action))
    state[0] = state[1]  # each moves up by one
    state[1] = state[2]
    state[2] = own


@njit
def is_terminal(state):
    return has_line(state[2]) or state[0] | state[1] | state[2] == FULL


@njit
def returns(state, results):
    """1 for the winner and -1/2 for the others, or three times 0; only the last mover can have won."""
    won = has_line(state[2])
    results[0] = results[1] = -0.5 if won else 0.0
    results[2] = 1.0 if won else 0.0


@njit
def observe(state, planes):
    """The stones of the player to move, of the next one and of the one after."""
    for square in range(SQUARES):
        for player in range(3):
            planes[player, square // COLUMNS, square % COLUMNS] = (state[player] >> np.uint64(square)) & ONE


@njit
def transform(state, symmetry):
    for player in range(3):
        turned = np.uint64(0)
        for square in range(SQUARES):
            turned |= ((state[player] >> np.uint64(SYMMETRIES[symmetry, square])) & ONE) << np.uint64(square)
        state[player] = turned


class TicTacMo(Game):
    """Actions are the squares 0-14, row by row; people write them a1-e3, column and row."""

    name = "tictacmo"
    num_players, num_actions, state_words, max_plies = 3, SQUARES, 3, SQUARES
    observation_shape = (3, ROWS, COLUMNS)
    rules = Rules(init, legal, step, is_terminal, None, observe, transform=transform, returns=returns)

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        return SYMMETRIES, SYMMETRIES

    def render(self, state: np.ndarray, to_play: int) -> str:
        marks = ["."] * SQUARES
        for player, stones in enumerate(state):
            for square in range(SQUARES):
                if int(stones) >> square & 1:
                    marks[square] = "XOT"[(to_play + player) % 3]
        rows = (f"{row + 1} " + " ".join(marks[COLUMNS * row : COLUMNS * (row + 1)]) for row in range(ROWS))
        return "\n".join([*rows, "  a b c d e"])

    @cached_property
    def board(self) -> Board:
        return replace(grid_board(self), shapes=("cross", "ring", "triangle"))

    def winning_cells(self, position: Position) -> list[int]:
        return cells_in_line(self.pieces(position), COLUMNS, 3)

    def format_action(self, action: int, state: np.ndarray) -> str:
        return f"{'abcde'[action % COLUMNS]}{action // COLUMNS + 1}"

    def parse_action(self, text: str, state: np.ndarray) -> int:
        column, row = text.lower()
        return "abcde".index(column) + COLUMNS * (int(row) - 1)
