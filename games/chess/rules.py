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
    AROUND,
    COLOR,
    DIAGONAL,
    EN_PASSANT,
    FIFTY,
    FLAGS,
    JUMPS,
    ONE,
    OTHER,
    OWN,
    PAWN,
    REPEATS,
    STRAIGHT,
    ZERO,
    has_move,
    is_dead,
    men_of,
    moves_from,
    occupied_by_all,
    survey,
    takes_en_passant,
    words_of,
)

HISTORY, MOVES_A_WORD, MOST_QUIET = FLAGS + 1, 5, 100
PLIES = HISTORY + MOST_QUIET // MOVES_A_WORD
STATE_WORDS = PLIES + 1
COUNT = np.uint64(2**32 - 1)
START = {5: "rnbqk/ppppp/5/PPPPP/RNBQK", 8: "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR"}
LETTERS = ".BRQPNK"
"""The place of a piece has its bits in the words of `moves.py`: bishops have 1 in word 0, knights in words 0 and 2."""
PROMOTIONS = "nbr"
KEPT = np.full(64, 15, np.uint64)
"""The rights to castle that are left when a piece leaves a square, or comes to it."""
KEPT[[0, 4, 7, 56, 60, 63]] = 15 - np.array([2, 3, 1, 8, 12, 4], np.uint64)
VALUES = (1, 3, 0, 5, 3)
"""The worth of pawns, knights, the king, what moves like a rook, and like a bishop; a queen does both."""


@cache
def ends_of(size: int) -> list[tuple[int, int, str]]:
    """Each action's square, the square where it goes, and what a pawn becomes that is no queen."""
    reach = [a | b for a, b in zip(words_of(AROUND, True), words_of(JUMPS), strict=True)]
    squares = [8 * row + column for row in range(size) for column in range(size)]
    ends = [(origin, target, "") for origin in squares for target in squares if reach[origin] >> target & 1]
    last = 8 * (size - 2)
    steps = [(column, column + step) for column in range(size) for step in (-1, 0, 1) if 0 <= column + step < size]
    return ends + [(last + left, last + 8 + there, piece) for left, there in steps for piece in PROMOTIONS]


@njit
def flag_of(state, shift, mask):
    """A number among the flags."""
    return np.int64((state[FLAGS] >> shift) & np.uint64(mask))


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
def move_pieces(state, origin, target):
    """Moves a piece, and takes what stands on its target, or what its pawn takes in passing; True if it takes."""
    start, end = ONE << np.uint64(origin), ONE << np.uint64(target)
    takes = occupied_by_all(state) & end != ZERO
    is_other, removed = state[OTHER] & start != ZERO, start | end
    if is_other and not (state[DIAGONAL] | state[STRAIGHT]) & start and not takes and (target - origin) % 8:
        removed, takes = removed | (end >> np.uint64(8)), True
    for plane in range(4):
        piece = end if state[plane] & start else ZERO
        state[plane] = (state[plane] & ~removed) | piece
    if is_other and state[STRAIGHT] & end and abs(target - origin) == 2:  # the king castles
        rook = np.uint64(0xA0) if target > origin else np.uint64(0x09)
        state[STRAIGHT] ^= rook
        state[OWN] ^= rook
    return takes


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
        start, end = np.uint64(origin), np.uint64(target)
        diagonal ^= ((diagonal >> end) & ONE) << start | ((diagonal >> end) & ONE) << end
        straight ^= ((straight >> end) & ONE) << start | ((straight >> end) & ONE) << end
        other ^= ((other >> end) & ONE) << start | ((other >> end) & ONE) << end
        own ^= ((own >> end) & ONE) << start | ((own >> end) & ONE) << end
        if back & 1 == 0 and diagonal == state[DIAGONAL] and straight == state[STRAIGHT]:
            times += other == state[OTHER] and own == state[OWN]
    return times


@njit
def can_take_en_passant(state, target):
    """The mover has a pawn that may legally take the one that went past `target`."""
    found = survey(state)
    pawns = men_of(state, state[OWN])[0]
    for square in (target - 9, target - 7):
        in_reach = (pawns >> np.uint64(square)) & (PAWN[square] >> np.uint64(target)) & ONE
        if in_reach and takes_en_passant(found[0], found[1], found[2], square, target):
            return True
    return False


# --- texts ---

PLAIN_SURVEY, PLAIN_CAN_TAKE, PLAIN_IS_DEAD = (
    np.errstate(over="ignore")(plain(rule)) for rule in (survey, can_take_en_passant, is_dead)
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
    diagonal, straight, other, own = state_of(START[size], size, 0)[:FLAGS]
    rights = np.uint64(15 if size == 8 else 0)
    last = 8 * (size - 1)

    @njit
    def init(state):
        for word in range(STATE_WORDS):
            state[word] = ZERO
        state[DIAGONAL], state[STRAIGHT], state[OTHER], state[OWN] = diagonal, straight, other, own
        state[FLAGS] = rights

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
        flags, place = state[FLAGS], np.uint64(origin)
        is_pawn = (men_of(state, state[OWN])[0] >> place) & ONE == ONE
        takes = move_pieces(state, origin, target)
        if is_pawn and target >= last:
            end = ONE << np.uint64(target)
            piece = (action - pairs) % 3 if action >= pairs else 3
            state[OTHER] &= ~end
            if piece == 0:
                state[OTHER] |= end
            if piece != 2:
                state[DIAGONAL] |= end
            if piece >= 2:
                state[STRAIGHT] |= end
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
        if is_pawn and target - origin == 16 and can_take_en_passant(state, turned(origin + 8, size)):
            state[FLAGS] |= np.uint64(turned(origin + 8, size)) << EN_PASSANT
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
                square = np.uint64(8 * row + column)
                piece = (
                    (state[0] >> square) & ONE
                    | ((state[1] >> square) & ONE) << ONE
                    | ((state[2] >> square) & ONE) << np.uint64(2)
                )
                if piece:
                    owner = 0 if (state[OWN] >> square) & ONE else 6
                    planes[owner + np.int64(piece) - 1, row, column] = 1.0
                planes[12, row, column] = 1.0
                planes[13, row, column] = quiet
                planes[14, row, column] = repeats
                if rights:
                    for right in range(4):
                        planes[15 + right, row, column] = (state[FLAGS] >> np.uint64(right)) & ONE
        passed = flag_of(state, EN_PASSANT, 63)
        if rights and passed:
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
