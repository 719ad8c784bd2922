"""Othello (Reversi): a disc turns over the opponent's discs that it encloses in a line; most discs win.

A player's discs are one word, eight bits a row; `state` is (own, opponent). A smaller board lies in the top left
corner.

     a  b  c  d  e  f  g  h
 1   0  1  2  3  4  5  6  7       square = 8 * row + column
 2   8  9 10 11 12 13 14 15       action = size * row + column; the last one is the pass
 ...
 8  56 57 58 59 60 61 62 63

Who cannot turn over a disc must pass; when neither can, the game is over. The word of all discs is shifted along each
of the eight directions at once; opponent's discs of the outer columns take no part in lines that cross columns, which
keeps lines from wrapping round (https://www.chessprogramming.org/Othello).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, cached_property

import numpy as np
from numba import njit

from alphazero.game import Board, Colors, Game, Position, Rules, grid_board, images_of_square, read_grid

ZERO, ONE = np.uint64(0), np.uint64(1)
EIGHT = np.uint64(8)
COLORS = Colors(panel="#1d3b2a", text="#e3efe7", cell="#2f8f5b", line="#1f6a42", first="#161616", second="#f7f7f2")
DIRECTIONS = (1, 8, 7, 9)
"""Across, down, down and to the left, down and to the right; and back."""
CORNER, BESIDE_CORNER, DIAGONAL_TO_CORNER, EDGE = 25, -5, -10, 2
"""Weights for the `minimax` baseline: a corner is never turned over, and who plays beside it often gives it away."""


# not those of `alphazero.game`: rules in other words get another name, and tournaments of before could not go on
@njit
def count_bits(word):
    """The number of bits of a uint64 that are 1."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    word += word >> EIGHT
    word += word >> np.uint64(16)
    return np.int64((word + (word >> np.uint64(32))) & np.uint64(0x7F))


@njit
def flip_rows(word):
    """Row 0 of eight becomes row 7."""
    word = ((word >> EIGHT) & np.uint64(0x00FF00FF00FF00FF)) | ((word & np.uint64(0x00FF00FF00FF00FF)) << EIGHT)
    half, whole = np.uint64(16), np.uint64(32)
    word = ((word >> half) & np.uint64(0x0000FFFF0000FFFF)) | ((word & np.uint64(0x0000FFFF0000FFFF)) << half)
    return (word >> whole) | (word << whole)


@njit
def transpose(word):
    """Row i, column j becomes row j, column i (H. S. Warren, Hacker's Delight, 7-3)."""
    for shift, mask in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0)):
        distance = np.uint64(shift)
        swap = (word ^ (word >> distance)) & np.uint64(mask)
        word ^= swap ^ (swap << distance)
    return word


@njit
def discs_between(start, opponent, direction, inner):
    """The opponent's discs in unbroken lines from the squares `start` on: forward along a direction, and backward."""
    shift = np.uint64(direction)
    between = opponent if direction == 8 else opponent & inner
    forward, backward = between & (start << shift), between & (start >> shift)
    for _ in range(5):  # lines enclose up to six discs
        forward |= between & (forward << shift)
        backward |= between & (backward >> shift)
    return forward, backward


@njit
def moves_of(own, opponent, board, inner):
    """Squares where the owner of `own` can play, on the squares `board`, whose inner columns are `inner`."""
    moves = ZERO
    for direction in DIRECTIONS:
        forward, backward = discs_between(own, opponent, direction, inner)
        moves |= (forward << np.uint64(direction)) | (backward >> np.uint64(direction))
    return moves & board & ~(own | opponent)


@njit
def turned_by(own, opponent, square, inner):
    """The opponent's discs that a disc on `square` (a word of one bit) turns over."""
    turned = ZERO
    for direction in DIRECTIONS:
        forward, backward = discs_between(square, opponent, direction, inner)
        if (forward << np.uint64(direction)) & own:
            turned |= forward
        if (backward >> np.uint64(direction)) & own:
            turned |= backward
    return turned


def squares_where(size: int, wanted) -> np.uint64:
    """The word of all squares of a board for which `wanted(row, column)` holds."""
    return np.uint64(sum(1 << 8 * row + col for row in range(size) for col in range(size) if wanted(row, col)))


def board_of(size: int) -> tuple[np.uint64, np.uint64]:
    """All squares of a board, and those of its inner columns."""
    return squares_where(size, lambda row, col: True), squares_where(size, lambda row, col: 0 < col < size - 1)


@cache  # games of the same functions share compiled code
def make_rules(size: int) -> Rules:
    """The rules on a board of `size` x `size` squares, an even number from 4 to 8."""
    pass_action = size * size
    last = size - 1
    board, inner = board_of(size)
    middle = size // 2
    dark = squares_where(size, lambda row, col: (row, col) in ((middle - 1, middle), (middle, middle - 1)))
    light = squares_where(size, lambda row, col: (row, col) in ((middle - 1, middle - 1), (middle, middle)))
    ends, near = (0, last), (1, last - 1)
    corners = squares_where(size, lambda row, col: row in ends and col in ends)
    beside = squares_where(size, lambda row, col: (row in ends and col in near) or (row in near and col in ends))
    diagonal = squares_where(size, lambda row, col: row in near and col in near)
    edges = squares_where(size, lambda row, col: row in ends or col in ends) & ~corners & ~beside
    margin = np.uint64(8 - size)

    @njit
    def init(state):
        state[0], state[1] = dark, light

    @njit
    def legal(state, legal_mask):
        moves = moves_of(state[0], state[1], board, inner)
        for row in range(size):
            for col in range(size):
                legal_mask[size * row + col] = (moves >> np.uint64(8 * row + col)) & ONE == ONE
        legal_mask[pass_action] = moves == ZERO

    @njit
    def step(state, action):
        own, opponent = state[0], state[1]
        if action != pass_action:
            square = ONE << np.uint64(8 * (action // size) + action % size)
            turned = turned_by(own, opponent, square, inner)
            own |= turned | square
            opponent &= ~turned
        state[0] = opponent  # the board turns round
        state[1] = own

    @njit
    def is_terminal(state):
        return moves_of(state[0], state[1], board, inner) == ZERO and moves_of(state[1], state[0], board, inner) == ZERO

    @njit
    def terminal_value(state):
        own, opponent = count_bits(state[0]), count_bits(state[1])
        return 1.0 if own > opponent else -1.0 if own < opponent else 0.0

    @njit
    def wins_at_once(state, square):
        """A disc on the square ends the game, and the mover has more."""
        disc = ONE << square
        turned = turned_by(state[0], state[1], disc, inner)
        own, opponent = state[0] | disc | turned, state[1] & ~turned
        if moves_of(opponent, own, board, inner) or moves_of(own, opponent, board, inner):
            return False
        return count_bits(own) > count_bits(opponent)

    @njit
    def observe(state, planes):
        """Discs, own and the opponent's; squares to play on, for both; those that win at once; the board itself.

        Without the last but one, networks are blind to a loss of all discs early on, which hardly comes up in the games
        of those who avoid it (docs/log.md).
        """
        moves = moves_of(state[0], state[1], board, inner)
        others_moves = moves_of(state[1], state[0], board, inner)
        for row in range(size):
            for col in range(size):
                square = np.uint64(8 * row + col)
                planes[0, row, col] = (state[0] >> square) & ONE
                planes[1, row, col] = (state[1] >> square) & ONE
                planes[2, row, col] = (moves >> square) & ONE
                planes[3, row, col] = (others_moves >> square) & ONE
                planes[4, row, col] = (moves >> square) & ONE == ONE and wins_at_once(state, square)
                planes[5, row, col] = 1.0

    @njit
    def transform(state, symmetry):
        """Bit 0: rows and columns change places; bit 1: the first row becomes the last; bit 2: so do the columns."""
        for i in range(2):
            word = state[i]
            if symmetry & 1:
                word = transpose(word)
            if symmetry & 2:
                word = flip_rows(word) >> (EIGHT * margin)
            if symmetry & 4:
                word = transpose(flip_rows(transpose(word))) >> margin
            state[i] = word

    @njit
    def weigh(discs):
        return (
            CORNER * count_bits(discs & corners)
            + BESIDE_CORNER * count_bits(discs & beside)
            + DIAGONAL_TO_CORNER * count_bits(discs & diagonal)
            + EDGE * count_bits(discs & edges)
        )

    @njit
    def heuristic(state):
        """Weighted squares, and how many more moves the mover has than the opponent."""
        moves = count_bits(moves_of(state[0], state[1], board, inner)) - count_bits(
            moves_of(state[1], state[0], board, inner)
        )
        lead = weigh(state[0]) - weigh(state[1]) + 2 * moves
        return lead / (50.0 + abs(lead))

    return Rules(init, legal, step, is_terminal, terminal_value, observe, transform=transform, heuristic=heuristic)


class Othello(Game):
    """Actions are the squares row by row, and a pass; people write them a1-h8, column and row, and "pass"."""

    name = "othello"
    size = 8
    state_words = 2

    def __init__(self) -> None:
        self.num_actions = self.size**2 + 1
        self.max_plies = 2 * (self.size**2 - 4)  # a disc or a pass, which no pass follows
        self.observation_shape = (6, self.size, self.size)
        self.rules = make_rules(self.size)

    @cached_property
    def symmetries(self) -> tuple[np.ndarray, np.ndarray]:
        cells = images_of_square(self.size)
        return cells, np.hstack([cells, np.full((8, 1), self.size**2)])

    def render(self, state: np.ndarray, to_play: int) -> str:
        first, second = int(state[to_play]), int(state[1 - to_play])
        marks = ["X" if first >> i & 1 else "O" if second >> i & 1 else "." for i in range(64)]
        rows = [f"{row + 1} " + " ".join(marks[8 * row : 8 * row + self.size]) for row in range(self.size)]
        counts = f"  X {first.bit_count()}, O {second.bit_count()}"
        return "\n".join(["  " + " ".join("abcdefgh"[: self.size]), *rows, counts])

    @cached_property
    def board(self) -> Board:
        return replace(grid_board(self), colors=COLORS)

    def format_action(self, action: int, state: np.ndarray) -> str:
        row, col = divmod(action, self.size)
        return "pass" if action == self.size**2 else f"{'abcdefgh'[col]}{row + 1}"

    def parse_action(self, text: str, state: np.ndarray) -> int:
        return [self.format_action(action, state) for action in range(self.num_actions)].index(text.lower())

    def split_moves(self, text: str) -> list[str]:
        """Squares need no spaces between them, as in "f5d6c3", and may have hyphens."""
        joined = re.sub(r"(?<=\w)-(?=\w)", "", "".join(super().split_moves(text)))
        return re.findall("pass|..?", joined, re.IGNORECASE)

    def read_board(self, text: str) -> Position | None:
        """A sign for each square, then the sign of the player to move: the first is X, * or B, the second O or W."""
        grid = read_grid(text, self.size, self.size)
        if grid is None:
            return None
        if grid.to_play is None:
            raise ValueError("behind the board must stand who moves: X or O, black or white")
        middle = (self.size // 2 - 1, self.size // 2)
        if not {*grid.first, *grid.second}.issuperset(self.size * row + col for row in middle for col in middle):
            raise ValueError("the four squares in the middle are never empty")
        own, opponent = (grid.second, grid.first) if grid.to_play else (grid.first, grid.second)
        words = [sum(1 << 8 * (cell // self.size) + cell % self.size for cell in cells) for cells in (own, opponent)]
        return Position(self, np.array(words, np.uint64), grid.to_play, ())


class Othello6(Othello):
    """The same on a board of 6 x 6 squares, a1-f6; with perfect play the second player wins 20-16 (Feinstein 1993)."""

    name = "othello6"
    size = 6
