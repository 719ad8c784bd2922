"""2048: one player pushes all tiles to an edge; equal tiles that meet merge, and count their sum as points.

A new tile comes after each move, 2 nine times in ten and 4 else, on any empty cell alike; two lie there at the start.
The game is over when nothing can be pushed, or when the tiles add up to LARGEST_SUM, so that it ends whatever happens.
`state` is the exponents of the tiles, four bits a cell (0 is empty); the new tiles that are due; the points so far.

    0  1  2  3        a1 b1 c1 d1
    4  5  6  7        a2 b2 c2 d2
    8  9 10 11        a3 b3 c3 d3
   12 13 14 15        a4 b4 c4 d4
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numba import njit

from alphazero.game import Board, Cell, Clicks, Colors, Game, Piece, Position, Rules, Score, count_bits, square

SIZE = 4
NUM_CELLS = SIZE * SIZE
UP, DOWN, LEFT, RIGHT = range(4)
WORDS = ("up", "down", "left", "right")
LARGEST_SUM = 16_384
"""Each move adds 2 or 4 to the sum of the tiles. 8192 is the largest tile; it comes with some 90,000 points."""
NUM_EXPONENTS = 14
MOST_POINTS = 100_000
PART_OF_FOURS = 0.1
"""The probability that a new tile is a 4."""
TILES, DUE, POINTS = 0, 1, 2
"""The words of a state."""
NIBBLE, ONE = np.uint64(0b1111), np.uint64(1)
LOWS = np.uint64(0x1111_1111_1111_1111)
"""The lowest bit of every cell."""
NOT_LAST_COLUMN, NOT_LAST_ROW = np.uint64(0x0111_0111_0111_0111), np.uint64(0x0000_1111_1111_1111)
STEPS = ((-1, 0), (1, 0), (0, -1), (0, 1))
"""Rows and columns that a tile goes in each action."""
COLORS = Colors(cell="#34435a", shaded="#2b384c", neutral="#8a5a2b")


def find_symmetries() -> tuple[np.ndarray, np.ndarray]:
    """The eight symmetries of the square: which cell comes to each cell, and which action to each action."""
    grid = np.arange(NUM_CELLS).reshape(SIZE, SIZE)
    images = [np.rot90(board, turns) for board in (grid, grid[:, ::-1]) for turns in range(4)]
    actions = []
    for image in images:
        old = [divmod(int(image[1 + down, 1 + right]), SIZE) for down, right in STEPS]
        row, column = divmod(int(image[1, 1]), SIZE)
        actions.append([STEPS.index((there[0] - row, there[1] - column)) for there in old])
    return np.stack([image.ravel() for image in images]), np.array(actions)


IMAGES, ACTION_IMAGES = find_symmetries()


@njit
def tile(state, cell):
    return np.int64((state[0] >> np.uint64(4 * cell)) & NIBBLE)


@njit
def cell_of(action, line, place):
    """The cell at a place of a line, counted from the edge that the action pushes to."""
    along = place if action in (UP, LEFT) else SIZE - 1 - place
    return SIZE * along + line if action in (UP, DOWN) else SIZE * line + along


@njit
def marks(board):
    """The lowest bit of every cell that is not empty."""
    board |= board >> np.uint64(2)
    return (board | board >> np.uint64(1)) & LOWS


@njit
def moves_something(state, action):
    """A tile can go to the cell beside it, which is empty or has the same tile; all pairs of cells at once."""
    board, sideways = state[TILES], action in (LEFT, RIGHT)
    beside = board >> np.uint64(4 if sideways else 16)
    first, second, differ = marks(board), marks(beside), marks(board ^ beside)
    goes, ahead = (second, first) if action in (UP, LEFT) else (first, second)
    return goes & ~(ahead & differ) & (NOT_LAST_COLUMN if sideways else NOT_LAST_ROW) != np.uint64(0)


@njit
def init(state):
    state[TILES], state[DUE], state[POINTS] = np.uint64(0), np.uint64(2), np.uint64(0)


@njit
def legal(state, legal_mask):
    for action in range(4):
        legal_mask[action] = moves_something(state, action)


@njit
def step(state, action):
    board, won = np.uint64(0), 0
    for line in range(SIZE):
        place, last = -1, 0  # of the last tile that was put down; 0 if it has merged
        for source in range(SIZE):
            here = tile(state, cell_of(action, line, source))
            if here == 0:
                continue
            if here == last:
                board += ONE << np.uint64(4 * cell_of(action, line, place))
                won += 2 << here
                last = 0
            else:
                place, last = place + 1, here
                board |= np.uint64(here) << np.uint64(4 * cell_of(action, line, place))
    state[TILES] = board
    state[DUE] += ONE
    state[POINTS] += np.uint64(won)


@njit
def num_empty(state):
    return count_bits(LOWS & ~marks(state[TILES]))


@njit
def chance(state, probabilities):
    if state[DUE] == np.uint64(0):
        return 0
    empty = num_empty(state)
    for number in range(empty):
        probabilities[2 * number] = (1.0 - PART_OF_FOURS) / empty
        probabilities[2 * number + 1] = PART_OF_FOURS / empty
    return 2 * empty


@njit
def settle(state, outcome):
    empty = LOWS & ~marks(state[TILES])
    for _ in range(outcome // 2):
        empty &= empty - ONE
    state[TILES] |= (empty & (~empty + ONE)) << np.uint64(outcome % 2)
    state[DUE] -= ONE


@njit
def is_terminal(state):
    if state[DUE] > np.uint64(0):
        return False
    board = state[TILES]
    if (board >> np.uint64(3)) & (board >> np.uint64(2) | board >> np.uint64(1)) & LOWS:  # else 512 is the largest
        total = 0
        for cell in range(NUM_CELLS):
            exponent = tile(state, cell)
            total += 1 << exponent if exponent > 0 else 0
        if total >= LARGEST_SUM:
            return True
    for action in range(4):
        if moves_something(state, action):
            return False
    return True


@njit
def terminal_value(state):
    return float(state[POINTS])


@njit
def observe(state, planes):
    """A plane for each exponent; the first has the empty cells."""
    for cell in range(NUM_CELLS):
        planes[min(tile(state, cell), NUM_EXPONENTS - 1), cell // SIZE, cell % SIZE] = 1.0


@njit
def swapped(board, low, shift):
    """Swaps the cells of `low` with those that many bits behind them."""
    shift = np.uint64(shift)
    other = low << shift
    return (board & ~(low | other)) | (board & low) << shift | (board & other) >> shift


@njit
def mirrored(board):
    """The columns in reverse order."""
    board = swapped(board, np.uint64(0x00FF_00FF_00FF_00FF), 8)
    return swapped(board, np.uint64(0x0F0F_0F0F_0F0F_0F0F), 4)


@njit
def transposed(board):
    """Rows become columns: in blocks of two by two cells, and these blocks."""
    board = swapped(board, np.uint64(0x0000_F0F0_0000_F0F0), 12)
    return swapped(board, np.uint64(0x0000_0000_FF00_FF00), 24)


@njit
def transform(state, symmetry):
    """The image of `IMAGES`: perhaps a mirror, then quarters of a turn."""
    board = state[TILES]
    if symmetry >= 4:
        board = mirrored(board)
    for _ in range(symmetry % 4):
        board = transposed(mirrored(board))
    state[TILES] = board


class Twenty48(Game):
    """Outcome 2k puts a 2 on the empty cell number k, in the order of the cells, and outcome 2k + 1 a 4."""

    name = "2048"
    num_players, score, points_word = 1, Score(0, MOST_POINTS), POINTS
    num_actions, num_outcomes, dice_in_a_row = 4, 2 * NUM_CELLS, 2
    state_words, max_plies = 3, LARGEST_SUM // 2
    observation_shape = (NUM_EXPONENTS, SIZE, SIZE)
    rules = Rules(
        init, legal, step, is_terminal, terminal_value, observe, transform=transform, chance=chance, settle=settle
    )  # fmt: skip

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        return IMAGES, ACTION_IMAGES

    def tiles(self, state: np.ndarray) -> list[int]:
        """The numbers on the cells; 0 where there is none."""
        exponents = [int(state[0]) >> 4 * cell & 15 for cell in range(NUM_CELLS)]
        return [1 << exponent if exponent else 0 for exponent in exponents]

    def render(self, state: np.ndarray, to_play: int) -> str:
        """The board, with the points so far below."""
        tiles = self.tiles(state)
        rows = [tiles[first : first + SIZE] for first in range(0, NUM_CELLS, SIZE)]
        lines = ["   " + "".join(f"{letter:>6}" for letter in "abcd")]
        lines += [f"{row + 1:>3}" + "".join(f"{n or '.':>6}" for n in numbers) for row, numbers in enumerate(rows)]
        return "\n".join([*lines, f"points {int(state[POINTS])}"])

    @cached_property
    def board(self) -> Board:
        cells = [Cell(name_of(cell), square(cell // SIZE, cell % SIZE)) for cell in range(NUM_CELLS)]
        return Board(tuple(cells), colors=COLORS)

    def pieces(self, position: Position) -> list[Piece]:
        tiles = enumerate(self.tiles(position.state))
        return [Piece(cell, None, "fill", str(number)) for cell, number in tiles if number]

    def clicks(self, position: Position) -> Clicks:
        """All actions are buttons."""
        return {}

    def format_action(self, action: int, state: np.ndarray) -> str:
        return WORDS[action]

    def parse_action(self, text: str, state: np.ndarray) -> int:
        return WORDS.index(text.lower())

    def format_outcome(self, outcome: int, state: np.ndarray) -> str:
        """The cell and the tile, as b3=2."""
        empty = [cell for cell, number in enumerate(self.tiles(state)) if not number]
        return f"{name_of(empty[outcome // 2])}={2 + 2 * (outcome % 2)}"


def name_of(cell: int) -> str:
    """A letter for the column, and the row's number from the top."""
    return f"{'abcd'[cell % SIZE]}{cell // SIZE + 1}"
