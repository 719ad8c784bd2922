"""Tic-tac-toe: three in a row wins. `state` is (own, opponent), one bit a square.

0 1 2        a1 b1 c1
3 4 5        a2 b2 c2
6 7 8        a3 b3 c3
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numba import njit

from alphazero.game import Board, Game, Position, Rules, cells_in_line, grid_board, placed_in_turn, read_grid

ONE = np.uint64(1)
FULL = np.uint64(0b111_111_111)
LINES = (0b111, 0b111000, 0b111000000, 0b1001001, 0b10010010, 0b100100100, 0b100010001, 0b1010100)
SQUARES = np.arange(9).reshape(3, 3)
# the eight symmetries of the square; entry s, i: the square that lands on square i
SYMMETRIES = np.stack([np.rot90(board, turns).ravel() for board in (SQUARES, SQUARES[:, ::-1]) for turns in range(4)])


@njit
def has_line(stones):
    for line in LINES:
        if stones & np.uint64(line) == np.uint64(line):
            return True
    return False


@njit
def init(state):
    state[0] = np.uint64(0)
    state[1] = np.uint64(0)


@njit
def legal(state, legal_mask):
    for square in range(9):
        legal_mask[square] = ((state[0] | state[1]) >> np.uint64(square)) & ONE == np.uint64(0)


@njit
def step(state, action):
    own = state[0] | (ONE << np.uint64(action))
    state[0] = state[1]  # the board turns round
    state[1] = own


@njit
def is_terminal(state):
    return has_line(state[1]) or state[0] | state[1] == FULL


@njit
def terminal_value(state):
    return -1.0 if has_line(state[1]) else 0.0  # only the last mover can have won


@njit
def observe(state, planes):
    """Own stones, opponent's stones."""
    for square in range(9):
        planes[0, square // 3, square % 3] = (state[0] >> np.uint64(square)) & ONE
        planes[1, square // 3, square % 3] = (state[1] >> np.uint64(square)) & ONE


@njit
def transform(state, symmetry):
    for i in range(2):
        turned = np.uint64(0)
        for square in range(9):
            turned |= ((state[i] >> np.uint64(SYMMETRIES[symmetry, square])) & ONE) << np.uint64(square)
        state[i] = turned


class TicTacToe(Game):
    """Actions are the squares 0-8, row by row; people write them a1-c3, column and row."""

    name = "tictactoe"
    num_actions, state_words, max_plies = 9, 2, 9
    observation_shape = (2, 3, 3)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, transform=transform)

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        return SYMMETRIES, SYMMETRIES

    def render(self, state: np.ndarray, to_play: int) -> str:
        first, second = int(state[to_play]), int(state[1 - to_play])
        marks = ["X" if first >> i & 1 else "O" if second >> i & 1 else "." for i in range(9)]
        return "\n".join([*(f"{row + 1} " + " ".join(marks[3 * row : 3 * row + 3]) for row in range(3)), "  a b c"])

    @cached_property
    def board(self) -> Board:
        return replace(grid_board(self), shapes=("cross", "ring"))

    def winning_cells(self, position: Position) -> list[int]:
        return cells_in_line(self.pieces(position), 3, 3)

    def format_action(self, action: int, state: np.ndarray) -> str:
        return f"{'abc'[action % 3]}{action // 3 + 1}"

    def parse_action(self, text: str, state: np.ndarray) -> int:
        column, row = text.lower()
        return "abc".index(column) + 3 * (int(row) - 1)

    def read_board(self, text: str) -> Position | None:
        grid = read_grid(text, 3, 3)
        return None if grid is None else placed_in_turn(self, grid)
