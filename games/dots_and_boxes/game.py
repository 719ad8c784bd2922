"""Dots and boxes, 3 x 3 boxes: who draws a box's fourth side owns it and moves again; most boxes win.

`state` is (lines, own, opponent, mover): the lines drawn, one bit each, how many boxes each side owns, and who moves.

    o  0  o  1  o  2  o        a line's number is its action: first those that lie, then those that stand
    12    13    14    15
    o  3  o  4  o  5  o
    16    17    18    19
    o  6  o  7  o  8  o
    20    21    22    23
    o  9  o 10  o 11  o
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numba import njit

from alphazero.game import Board, Cell, Clicks, Colors, Game, Label, Piece, Position, Rules, Stroke, square

SIZE = 3
NUM_LYING = SIZE * (SIZE + 1)
NUM_LINES = 2 * NUM_LYING
NUM_BOXES = SIZE * SIZE
ZERO, ONE = np.uint64(0), np.uint64(1)
COLORS = Colors(cell="#4a5a74", line="#4a5a74", neutral="#e8edf4")
ALL_LINES = np.uint64((1 << NUM_LINES) - 1)
BOXES = tuple(
    (1 << SIZE * row + col) | (1 << SIZE * (row + 1) + col)
    | (1 << NUM_LYING + (SIZE + 1) * row + col) | (1 << NUM_LYING + (SIZE + 1) * row + col + 1)
    for row in range(SIZE) for col in range(SIZE)
)  # fmt: skip
"""The four sides of each box, row by row."""
GRID = 2 * SIZE + 1
"""Dots, lines and boxes as the network sees them: dots in even rows and columns, boxes in odd ones."""
PLACES = np.array(
    [(2 * (i // SIZE), 2 * (i % SIZE) + 1) for i in range(NUM_LYING)]
    + [(2 * (i // (SIZE + 1)) + 1, 2 * (i % (SIZE + 1))) for i in range(NUM_LYING)]
)
"""Row and column of each line in that grid."""
BOX = 1.5
"""The width of a box in pictures."""


def find_symmetries() -> tuple[np.ndarray, np.ndarray]:
    """The eight symmetries of the square, of the grid's cells and of the lines."""
    grid = np.arange(GRID**2).reshape(GRID, GRID)
    cells = np.stack([np.rot90(board, turns).ravel() for board in (grid, grid[:, ::-1]) for turns in range(4)])
    line_at = {int(cell): line for line, cell in enumerate(PLACES @ (GRID, 1))}
    return cells, np.array([[line_at[int(image[cell])] for cell in line_at] for image in cells])


def line_outline(line: int) -> tuple[tuple[float, float], ...]:
    """The outline of a line in pictures: a thin hexagon from dot to dot."""
    down, right = PLACES[line] / 2
    end, inner, thin = 0.43, 0.36, 0.07
    corners = ((-end, 0), (-inner, -thin), (inner, -thin), (end, 0), (inner, thin), (-inner, thin))
    along, across = (0, 1) if line < NUM_LYING else (1, 0)
    return tuple((BOX * float(right + corner[along]), BOX * float(down + corner[across])) for corner in corners)


def line_label(line: int) -> Label:
    """The number of a line in pictures, beside its middle, where it hides neither a line nor a score on it."""
    down, right = PLACES[line] / 2
    x, y = (-0.45, -0.2) if line < NUM_LYING else (0.24, -0.4)
    return Label((BOX * float(right) + x, BOX * float(down) + y), str(line))


CELL_IMAGES, LINE_IMAGES = find_symmetries()


@njit
def init(state):
    state[:] = ZERO


@njit
def legal(state, legal_mask):
    for line in range(NUM_LINES):
        legal_mask[line] = (state[0] >> np.uint64(line)) & ONE == ZERO


@njit
def step(state, action):
    before = state[0]
    state[0] |= ONE << np.uint64(action)
    completed = ZERO
    for sides in BOXES:
        box = np.uint64(sides)
        if state[0] & box == box and before & box != box:
            completed += ONE
    if completed:
        state[1] += completed
    else:
        state[1], state[2] = state[2], state[1]
        state[3] ^= ONE


@njit
def is_terminal(state):
    return state[0] == ALL_LINES


@njit
def terminal_value(state):
    return 1.0 if state[1] > state[2] else -1.0


@njit
def observe(state, planes):
    """Lines drawn; boxes that a line would complete; the lead in boxes; the board."""
    lead = (np.float32(state[1]) - np.float32(state[2])) / NUM_BOXES
    for line in range(NUM_LINES):
        planes[0, PLACES[line, 0], PLACES[line, 1]] = (state[0] >> np.uint64(line)) & ONE
    for number in range(NUM_BOXES):
        missing = np.uint64(BOXES[number]) & ~state[0]
        planes[1, 2 * (number // SIZE) + 1, 2 * (number % SIZE) + 1] = (
            missing != ZERO and missing & (missing - ONE) == ZERO
        )
    for row in range(GRID):
        for column in range(GRID):
            planes[2, row, column] = lead
            planes[3, row, column] = 1.0


@njit
def to_play(state):
    return np.int64(state[3])


@njit
def transform(state, symmetry):
    turned = ZERO
    for line in range(NUM_LINES):
        turned |= ((state[0] >> np.uint64(LINE_IMAGES[symmetry, line])) & ONE) << np.uint64(line)
    state[0] = turned


class DotsAndBoxes(Game):
    """Actions are the lines as numbered above; people write those numbers."""

    name = "dots_and_boxes"
    num_actions, state_words, max_plies = NUM_LINES, 4, NUM_LINES
    observation_shape = (4, GRID, GRID)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe, to_play=to_play, transform=transform)

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        return CELL_IMAGES, LINE_IMAGES

    def render(self, state: np.ndarray, to_play: int) -> str:
        """Lines that can still be drawn are shown by their numbers."""
        cells = [["" if row % 2 else "o"] * GRID for row in range(GRID)]
        for line, (row, column) in enumerate(PLACES.tolist()):
            cells[row][column] = str(line) if not int(state[0]) >> line & 1 else "|" if row % 2 else "---"
        rows = ["".join(cell.center(4) if i % 2 else cell.ljust(3) for i, cell in enumerate(row)) for row in cells]
        first, second = int(state[1 + to_play]), int(state[2 - to_play])
        return "\n".join([*map(str.rstrip, rows), f"player 1 owns {first} boxes, player 2 owns {second}"])

    @cached_property
    def board(self) -> Board:
        """The boxes row by row, then the lines as numbered above."""
        lines = [Cell(str(line), line_outline(line)) for line in range(NUM_LINES)]
        places = [(row, column) for row in range(SIZE) for column in range(SIZE)]
        boxes = [Cell(f"box {row + 1}, {column + 1}", square(row, column, BOX), "open") for row, column in places]
        corners = [(BOX * column, BOX * row) for row in range(SIZE + 1) for column in range(SIZE + 1)]
        dots, labels = tuple(Stroke((at, at), 0.28, "text") for at in corners), map(line_label, range(NUM_LINES))
        return Board((*boxes, *lines), tuple(labels), dots, shapes=("fill", "fill"), colors=COLORS)

    def pieces(self, position: Position) -> list[Piece]:
        """The lines drawn, and the boxes with their owners; boxes have no owner if the history is unknown."""
        drawn = [line for line in range(NUM_LINES) if int(position.state[0]) >> line & 1]
        known = len(position.actions) == len(drawn)
        mover, done, pieces = 0, 0, [Piece(NUM_BOXES + line, None, "line") for line in drawn]
        for line in position.actions if known else drawn:
            completed = [box for box, sides in enumerate(BOXES) if sides & ~done == 1 << line]
            done |= 1 << line
            pieces += [Piece(box, mover if known else None, "fill") for box in completed]
            mover = mover if completed else 1 - mover
        return pieces

    def clicks(self, position: Position) -> Clicks:
        return {(NUM_BOXES + line,): line for line in position.legal_actions}

    def parse_action(self, text: str, state: np.ndarray) -> int:
        action = int(text)
        if not 0 <= action < NUM_LINES:
            raise ValueError(text)
        return action
