"""Breakthrough on 6 x 6 squares (D. Troyka 2000): who first brings a pawn to the other side wins.

`state` is (own, opponent, mover): pawns as bits of square 6 * row + column, row 0 being the mover's home row, and the
mover, 0 or 1. After each ply the rows turn round, so that everybody moves upwards:

     a  b  c  d  e  f
    30 31 32 33 34 35      the opponent's home row
     ...
     6  7  8  9 10 11
     0  1  2  3  4  5      the mover's home row

A pawn goes one row forward, straight on or slanting; it takes an opponent's pawn on a slant only.
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
from numba import njit

from alphazero.game import Board, Clicks, Colors, Game, Piece, Position, Rules, edge_labels, grid_cells, read_grid

SIZE = 6
ZERO, ONE, ROW = np.uint64(0), np.uint64(1), np.uint64(0b111111)
HOME, FAR = np.uint64(0b111111_111111), np.uint64(0b111111_111111 << 24)
NUM_ACTIONS = 3 * SIZE * SIZE
COLORS = Colors("#4d3826", "#f3e6d2", "#f0d9b5", "#c29a6f", "#a37c52", first="#fbfaf6", second="#262626")


@njit
def has_pawn(pawns, row, column):
    return (pawns >> np.uint64(SIZE * row + column)) & ONE == ONE


@njit
def turn_round(pawns):
    """The rows in reverse order."""
    turned = ZERO
    for row in range(SIZE):
        turned |= ((pawns >> np.uint64(SIZE * row)) & ROW) << np.uint64(SIZE * (SIZE - 1 - row))
    return turned


@njit
def mirror(pawns):
    """The columns in reverse order."""
    mirrored = ZERO
    for square in range(SIZE * SIZE):
        image = square // SIZE * SIZE + SIZE - 1 - square % SIZE
        mirrored |= ((pawns >> np.uint64(square)) & ONE) << np.uint64(image)
    return mirrored


@njit
def init(state):
    state[0], state[1], state[2] = HOME, FAR, ZERO


@njit
def legal(state, legal_mask):
    own, opponent = state[0], state[1]
    for action in range(NUM_ACTIONS):
        row, column, target = action // 3 // SIZE, action // 3 % SIZE, action // 3 % SIZE + action % 3 - 1
        allowed = has_pawn(own, row, column) and row < SIZE - 1 and 0 <= target < SIZE
        if allowed:
            blocked = own | opponent if target == column else own
            allowed = not has_pawn(blocked, row + 1, target)
        legal_mask[action] = allowed


@njit
def step(state, action):
    origin = action // 3
    before, after = ONE << np.uint64(origin), ONE << np.uint64(origin + SIZE + action % 3 - 1)
    own = (state[0] & ~before) | after
    state[0] = turn_round(state[1] & ~after)
    state[1] = turn_round(own)
    state[2] ^= ONE


@njit
def is_terminal(state):
    return state[1] & ROW != ZERO or state[0] == ZERO


@njit
def terminal_value(state):
    return -1.0  # the opponent has just arrived, or taken the last pawn


@njit
def observe(state, planes):
    """Own pawns, the opponent's pawns, the board."""
    for row in range(SIZE):
        for column in range(SIZE):
            planes[0, row, column] = has_pawn(state[0], row, column)
            planes[1, row, column] = has_pawn(state[1], row, column)
            planes[2, row, column] = 1.0


@njit
def transform(state, symmetry):
    if symmetry == 1:  # left and right
        state[0], state[1] = mirror(state[0]), mirror(state[1])


class Breakthrough(Game):
    """Action 3 * square + d: the pawn there goes a row forward, to the left, straight or to the right (d = 0, 1, 2).

    People write both squares, a1 being at the first player's left hand: a2-b3, and a2xb3 if it takes a pawn.
    """

    name = "breakthrough"
    num_actions, state_words = NUM_ACTIONS, 3
    max_plies = 2 * (SIZE * (SIZE - 1) + SIZE * (SIZE - 2))  # the rows that all pawns have before them
    observation_shape = (3, SIZE, SIZE)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, transform=transform)

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        cells, actions = np.arange(SIZE**2), np.arange(NUM_ACTIONS)
        mirrored = actions.reshape(SIZE, SIZE, 3)[:, ::-1, ::-1].ravel()
        return np.stack([cells, cells.reshape(SIZE, SIZE)[:, ::-1].ravel()]), np.stack([actions, mirrored])

    def render(self, state: np.ndarray, to_play: int) -> str:
        first, second = int(state[to_play]), int(state[1 - to_play])
        marks = ["X" if first >> i & 1 else "O" if second >> i & 1 else "." for i in range(SIZE * SIZE)]
        rows = [" ".join(marks[SIZE * row : SIZE * (row + 1)]) for row in range(SIZE)]
        rows = rows[::-1] if to_play == 0 else rows
        return "\n".join([*(f"{SIZE - i} {row}" for i, row in enumerate(rows)), "  a b c d e f"])

    @cached_property
    def board(self) -> Board:
        """The board as the first player sees it: row by row from the far side."""
        names = [f"{'abcdef'[column]}{SIZE - row}" for row in range(SIZE) for column in range(SIZE)]
        labels = edge_labels([str(SIZE - row) for row in range(SIZE)], "abcdef")
        cells, shapes = grid_cells(SIZE, SIZE, names, "checkered"), ("pawn", "pawn")
        return Board(cells, labels, shapes=shapes, colors=COLORS, worth={"pawn": 1}, bottom=0)

    def cell_of(self, square: int, to_play: int) -> int:
        """The cell of a square, whose number counts from the mover's home row."""
        return square if to_play else SIZE * (SIZE - 1 - square // SIZE) + square % SIZE

    def pieces(self, position: Position) -> list[Piece]:
        mover, squares = position.to_play, range(SIZE * SIZE)
        owners = ((position.state[0], mover), (position.state[1], 1 - mover))
        return [Piece(self.cell_of(i, mover), owner) for pawns, owner in owners for i in squares if int(pawns) >> i & 1]

    def clicks(self, position: Position) -> Clicks:
        """A click on the pawn, then one on its target."""
        ends = {action: (action // 3, action // 3 + SIZE + action % 3 - 1) for action in position.legal_actions}
        return {tuple(self.cell_of(i, position.to_play) for i in path): action for action, path in ends.items()}

    def format_action(self, action: int, state: np.ndarray) -> str:
        row, column = divmod(action // 3, SIZE)
        target = column + action % 3 - 1
        taken = int(state[1]) >> SIZE * (row + 1) + target & 1
        ranks = (SIZE - row, SIZE - row - 1) if int(state[2]) else (row + 1, row + 2)
        return f"{'abcdef'[column]}{ranks[0]}{'x' if taken else '-'}{'abcdef'[target % SIZE]}{ranks[1]}"

    def parse_action(self, text: str, state: np.ndarray) -> int:
        origin, target = text.lower().replace("x", "-").split("-")
        (column, row), (to_column, to_row) = (("abcdef".index(word[0]), int(word[1:])) for word in (origin, target))
        forward = to_row - row
        if int(state[2]):
            row, forward = SIZE + 1 - row, -forward
        if forward != 1 or not 1 <= row < SIZE or abs(to_column - column) > 1:
            raise ValueError(text)
        return 3 * (SIZE * (row - 1) + column) + to_column - column + 1

    def read_board(self, text: str) -> Position | None:
        """A FEN, whose white is the first player: P, and w to move; or a sign for each square, and X or O to move."""
        sides = r"(?<=\s)(w|b|white|black)(?=\s|$)"
        text = re.sub(sides, lambda side: "P" if side[0][0] in "wW" else "p", text, flags=re.IGNORECASE)
        grid = read_grid(text, SIZE, SIZE, "PXx*", "pOo")
        if grid is None:
            return None
        if grid.to_play is None:
            raise ValueError("behind the board must stand who moves: w or b, white or black, or X or O")
        if max(len(grid.first), len(grid.second)) > 2 * SIZE:
            raise ValueError(f"a player has {2 * SIZE} pawns at most")
        own, opponent = (grid.second, grid.first) if grid.to_play else (grid.first, grid.second)
        squares = [[self.cell_of(cell, grid.to_play) for cell in cells] for cells in (own, opponent)]
        arrived = sum(square < SIZE for square in squares[1])
        if not opponent or arrived > 1 or any(square >= SIZE * (SIZE - 1) for square in squares[0]):
            raise ValueError("the game was over before: the player to move has won, or two pawns have arrived")
        words = [sum(1 << square for square in own) for own in squares]
        return Position(self, np.array([*words, grid.to_play], np.uint64), grid.to_play, ())
