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

A line's squares up to the first piece follow from one subtraction, which borrows along the line up to that piece
(https://www.chessprogramming.org/Subtracting_a_Rook_from_a_Blocking_Piece); the way down is the way up on the board
turned by 180 degrees.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from alphazero.game import lowest_bit, reverse_bits

ZERO, ONE, ALL = np.uint64(0), np.uint64(1), np.uint64(2**64 - 1)
DIAGONAL, STRAIGHT, OTHER, OWN, FLAGS = range(5)
EN_PASSANT, FIFTY, REPEATS, COLOR = (np.uint64(shift) for shift in (4, 10, 17, 19))
SQUARE = np.uint64(63)


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
PAWN, KNIGHT, KING = (np.array(words_of(steps), np.uint64) for steps in ([(1, -1), (1, 1)], JUMPS, AROUND))


@njit
def upwards(occupied, square, first):
    """The squares on lines `first` and `first` + 1, from a square up to the first piece, with that."""
    found = ZERO
    for way in range(first, first + 2):
        line = LINES[way, square]
        pieces = occupied & line
        found |= line & (pieces ^ (pieces - (ONE << np.uint64(square))))
    return found


@njit
def sliding(occupied, square, first):
    """The squares that a rook (`first` 0) or a bishop (2) attacks."""
    return upwards(occupied, square, first) | reverse_bits(upwards(reverse_bits(occupied), 63 - square, first))


@njit
def on_lines(square, first):
    return LINES[first, square] | LINES[first + 1, square]


@njit
def men_of(state, owned):
    """By kind, of the pieces `owned`: pawns, knights, king, what moves like a rook, what moves like a bishop."""
    diagonal, straight, other = state[DIAGONAL] & owned, state[STRAIGHT] & owned, state[OTHER] & owned
    return other & ~diagonal & ~straight, other & diagonal, other & straight, straight & ~other, diagonal & ~other


@njit
def occupied_by_all(state):
    return state[DIAGONAL] | state[STRAIGHT] | state[OTHER]


@njit
def attackers(theirs, occupied, square):
    """The opponent's men `theirs` who attack a square."""
    pawns, knights, king, straight, diagonal = theirs
    found = (PAWN[square] & pawns) | (KNIGHT[square] & knights) | (KING[square] & king)
    if straight & on_lines(square, 0):
        found |= straight & sliding(occupied, square, 0)
    if diagonal & on_lines(square, 2):
        found |= diagonal & sliding(occupied, square, 2)
    return found


@njit
def survey(state):
    """All that legal moves depend on: the opponent's men, all pieces, the king's square, answers and pinned pieces.

    A move of another piece than the king must end on one of the `answers` to the checks, and a pinned piece stays on
    its line to the king.
    """
    own, occupied = state[OWN], occupied_by_all(state)
    theirs = men_of(state, occupied & ~own)
    king = lowest_bit(state[OTHER] & state[STRAIGHT] & own) & 63  # of a state without a king, as in a hostile file, 0
    checkers = attackers(theirs, occupied, king)
    pinned, answers = ZERO, ALL
    if checkers:
        answers = ZERO if checkers & (checkers - ONE) else checkers
    for kind in range(2):
        sliders, first = theirs[3 + kind] & on_lines(king, 2 * kind), 2 * kind
        if sliders:
            seen = sliding(occupied, king, first)
            behind = sliders & ~seen & sliding(occupied & ~(seen & own), king, first)
            while behind:
                pinned |= own & seen & sliding(occupied, lowest_bit(behind), first)
                behind &= behind - ONE
            if answers & sliders & seen and checkers:
                answers |= seen & sliding(occupied, lowest_bit(sliders & seen), first)
    return theirs, occupied, king, checkers, answers, pinned


@njit
def takes_en_passant(theirs, occupied, king, square, target):
    """The pawn on `square` may take the one that went two squares past `target`: the king is not in check then."""
    taken = ONE << np.uint64(target - 8)
    after = (occupied | (ONE << np.uint64(target))) & ~(taken | (ONE << np.uint64(square)))
    pawns, knights, other_king, straight, diagonal = theirs
    return attackers((pawns & ~taken, knights, other_king, straight, diagonal), after, king) == ZERO


@njit
def pawn_moves(state, found, square, board):
    """The squares where a pawn may go, but for checks, pins and captures en passant."""
    occupied = found[1]
    free = board & ~occupied
    ahead = (ONE << np.uint64(square + 8)) & free
    if square < 16 and board == ALL:
        ahead |= (ahead << np.uint64(8)) & free
    return ahead | (PAWN[square] & occupied & ~state[OWN])


@njit
def king_moves(state, found, board):
    theirs, occupied, king, checkers = found[0], found[1], found[2], found[3]
    others = occupied & ~(ONE << np.uint64(king))
    moves, near = ZERO, KING[king] & board & ~state[OWN]
    while near:
        square = lowest_bit(near)
        near &= near - ONE
        if attackers(theirs, others, square) == ZERO:
            moves |= ONE << np.uint64(square)
    if state[FLAGS] & np.uint64(3) and checkers == ZERO:
        short = state[FLAGS] & ONE and occupied & np.uint64(0x60) == ZERO and moves & np.uint64(0x20)
        long = state[FLAGS] & np.uint64(2) and occupied & np.uint64(0x0E) == ZERO and moves & np.uint64(0x08)
        if short and attackers(theirs, others, 6) == ZERO:
            moves |= np.uint64(0x40)
        if long and attackers(theirs, others, 2) == ZERO:
            moves |= np.uint64(0x04)
    return moves


@njit
def moves_from(state, found, square, board):
    """The squares where the mover's piece on a square may go; `found` by `survey`, `board` has all squares."""
    theirs, occupied, king, _, answers, pinned = found
    place = np.uint64(square)
    bit = ONE << place
    if square == king:
        return king_moves(state, found, board)
    moves, passed = ZERO, ZERO
    if state[OTHER] & bit == ZERO:
        if state[STRAIGHT] & bit:
            moves = sliding(occupied, square, 0)
        if state[DIAGONAL] & bit:
            moves |= sliding(occupied, square, 2)
    elif state[DIAGONAL] & bit:
        moves = KNIGHT[square]
    else:
        moves = pawn_moves(state, found, square, board)
        target = np.int64((state[FLAGS] >> EN_PASSANT) & SQUARE)
        in_reach = target and (PAWN[square] >> np.uint64(target)) & ONE
        if in_reach and takes_en_passant(theirs, occupied, king, square, target):
            passed = ONE << np.uint64(target)
    moves &= answers & board & ~state[OWN]
    if pinned & bit:
        for way in range(4):
            if LINES[way, king] & bit:
                moves &= LINES[way, king]
    return moves | passed


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
