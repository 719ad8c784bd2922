"""The rules of chess as functions of one state, on boards of 8 x 8 and of 5 x 5 squares.

Behind the words of `moves.py` lies the history. 20 words keep the moves that led here since the last one that cannot be
undone, five in each, in twelve bits: the square that a piece left, as its owner saw it, and 64 times where it went.
Taking them back, two by two, finds how often the position was there before: exactly, with no keys that two
positions might share. The last word counts plies; from bit 32 on it has the moves that a FEN counted before.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
from numba import njit

from alphazero.game import Rules, count_bits, flip_rows, lowest_bit
from alphazero.game.functions import plain
from games.chess.moves import (
    COLOR,
    DIAGONAL,
    EN_PASSANT,
    FIFTY,
    FLAGS,
    LETTERS,
    ONE,
    OTHER,
    OWN,
    REPEATS,
    STRAIGHT,
    ZERO,
    ends_of,
    flag_of,
    has_move,
    is_dead,
    mark_passed,
    men_of,
    moves_from,
    occupied_by_all,
    piece_at,
    survey,
)

HISTORY = FLAGS + 1
MOVES_A_WORD, MOST_QUIET = 5, 100
PLIES = HISTORY + MOST_QUIET // MOVES_A_WORD
STATE_WORDS = PLIES + 1
COUNT = np.uint64(2**32 - 1)
START = {5: "rnbqk/ppppp/5/PPPPP/RNBQK", 8: "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR"}
PAWN, KING = LETTERS.index("P"), LETTERS.index("K")
PROMOTED = tuple(LETTERS.index(letter) for letter in "NBRQ")
KEPT = np.full(64, 15, np.uint64)
"""The rights to castle that are left when a piece leaves a square, or comes to it."""
KEPT[[0, 4, 7, 56, 60, 63]] = 15 - np.array([2, 3, 1, 8, 12, 4], np.uint64)
VALUES = (1, 3, 0, 5, 3)
"""The worth of pawns, knights, the king, what moves like a rook, and like a bishop; a queen does both."""


@njit
def quiet_plies(state):
    """Plies since a capture or a pawn's move."""
    return min(flag_of(state, FIFTY, 127), MOST_QUIET)


@njit
def turned(square, size):
    """The same square as the other player sees it."""
    return (square ^ 56) - 8 * (8 - size)


@njit
def turn_round(word, size):
    return flip_rows(word) >> np.uint64(8 * (8 - size))


@njit
def taken_back(word, origin, target):
    """The word of some pieces before one of all went from a square to an empty one."""
    piece = (word >> np.uint64(target)) & ONE
    return word ^ (piece << np.uint64(target) | piece << np.uint64(origin))


@njit
def times_before(state, size):
    """Takes back the quiet moves two by two; how often that gives the position again."""
    diagonal, straight, other, own = state[DIAGONAL], state[STRAIGHT], state[OTHER], state[OWN]
    times, quiet = 0, quiet_plies(state)
    for back in range(1, quiet + 1):
        index = quiet - back
        move = np.int64(state[HISTORY + index // MOVES_A_WORD] >> np.uint64(12 * (index % MOVES_A_WORD))) & 4095
        if move == 0:
            break
        origin, target = move & 63, move >> 6
        if back & 1:  # the other player's
            origin, target = turned(origin, size), turned(target, size)
        diagonal, straight = taken_back(diagonal, origin, target), taken_back(straight, origin, target)
        other, own = taken_back(other, origin, target), taken_back(own, origin, target)
        if back & 1 == 0 and diagonal == state[DIAGONAL] and straight == state[STRAIGHT]:
            times += other == state[OTHER] and own == state[OWN]
    return times


# --- texts ---

PLAIN_SURVEY, PLAIN_MARK_PASSED, PLAIN_IS_DEAD = (
    np.errstate(over="ignore")(plain(rule)) for rule in (survey, mark_passed, is_dead)
)


def is_check(state: np.ndarray) -> bool:
    """The player to move is in check."""
    return bool(PLAIN_SURVEY(state)[3])


def square_of(cell: int, size: int, color: int) -> int:
    """The square that a player, 0 for White, sees at a cell, which count row by row from Black's side."""
    row, column = divmod(cell, size)
    return 8 * (row if color else size - 1 - row) + column


def state_of(rows: str, size: int, color: int) -> np.ndarray:
    """The state of the rows of a FEN, seen by a player, without a right to castle; raises ValueError."""
    lines = [re.sub(r"\d", lambda run: "." * int(run[0]), row) for row in rows.split("/")]
    if len(lines) != size or any(len(line) != size for line in lines):
        raise ValueError(f"it has {size} rows of {size} squares")
    letters, state = "".join(lines), np.zeros(STATE_WORDS, np.uint64)
    if any(letters.count(king) != 1 for king in "Kk") or {"P", "p"} & {*lines[0], *lines[-1]}:
        raise ValueError("each side has one king, and no pawn stands in the first or last row")
    state[FLAGS] = color << int(COLOR)
    for cell, letter in enumerate(letters):
        square, piece = square_of(cell, size, color), LETTERS.index(letter.upper())
        is_own = letter.isalpha() and letter.islower() == bool(color)
        for word in range(4):
            state[word] |= np.uint64((is_own if word == OWN else piece >> word & 1) << square)
    return state


@cache  # games of the same functions share compiled code
def make_rules(size: int, longest: int) -> Rules:
    """The rules on boards of `size` squares, 5 or 8; a game of `longest` plies is drawn."""
    ends = ends_of(size)
    num_actions = len(ends)
    pairs = sum(not piece for *_, piece in ends)
    board = np.uint64(sum(1 << origin for origin in {origin for origin, *_ in ends}))
    origins, targets = (np.array(column, np.uint8) for column in list(zip(*ends, strict=True))[:2])
    numbers = np.full((64, 64), -1, np.int16)
    numbers[origins[:pairs], targets[:pairs]] = np.arange(pairs)
    start = state_of(START[size], size, 0)
    start[FLAGS] |= np.uint64(15 if size == 8 else 0)

    @njit
    def init(state):
        for word in range(STATE_WORDS):
            state[word] = start[word]

    @njit
    def legal(state, legal_mask):
        for action in range(num_actions):
            legal_mask[action] = False
        found = survey(state)
        pawns = men_of(state, state[OWN])[0]
        left = state[OWN] & board
        while left:
            square = lowest_bit(left)
            left &= left - ONE
            moves = moves_from(state, found, square, board)
            promotes = square // 8 == size - 2 and (pawns >> np.uint64(square)) & ONE
            while moves:
                target = lowest_bit(moves)
                moves &= moves - ONE
                legal_mask[numbers[square, target]] = True
                if promotes:
                    # in the order of `ends_of`: from the first column two steps, from the others three
                    first = pairs + 3 * (3 * (square % 8) + target - square - 8)
                    for piece in range(3):
                        legal_mask[first + piece] = True

    @njit
    def step(state, action):
        origin, target = np.int64(origins[action]), np.int64(targets[action])
        flags, piece = state[FLAGS], piece_at(state, origin)
        is_pawn, end = piece == PAWN, ONE << np.uint64(target)
        taken = end >> np.uint64(8) if is_pawn and target == flag_of(state, EN_PASSANT, 63) else end
        takes, gone = occupied_by_all(state) & taken != ZERO, ONE << np.uint64(origin) | taken
        if is_pawn and target // 8 == size - 1:
            piece = PROMOTED[(action - pairs) % 3 if action >= pairs else 3]
        for word in range(3):
            state[word] = (state[word] & ~gone) | np.uint64(piece >> word & 1) << np.uint64(target)
        state[OWN] = (state[OWN] & ~gone) | end
        if piece == KING and abs(target - origin) == 2:  # castles
            rook = np.uint64(0xA0) if target > origin else np.uint64(0x09)
            state[STRAIGHT] ^= rook
            state[OWN] ^= rook
        castling = flags & KEPT[origin] & KEPT[target]
        quiet = 0 if is_pawn or takes else min(quiet_plies(state) + 1, MOST_QUIET)
        # a position whose castling or capture en passant is gone cannot come back
        can_return = quiet > 0 and castling == flags & np.uint64(15) and flag_of(state, EN_PASSANT, 63) == 0
        for plane in range(3):
            state[plane] = turn_round(state[plane], size)
        state[OWN] = occupied_by_all(state) & ~turn_round(state[OWN], size)
        state[FLAGS] = (castling >> np.uint64(2)) | (castling & np.uint64(3)) << np.uint64(2)
        state[FLAGS] |= np.uint64(quiet) << FIFTY | ((flags >> COLOR) ^ ONE) << COLOR
        if can_return:
            word, index = HISTORY + (quiet - 1) // MOVES_A_WORD, (quiet - 1) % MOVES_A_WORD
            state[word] |= np.uint64(origin | target << 6) << np.uint64(12 * index)
            state[FLAGS] |= np.uint64(times_before(state, size)) << REPEATS
        else:
            for word in range(HISTORY, PLIES):
                state[word] = ZERO
        if is_pawn and target - origin == 16:
            mark_passed(state, turned(origin + 8, size))
        state[PLIES] += ONE

    @njit
    def is_terminal(state):
        if flag_of(state, REPEATS, 3) >= 2 or quiet_plies(state) == MOST_QUIET or is_dead(state):
            return True
        return state[PLIES] & COUNT >= longest or not has_move(state, survey(state), board)

    @njit
    def terminal_value(state):
        found = survey(state)
        return -1.0 if found[3] and not has_move(state, found, board) else 0.0

    @njit
    def observe(state, planes):
        """Own pieces by type, the opponent's; then the board, plies without a capture or a pawn's move, repetitions.

        With castling: the four rights, and the square to take en passant.
        """
        repeats, quiet = min(flag_of(state, REPEATS, 3), 2) / 2, quiet_plies(state) / MOST_QUIET
        for row in range(size):
            for column in range(size):
                square = 8 * row + column
                piece = piece_at(state, square)
                if piece:
                    owner = 0 if (state[OWN] >> np.uint64(square)) & ONE else 6
                    planes[owner + piece - 1, row, column] = 1.0
                planes[12, row, column] = 1.0
                planes[13, row, column] = quiet
                planes[14, row, column] = repeats
                if size == 8:
                    for right in range(4):
                        planes[15 + right, row, column] = (state[FLAGS] >> np.uint64(right)) & ONE
        if size == 8:
            passed = flag_of(state, EN_PASSANT, 63)
            if passed:
                planes[19, passed // 8, passed % 8] = 1.0

    @njit
    def heuristic(state):
        """The mover's lead in material: a pawn 1, a knight or bishop 3, a rook 5, a queen 9."""
        own, theirs, lead = men_of(state, state[OWN]), men_of(state, ~state[OWN]), 0
        for kind in range(5):
            lead += VALUES[kind] * (count_bits(own[kind]) - count_bits(theirs[kind]))
        both = state[DIAGONAL] & state[STRAIGHT]
        lead += count_bits(both & state[OWN]) - count_bits(both & ~state[OWN])
        return lead / (10.0 + abs(lead))

    return Rules(init, legal, step, is_terminal, terminal_value, observe, heuristic=heuristic)
