"""Hex on 7 x 7 cells (P. Hein 1942, J. Nash 1948): connect your two sides; there are no draws.

The first player connects top and bottom, the second left and right. `state` is (own, opponent, mover): stones, eight
bits a row of which the last is always 0, and who moves. A cell touches those beside it, above and below, and two more:

      a b c d e f g
    1  . . . . . . .            (r, c) touches (r, c-1), (r, c+1), (r-1, c), (r-1, c+1), (r+1, c-1), (r+1, c)
    2   . . . . . . .           action = 7 * row + column; with the swap rule the last action is the swap
    3    . . . . . . .

With the swap rule the second player may, instead of a first stone, take over the first player's: it becomes the
second player's own in the mirror image of its cell, so that the position is as good as it was.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numba import njit

from alphazero.game import (
    Board,
    Cell,
    Game,
    Label,
    Position,
    Rules,
    Stroke,
    hexagon,
    in_turn,
    placed_in_turn,
    reached,
    read_grid,
)

SIZE = 7
CELLS = SIZE * SIZE
NO_STATE = np.zeros(0, np.uint64)
SWAP = CELLS
ZERO, ONE, BESIDE, BELOW, BELOW_LEFT = (np.uint64(shift) for shift in (0, 1, 1, 8, 7))
TOP = np.uint64(0b1111111)
BOTTOM = np.uint64(0b1111111 << 48)
LEFT = np.uint64(sum(1 << 8 * row for row in range(SIZE)))
RIGHT = np.uint64(sum(1 << 8 * row + SIZE - 1 for row in range(SIZE)))


@njit
def bit(cell):
    """The word of the stone on a cell, 7 * row + column."""
    return ONE << np.uint64(8 * (cell // SIZE) + cell % SIZE)


@njit
def connects(stones, start, goal):
    """A chain of stones leads from the cells `start` to the cells `goal`."""
    reached = stones & start
    while True:
        grown = reached | (reached << BESIDE) | (reached >> BESIDE) | (reached << BELOW) | (reached >> BELOW)
        grown = (grown | (reached << BELOW_LEFT) | (reached >> BELOW_LEFT)) & stones
        if grown == reached:
            return reached & goal != ZERO
        reached = grown


@njit
def init(state):
    state[:] = ZERO


@njit
def can_swap(state):
    """The second player is to make the first ply."""
    return state[2] == ONE and state[0] == ZERO and state[1] & (state[1] - ONE) == ZERO


@njit
def legal(state, legal_mask):
    stones = state[0] | state[1]
    for cell in range(CELLS):
        legal_mask[cell] = stones & bit(cell) == ZERO


@njit
def legal_with_swap(state, legal_mask):
    legal(state, legal_mask)
    legal_mask[SWAP] = can_swap(state)


@njit
def step(state, action):
    own, opponent = state[0], state[1]
    if action == SWAP:
        own, opponent = mirror(opponent), ZERO
    else:
        own |= bit(action)
    state[0], state[1] = opponent, own
    state[2] ^= ONE


@njit
def mirror(stones):
    """Rows become columns."""
    image = ZERO
    for cell in range(CELLS):
        if stones & bit(cell):
            image |= bit(cell % SIZE * SIZE + cell // SIZE)
    return image


@njit
def is_terminal(state):
    # only the last mover can have won: the second player if the first is to move
    return connects(state[1], LEFT, RIGHT) if state[2] == ZERO else connects(state[1], TOP, BOTTOM)


@njit
def terminal_value(state):
    return -1.0


@njit
def observe(state, planes):
    """Own stones; the opponent's; the mover's two sides; the opponent's sides."""
    for cell in range(CELLS):
        row, column = cell // SIZE, cell % SIZE
        across = 1.0 if column == 0 or column == SIZE - 1 else 0.0
        down = 1.0 if row == 0 or row == SIZE - 1 else 0.0
        planes[0, row, column] = state[0] & bit(cell) != ZERO
        planes[1, row, column] = state[1] & bit(cell) != ZERO
        planes[2, row, column] = down if state[2] == ZERO else across
        planes[3, row, column] = across if state[2] == ZERO else down


@njit
def observe_with_swap(state, planes):
    """One plane more: the mover can swap."""
    observe(state, planes)
    planes[4] = can_swap(state)


@njit
def transform(state, symmetry):
    if symmetry == 1:  # half a turn
        for i in range(2):
            turned = ZERO
            for cell in range(CELLS):
                if state[i] & bit(cell):
                    turned |= bit(CELLS - 1 - cell)
            state[i] = turned


class Hex(Game):
    """Actions are the cells row by row; people write them a1-g7, column and row."""

    name = "hex"
    num_actions, state_words, max_plies = CELLS, 3, CELLS
    observation_shape = (4, SIZE, SIZE)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, transform=transform)

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        cells, swap = np.arange(CELLS), np.arange(CELLS, self.num_actions)
        images = np.stack([cells, cells[::-1]])
        return images, np.stack([np.append(image, swap) for image in images])

    def render(self, state: np.ndarray, to_play: int) -> str:
        first, second = int(state[to_play]), int(state[1 - to_play])
        marks = ["X" if first >> i & 1 else "O" if second >> i & 1 else "." for i in range(8 * SIZE)]
        rows = [" " * row + f"{row + 1} " + " ".join(marks[8 * row : 8 * row + SIZE]) for row in range(SIZE)]
        return "\n".join(["  a b c d e f g", *rows, "X connects top and bottom, O left and right"])

    @cached_property
    def board(self) -> Board:
        outlines = [hexagon(*divmod(cell, SIZE)) for cell in range(CELLS)]
        cells = tuple(Cell(self.format_action(cell, NO_STATE), outline) for cell, outline in enumerate(outlines))
        # the corners of a hexagon go clockwise from the one at the top
        top = [outlines[column][corner] for column in range(SIZE) for corner in (5, 0, 1)]
        bottom = [outlines[CELLS - SIZE + column][corner] for column in range(SIZE) for corner in (4, 3, 2)]
        left = [outlines[SIZE * row][corner] for row in range(SIZE) for corner in (5, 4)] + [bottom[0], bottom[1]]
        right = top[-2:] + [outlines[SIZE * row + SIZE - 1][corner] for row in range(SIZE) for corner in (1, 2)]
        owners = ((top, "first"), (bottom, "first"), (left, "second"), (right, "second"))
        sides = [Stroke(tuple(side), 0.14, owner) for side, owner in owners]
        labels = [Label((column + 0.25, -0.3), "abcdefg"[column]) for column in range(SIZE)]
        labels += [Label((row / 2 - 0.35, outlines[SIZE * row][0][1] + 0.55), str(row + 1)) for row in range(SIZE)]
        return Board(cells, tuple(labels), tuple(sides))

    def winning_cells(self, position: Position) -> list[int]:
        """The chain of the winner's stones from side to side."""
        winner = int(position.outcome < 0)  # the second player connects the first and the last column
        stones = {divmod(piece.cell, SIZE) for piece in self.pieces(position) if piece.player == winner}
        beside = ((0, -1), (0, 1), (-1, 0), (-1, 1), (1, -1), (1, 0))
        chain = stones
        for side in (0, SIZE - 1):
            edge = [place for place in stones if place[winner] == side]
            for row, column in edge:  # those that are found come later
                edge += {(row + down, column + right) for down, right in beside} & stones.difference(edge)
            chain = chain.intersection(edge)
        return sorted(SIZE * row + column for row, column in chain)

    def format_action(self, action: int, state: np.ndarray) -> str:
        return "swap" if action == SWAP else f"{'abcdefg'[action % SIZE]}{action // SIZE + 1}"

    def parse_action(self, text: str, state: np.ndarray) -> int:
        if text.lower() == "swap":
            return SWAP
        column, row = text.lower()
        if not 1 <= int(row) <= SIZE:
            raise ValueError(text)
        return "abcdefg".index(column) + SIZE * (int(row) - 1)

    def read_board(self, text: str) -> Position | None:
        grid = read_grid(text, SIZE, SIZE)
        return None if grid is None else placed_in_turn(self, grid)


class HexWithSwap(Hex):
    """The same with the swap rule, which takes the first player's advantage away."""

    name = "hex_swap"
    num_actions, max_plies = CELLS + 1, CELLS + 1
    observation_shape = (5, SIZE, SIZE)
    rules = replace(Hex.rules, legal=legal_with_swap, observe=observe_with_swap)

    def read_board(self, text: str) -> Position | None:
        """After a swap there may be one O more than X, or as many while O is to move."""
        grid = read_grid(text, SIZE, SIZE)
        if grid is None:
            return None
        lead = len(grid.second) - len(grid.first)
        if lead == 0 and grid.second and grid.to_play is None:
            raise ValueError(
                "after a swap O is to move and else X, so behind the board must stand who moves: X or O, black or white"
            )
        if grid.second and lead in (0, 1) and grid.to_play in (None, 1 - lead):
            games = in_turn(grid.second, grid.first)
            return reached(self, ([first % SIZE * SIZE + first // SIZE, SWAP, *more] for first, *more in games))
        return placed_in_turn(self, grid)
