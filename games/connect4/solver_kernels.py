"""The compiled search of the Connect Four solver: bitboards, negamax, the transposition table and reads of the book.

The method is that of Pascal Pons' series "Solving Connect 4" (blog.gamesolver.org): bitboards, negamax with null
windows that close in on the score, only moves that do not lose at once, those that make most threats first, and a
transposition table; a book of all positions of 12 stones spares what lies below them (see
`benchmarks/frozen/connect4_book.py`).

`own` and `stones` are uint64: the mover's stones, and those of both. A column has seven bits, the lowest at the bottom,
the highest always 0.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from alphazero.game import count_bits
from alphazero.game.kernels import kernel
from games.connect4.game import BOARD, COLUMN, COLUMNS, ONE, ROWS, ZERO, completing_squares, has_four

BOOK_PLY = 12
"""The book holds every position of so many stones."""
BOTTOM = np.uint64(sum(1 << 7 * column for column in range(COLUMNS)))
SQUARES = COLUMNS * ROWS
SEVEN = np.uint64(0b1111111)
CENTRE_FIRST = (3, 2, 4, 1, 5, 0, 6)
MIRRORED_PLIES = 14
"""Up to this ply mirror images share an entry of the transposition table; later they rarely occur together."""
LOOK_AHEAD_PLIES = 30
"""Up to this ply all children are looked up in the transposition table before any is searched; later the search is
faster than the lookup."""
SCORE_OFFSET = 32
"""Makes a score a positive number in the transposition table."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
BOOK_BITS = 5
BOOK_OFFSET = 15
"""A score in the book is stored as a number of 5 bits, less this."""
BOOK_HEADER = 24
"""Bytes before the cells: seed, number of segments, size of a segment; 8 each, the lowest byte first."""


@njit
def open_squares(stones):
    """The lowest empty square of every column that is not full."""
    return (stones + BOTTOM) & BOARD


@njit
def can_win(own, stones):
    """The mover has a stone to play that makes four."""
    return completing_squares(own) & open_squares(stones) != np.uint64(0)


@njit
def safe_squares(own, stones):
    """Squares to play on after which the opponent cannot win at once, if the mover cannot win now."""
    threats = completing_squares(own ^ stones) & (BOARD ^ stones)
    squares = open_squares(stones)
    forced = squares & threats
    if forced:
        if forced & (forced - ONE):
            return np.uint64(0)  # two wins to block with one stone
        squares = forced
    return squares & ~(threats >> ONE)  # nor below a square where the opponent wins


@njit
def make_key(own, stones):
    """A number of 49 bits that no other position has: each column's stones under a bit that shows their height."""
    return own + stones + BOTTOM


@njit
def mirror(word):
    """The word of seven columns with left and right exchanged."""
    image = ZERO
    for column in range(COLUMNS):
        image |= ((word >> np.uint64(7 * column)) & SEVEN) << np.uint64(7 * (COLUMNS - 1 - column))
    return image


@njit
def canonical_key(own, stones):
    """The same key for a position and its mirror image."""
    key = make_key(own, stones)
    return min(key, mirror(key))


@njit
def mix(word):
    """Scatters the bits of a word (the finalizer of MurmurHash3)."""
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    word = (word ^ (word >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


@njit
def book_cells(key, seed, num_segments, segment_size):
    """The three cells that hold a key's score, in neighbouring segments (Graf and Lemire 2022, "Binary Fuse Filters").

    `segment_size` is a power of two; the table has `num_segments` + 2 of them.
    """
    scattered = mix(key ^ seed)
    first = ((scattered >> np.uint64(32)) * num_segments * segment_size) >> np.uint64(32)
    last_bits = segment_size - ONE
    second = (first + segment_size) ^ (scattered & last_bits)
    third = (first + segment_size + segment_size) ^ ((scattered >> np.uint64(16)) & last_bits)
    return first, second, third


@njit
def read_cell(book, cell):
    """The `BOOK_BITS` bits of one cell."""
    bit = cell * np.uint64(BOOK_BITS) + np.uint64(8 * BOOK_HEADER)
    byte = bit >> np.uint64(3)
    pair = np.uint64(book[byte]) | np.uint64(book[byte + ONE]) << np.uint64(8)
    return (pair >> (bit & np.uint64(7))) & np.uint64((1 << BOOK_BITS) - 1)


@njit
def read_word(book, start):
    """Eight bytes of the header."""
    word = np.uint64(0)
    for i in range(8):
        word |= np.uint64(book[start + i]) << np.uint64(8 * i)
    return word


@njit
def look_up(own, stones, book):
    """The score of a position of 12 stones; the mover cannot win at once and has a safe square."""
    key = canonical_key(own, stones)
    first, second, third = book_cells(key, read_word(book, 0), read_word(book, 8), read_word(book, 16))
    stored = read_cell(book, first) ^ read_cell(book, second) ^ read_cell(book, third)
    return np.int64(stored) - BOOK_OFFSET


@njit
def table_key(own, stones, ply):
    """The key in the transposition table of a position of `ply` stones."""
    return canonical_key(own, stones) if ply <= MIRRORED_PLIES else make_key(own, stones)


@njit
def slot_of(key, table):
    """The slot of a key in a table of 2^n entries."""
    return (key * GOLDEN) >> np.uint64(64 - count_bits(np.uint64(len(table) - 1)))


@kernel
def negamax(own, stones, ply, alpha, beta, table, moves, book):
    """The score, if it lies between alpha and beta; else a bound of it on the same side.

    The mover cannot win at once. `table uint64[2^n]`: the transposition table; an entry is a key and, in the lowest
    byte, 2 * (score + 32), plus 1 if the score is a lower bound, else it is an upper one. `moves uint64[8 * 43]` is
    scratch space, whose first word counts the positions looked at; `book uint8[...]` may be empty.

    Call it with variables for alpha and beta: numba takes a literal for a type of its own, and what it then keeps on
    disk of a recursive function crashes (its issue 6061).
    """
    moves[0] += ONE
    squares = safe_squares(own, stones)
    if not squares:
        return -((SQUARES - ply) // 2)  # the opponent's next stone wins
    if ply >= SQUARES - 2:
        return 0
    if ply == BOOK_PLY and len(book):
        return look_up(own, stones, book)
    alpha = max(alpha, -((SQUARES - 2 - ply) // 2))  # the opponent cannot win before the stone after next
    beta = min(beta, (SQUARES - 1 - ply) // 2)  # nor the mover before the next but one
    if alpha >= beta:
        return alpha
    key = table_key(own, stones, ply)
    slot = slot_of(key, table)
    entry = table[slot]
    if entry >> np.uint64(8) == key:
        bound = np.int64((entry & np.uint64(0xFF)) >> ONE) - SCORE_OFFSET
        if entry & ONE:
            alpha = max(alpha, bound)
        else:
            beta = min(beta, bound)
        if alpha >= beta:
            return bound
    # most threats first, then from the centre outwards; a move and its threats share a word
    empty = BOARD ^ stones
    first = 8 + 8 * ply
    end = first
    for column in CENTRE_FIRST:
        square = squares & (COLUMN << np.uint64(7 * column))
        if square:
            if ply < LOOK_AHEAD_PLIES:  # does an entry show that this move is good enough?
                child = table_key(own ^ stones, stones | square, ply + 1)
                entry = table[slot_of(child, table)]
                if entry >> np.uint64(8) == child and not entry & ONE:
                    bound = SCORE_OFFSET - np.int64((entry & np.uint64(0xFF)) >> ONE)
                    if bound >= beta:
                        return bound
            num_threats = np.uint64(count_bits(completing_squares(own | square) & empty))
            place = end
            while place > first and moves[place - 1] >> np.uint64(56) < num_threats:
                moves[place] = moves[place - 1]
                place -= 1
            moves[place] = square | num_threats << np.uint64(56)
            end += 1
    for place in range(first, end):
        square = moves[place] & BOARD
        score = -negamax(own ^ stones, stones | square, ply + 1, -beta, -alpha, table, moves, book)
        if score >= beta:
            table[slot] = key << np.uint64(8) | np.uint64(2 * (score + SCORE_OFFSET) + 1)
            return score
        alpha = max(alpha, score)
    table[slot] = key << np.uint64(8) | np.uint64(2 * (alpha + SCORE_OFFSET))
    return alpha


@kernel
def solve_one(own, stones, weak, table, moves, book):
    """The score of a position that is not over; its sign alone if `weak`."""
    ply = count_bits(stones)
    if can_win(own, stones):
        return 1 if weak else (SQUARES + 1 - ply) // 2
    low, high = -((SQUARES - ply) // 2), (SQUARES + 1 - ply) // 2
    if weak:
        low, high = -1, 1
    while low < high:
        middle = low + (high - low) // 2
        if middle <= 0 and -(-low // 2) < middle:  # scores near 0 are likelier, and quicker to prove
            middle = -(-low // 2)
        elif middle >= 0 and high // 2 > middle:
            middle = high // 2
        bound = negamax(own, stones, ply, middle, middle + 1, table, moves, book)
        if bound <= middle:
            high = bound
        else:
            low = bound
    return min(max(low, -1), 1) if weak else low


@kernel
def solve_many(states, weak, table, moves, book, scores):
    """Writes `scores int8[n]` of `states uint64[n, 2]`, none of them over."""
    for i in range(len(states)):
        scores[i] = solve_one(states[i, 0], states[i, 0] | states[i, 1], weak, table, moves, book)


@njit
def score_column(own, opponent, column, table, moves, book):
    """The score of playing a column that is not full, for who plays it."""
    stones = own | opponent
    square = (stones + (ONE << np.uint64(7 * column))) & (COLUMN << np.uint64(7 * column))
    own, stones = own | square, stones | square
    ply = count_bits(stones)
    if has_four(own):
        return (SQUARES + 2 - ply) // 2
    if ply == SQUARES:
        return 0
    return -solve_one(opponent, stones, False, table, moves, book)


@njit
def moves_to_end(score, ply):
    """The moves that the winner still has to make by a score that is not 0, after `ply` stones."""
    stones = (ply + (0 if score > 0 else 1)) // 2
    return SQUARES // 2 + 1 - abs(score) - stones
