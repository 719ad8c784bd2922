"""The legal moves of chess, compiled: words of one bit for each square, as the player to move sees the board.

Square 8 * row + column; row 0 is the mover's home row, whatever the colour. A smaller board lies in the corner of
square 0. `state` begins with four words that name the piece on every square (https://www.chessprogramming.org/
Quad-Bitboards), and one of flags:

    word           pawn  knight  bishop  rook  queen  king
    0 (diagonal)           x       x            x
    1 (straight)                          x     x      x
    2 (other)       x      x                           x
    3: the mover's own pieces
    4: castling (bits 0-3: the mover's short and long, the opponent's), square to take en passant (4-9, 0: none),
       plies since a capture or a pawn's move (10-16), times the position was there before (17, 18), Black moves (19)
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit

from alphazero.game import lowest_bit

ZERO, ONE, ALL = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)
DIAGONAL, STRAIGHT, OTHER, OWN, FLAGS = range(5)
EN_PASSANT, FIFTY, REPEATS, COLOR = (np.uint64(shift) for shift in (4, 10, 17, 19))
LETTERS = ".BRQPNK."
"""A piece's number, its place here, has its bits in the words 0 to 2: bishops have 1 in word 0, knights in 0 and 2."""
PROMOTIONS = "nbr"
CASTLES = ((1, 0x60, 6), (2, 0x0E, 2))
"""For each way to castle: its flag, the squares that are empty, and where the king goes."""


def words_of(steps: list[tuple[int, int]], far: bool = False) -> list[int]:
    """For each square of 8 x 8 the squares that these steps reach, (rows, columns); with `far` any number of times."""
    words = []
    for square in range(64):
        word = 0
        for down, right in steps:
            row, column = square // 8 + down, square % 8 + right
            while 0 <= row < 8 and 0 <= column < 8:
                word |= 1 << 8 * row + column
                row, column = (row + down, column + right) if far else (8, 8)
        words.append(word)
    return words


AROUND = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1) if row or column]
JUMPS = [(row, column) for row in (-2, -1, 1, 2) for column in (-2, -1, 1, 2) if abs(row) != abs(column)]
LINES = np.array(
    [words_of([(*way,), (-way[0], -way[1])], True) for way in ((0, 1), (1, 0), (1, 1), (1, -1))], np.uint64
)
"""The squares of a row, a column and two diagonals, without the square that they cross in."""
TAKES, KNIGHT, NEAR = (np.array(words_of(steps), np.uint64) for steps in ([(1, -1), (1, 1)], JUMPS, AROUND))
"""The squares that a pawn takes on, and those of a knight and of a king."""


@cache
def ends_of(size: int) -> list[tuple[int, int, str]]:
    """Each action's square, the square where it goes, and what a pawn becomes that is no queen."""
    reach = [a | b for a, b in zip(words_of(AROUND, True), words_of(JUMPS), strict=True)]
    squares = [8 * row + column for row in range(size) for column in range(size)]
    ends = [(origin, target, "") for origin in squares for target in squares if reach[origin] >> target & 1]
    last = 8 * (size - 2)
    steps = [(column, column + step) for column in range(size) for step in (-1, 0, 1) if 0 <= column + step < size]
    return ends + [(last + left, last + 8 + there, piece) for left, there in steps for piece in PROMOTIONS]


# --- reading a state ---


@njit
def flag_of(state, shift, mask):
    """A number among the flags."""
    return np.int64((state[FLAGS] >> shift) & np.uint64(mask))


@njit
def piece_at(state, square):
    """The number of the piece on a square, 0 if it is empty."""
    found = ZERO
    for word in range(3):
        found |= ((state[word] >> np.uint64(square)) & ONE) << np.uint64(word)
    return np.int64(found)


@njit
def occupied_by_all(state):
    return state[DIAGONAL] | state[STRAIGHT] | state[OTHER]


@njit
def men_of(state, owned):
    """By kind, of the pieces `owned`: pawns, knights, king, what moves like a rook, what moves like a bishop."""
    diagonal, straight, other = state[DIAGONAL] & owned, state[STRAIGHT] & owned, state[OTHER] & owned
    return other & ~diagonal & ~straight, other & diagonal, other & straight, straight & ~other, diagonal & ~other


# --- legal moves ---


@njit
def along(occupied, square, way):
    """The squares on one of the `LINES` of a square up to the first pieces, with these.

    One subtraction takes the first piece below from those above, and so borrows from the first of these
    (https://www.chessprogramming.org/Obstruction_Difference).
    """
    line, below = LINES[way, square], (ONE << np.uint64(square)) - ONE
    above, first = occupied & line & ~below, (occupied & line & below) | ONE
    for shift in (1, 2, 4, 8, 16, 32):
        first |= first >> np.uint64(shift)
    return line & (above ^ (above - (first ^ (first >> ONE))))


@njit
def attackers(theirs, occupied, square):
    """The opponent's men `theirs` who attack a square."""
    pawns, knights, king, straight, diagonal = theirs
    found = (TAKES[square] & pawns) | (KNIGHT[square] & knights) | (NEAR[square] & king)
    for way in range(4):
        sliders = LINES[way, square] & (straight if way < 2 else diagonal)
        if sliders:
            found |= sliders & along(occupied, square, way)
    return found


@njit
def survey(state):
    """The opponent's men, all pieces, the king's square, who gives check, and the own pieces whose moves need a test.

    These may leave the king in check: it itself, who shields it from a piece, and in check all.
    """
    own, occupied = state[OWN], occupied_by_all(state)
    theirs = men_of(state, occupied & ~own)
    king = lowest_bit(state[OTHER] & state[STRAIGHT] & own) & 63  # of a state without a king, as in a hostile file, 0
    checkers, bound = attackers(theirs, occupied, king), ONE << np.uint64(king)
    if checkers:
        bound = own
    for way in range(4):
        sliders = LINES[way, king] & theirs[3 if way < 2 else 4]
        if sliders:
            shields = own & along(occupied, king, way)
            if sliders & along(occupied & ~shields, king, way):
                bound |= shields
    return theirs, occupied, king, checkers, bound


@njit
def is_safe(theirs, occupied, king, gone, target):
    """A king on `king` is not in check when the pieces `gone` have left the board, and one stands on `target`."""
    after = (occupied & ~gone) | (ONE << np.uint64(target))
    return attackers(theirs, after, king) & ~gone == ZERO


@njit
def moves_from(state, found, square, board):
    """The squares where the mover's piece on a square may go; `found` by `survey`, `board` has all squares."""
    theirs, occupied, king, checkers, bound = found
    place = ONE << np.uint64(square)
    moves, passed = ZERO, ZERO
    if state[OTHER] & place == ZERO:
        for way in range(4):
            if state[STRAIGHT if way < 2 else DIAGONAL] & place:
                moves |= along(occupied, square, way)
    elif state[DIAGONAL] & place:
        moves = KNIGHT[square]
    elif state[STRAIGHT] & place:
        moves = NEAR[square]
    else:
        free = board & ~occupied
        moves = (place << np.uint64(8)) & free
        if square < 16 and board == ALL:
            moves |= (moves << np.uint64(8)) & free
        passed = TAKES[square] & (ONE << np.uint64(flag_of(state, EN_PASSANT, 63)))
        moves |= (TAKES[square] & occupied) | passed
    moves &= board & ~state[OWN]
    if bound & place or passed:
        left = moves
        while left:
            end = left & (~left + ONE)
            left ^= end
            target = lowest_bit(end)
            gone = place | end | (end & passed) >> np.uint64(8)
            if not is_safe(theirs, occupied, target if square == king else king, gone, target):
                moves ^= end
    if square == king and checkers == ZERO:
        for right, between, target in CASTLES:
            over = ONE << np.uint64((king + target) // 2)
            is_free = state[FLAGS] & np.uint64(right) and occupied & np.uint64(between) == ZERO and moves & over
            if is_free and is_safe(theirs, occupied, target, place, target):
                moves |= ONE << np.uint64(target)
    return moves


@njit
def has_move(state, found, board):
    left = state[OWN]
    while left:
        if moves_from(state, found, lowest_bit(left), board):
            return True
        left &= left - ONE
    return False


@njit
def is_dead(state):
    """Nobody can mate: two kings; with one knight or bishop; or with bishops on squares of one colour only."""
    pawns, knights, _, straight, diagonal = men_of(state, ALL)
    if pawns | straight:
        return False
    dark = np.uint64(0xAA55AA55AA55AA55)
    if knights:
        return diagonal == ZERO and knights & (knights - ONE) == ZERO
    return diagonal & dark == ZERO or diagonal & ~dark == ZERO


@njit
def mark_passed(state, target):
    """Notes the square past which a pawn went, if the mover has a pawn that may legally take it."""
    passed = np.uint64(target) << EN_PASSANT
    state[FLAGS] |= passed
    found, pawns = survey(state), men_of(state, state[OWN])[0]
    for square in (target - 9, target - 7):
        if (pawns >> np.uint64(square)) & (moves_from(state, found, square, ALL) >> np.uint64(target)) & ONE:
            return
    state[FLAGS] ^= passed
