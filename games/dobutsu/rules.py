"""Dobutsu shogi (M. Kitao 2008): shogi on 3 x 4 squares, with drops. The second player wins (T. Tanaka 2009).

     a b c
   4 g l e    A lion goes a step in any direction, a giraffe along rows and columns, an elephant on a slant, a chick
   3 . c .    forward. A chick that goes to the last row becomes a hen, which goes any way but back on a slant. Captured
   2 . C .    pieces belong to who took them, hens as chicks, and may be dropped on an empty square in place of a move.
   1 E L G

Nobody may leave the lion where it can be taken; who has no move loses. A lion that comes to the last row wins. A
position that comes for the third time is a draw. Small letters are the second player's.

Square 3 * row + column as the mover sees it, row 0 at home; after each move the board turns round. An action is a
square that a piece leaves, in a direction, or a square that it is dropped on: 12 * (direction, or 8 + piece) + square.
`state` is (position, times it was there before, plies, positions before each ply). A position has four bits for each
square, a piece or 8 + a piece of the opponent's; from bit 48 on two bits for each kind in hand, chicks, giraffes and
elephants, first the mover's; and in bit 60 who moves. So equal positions are equal words.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from alphazero.game import Rules
from alphazero.game.functions import plain

ROWS, COLUMNS = 4, 3
NUM_SQUARES, DIRECTIONS, KINDS = ROWS * COLUMNS, 8, 3
NUM_ACTIONS = (DIRECTIONS + KINDS) * NUM_SQUARES
EMPTY, CHICK, GIRAFFE, ELEPHANT, LION, HEN = range(6)
THEIRS = 8
WAYS = [(row, column) for row in (-1, 0, 1) for column in (-1, 0, 1) if row or column]
"""Steps in rows and columns; ways d and 7 - d are opposite."""
MOVES = np.array([0b00000000, 0b01000000, 0b01011010, 0b10100101, 0b11111111, 0b11111010], np.uint8)
"""For each piece a bit for each way that it goes."""
NEIGHBOURS = np.array(
    [
        [
            COLUMNS * (at // COLUMNS + row) + at % COLUMNS + column
            if 0 <= at // COLUMNS + row < ROWS and 0 <= at % COLUMNS + column < COLUMNS
            else -1
            for row, column in WAYS
        ]
        for at in range(NUM_SQUARES)
    ],
    np.int8,
)
"""The square next to each one in each direction, or -1."""
ZERO, ONE, FIFTEEN = (np.uint64(number) for number in (0, 1, 15))
HAND, PLAYER = 48, 60
MOST_PLIES = 256
LAST = np.uint64(MOST_PLIES - 1)
POSITION, REPEATS, PLIES, EARLIER = range(4)
STATE_WORDS = EARLIER + MOST_PLIES
START = sum(
    piece << 4 * at
    for at, piece in {
        0: ELEPHANT, 1: LION, 2: GIRAFFE, 4: CHICK, 7: THEIRS + CHICK, 9: THEIRS + GIRAFFE, 10: THEIRS + LION,
        11: THEIRS + ELEPHANT,
    }.items()
)  # fmt: skip
WORTH = np.array([0, 1, 3, 3, 0, 4, 0, 0], np.float32)  # the last two are no pieces, but may be in a hostile file


@njit
def piece_at(position, at):
    return np.int64((position >> np.uint64(4 * at)) & FIFTEEN)


@njit
def neighbour(at, way):
    return np.int64(NEIGHBOURS[at, way])


@njit
def in_hand(position, owner, kind):
    """The number of pieces of a kind, from 0, that the mover (`owner` 0) or the opponent (1) holds."""
    return np.int64((position >> np.uint64(HAND + 6 * owner + 2 * kind)) & np.uint64(3))


@njit
def find(position, piece):
    """The first square of a piece; -1 if it is nowhere, as in a hostile file."""
    for at in range(NUM_SQUARES):
        if piece_at(position, at) == piece:
            return at
    return -1


@njit
def attackers(position, at):
    """The squares of the opponent's pieces that attack a square, a bit for each."""
    found = 0
    for way in range(DIRECTIONS):
        near = neighbour(at, way)
        if near >= 0:
            piece = piece_at(position, near) - THEIRS
            if 0 < piece <= HEN and MOVES[piece] >> way & 1:
                found |= 1 << near
    return found


@njit
def mark(position, legal_mask):
    """Marks the legal actions and returns their number.

    Pieces go a step at a time, so nothing can be put between a lion and its attacker, and no piece is pinned.
    """
    lion, count = find(position, LION), 0
    checkers = attackers(position, lion) if lion >= 0 else 0
    several = checkers & (checkers - 1) != 0
    for at in range(NUM_SQUARES):
        piece = piece_at(position, at)
        for way in range(DIRECTIONS):
            target = neighbour(at, way)
            goes = piece <= HEN and target >= 0 and MOVES[piece] >> way & 1 == 1
            if goes:
                there = piece_at(position, target)
                goes = there == EMPTY or (there > THEIRS and there != THEIRS + LION)
            if goes and piece == LION:
                goes = attackers(position, target) == 0
            elif goes and checkers:
                goes = not several and checkers >> target & 1 == 1
            legal_mask[NUM_SQUARES * way + at] = goes
            count += int(goes)
        for kind in range(KINDS):
            goes = piece == EMPTY and checkers == 0 and in_hand(position, 0, kind) > 0
            legal_mask[NUM_SQUARES * (DIRECTIONS + kind) + at] = goes
            count += int(goes)
    return count


@njit
def init(state):
    state[:] = ZERO
    state[POSITION] = START


@njit
def legal(state, legal_mask):
    mark(state[POSITION], legal_mask)


@njit
def turn_round(position):
    """The same position as the other player sees it, who moves next."""
    turned = ((position >> np.uint64(PLAYER)) & ONE ^ ONE) << np.uint64(PLAYER)
    for at in range(NUM_SQUARES):
        piece = (position >> np.uint64(4 * at)) & FIFTEEN
        if piece:
            turned |= (piece ^ np.uint64(THEIRS)) << np.uint64(4 * (NUM_SQUARES - 1 - at))
    hands = (position >> np.uint64(HAND)) & np.uint64(4095)
    return turned | ((hands >> np.uint64(6)) | (hands & np.uint64(63)) << np.uint64(6)) << np.uint64(HAND)


@njit
def plies_of(state):
    """The plies so far, but the last one where a hostile file has more."""
    return np.int64(min(state[PLIES], LAST))


@njit
def step(state, action):
    position, way, at = state[POSITION], action // NUM_SQUARES, action % NUM_SQUARES
    plies = plies_of(state)
    state[EARLIER + plies] = position
    if way >= DIRECTIONS:
        position |= np.uint64(way - DIRECTIONS + CHICK) << np.uint64(4 * at)
        position -= ONE << np.uint64(HAND + 2 * (way - DIRECTIONS))
    else:
        target, piece = neighbour(at, way), piece_at(position, at)
        taken = piece_at(position, target) - THEIRS
        if taken > 0:
            position += ONE << np.uint64(HAND + (0 if taken == HEN else 2 * (taken - CHICK)))
        if piece == CHICK and target >= NUM_SQUARES - COLUMNS:
            piece = HEN
        position &= ~(FIFTEEN << np.uint64(4 * at) | FIFTEEN << np.uint64(4 * target))
        position |= np.uint64(piece) << np.uint64(4 * target)
    position = turn_round(position)
    times = 0
    for ply in range(plies + 1):
        times += state[EARLIER + ply] == position
    state[POSITION], state[REPEATS], state[PLIES] = position, np.uint64(times), np.uint64(plies + 1)


@njit
def is_lost(state):
    """The opponent's lion has come to the mover's home row, or the mover has no move."""
    lion = find(state[POSITION], THEIRS + LION)
    return 0 <= lion < COLUMNS or mark(state[POSITION], np.empty(NUM_ACTIONS, np.bool_)) == 0


@njit
def is_terminal(state):
    return state[REPEATS] >= np.uint64(2) or state[PLIES] >= np.uint64(MOST_PLIES) or is_lost(state)


@njit
def terminal_value(state):
    return -1.0 if is_lost(state) else 0.0


@njit
def observe(state, planes):
    """The mover's chicks, giraffes, elephants, lion, hens; the opponent's; both hands; whether it was there before."""
    position = state[POSITION]
    for at in range(NUM_SQUARES):
        row, column, piece = at // COLUMNS, at % COLUMNS, piece_at(position, at)
        if piece:
            planes[piece - 1 if piece < THEIRS else piece - THEIRS + HEN - 1, row, column] = 1.0
        for kind in range(KINDS):
            planes[10 + kind, row, column] = in_hand(position, 0, kind) / 2.0
            planes[13 + kind, row, column] = in_hand(position, 1, kind) / 2.0
        planes[16, row, column] = state[REPEATS] > ZERO


@njit
def transform(state, symmetry):
    """Left and right change places."""
    if symmetry:
        position = state[POSITION] >> np.uint64(HAND) << np.uint64(HAND)
        for at in range(NUM_SQUARES):
            other = at + COLUMNS - 1 - 2 * (at % COLUMNS)
            position |= np.uint64(piece_at(state[POSITION], other)) << np.uint64(4 * at)
        state[POSITION] = position


@njit
def to_play(state):
    return np.int64((state[POSITION] >> np.uint64(PLAYER)) & ONE)


@njit
def heuristic(state):
    """The mover's lead in material: a chick 1, a giraffe or an elephant 3, a hen 4."""
    position, lead = state[POSITION], np.float32(0.0)
    for at in range(NUM_SQUARES):
        piece = piece_at(position, at)
        lead += WORTH[piece] if piece < THEIRS else -WORTH[piece - THEIRS]
    for kind in range(KINDS):
        lead += WORTH[CHICK + kind] * (in_hand(position, 0, kind) - in_hand(position, 1, kind))
    return lead / (6.0 + abs(lead))


RULES = Rules(
    init, legal, step, is_terminal, terminal_value, observe, to_play, transform=transform, heuristic=heuristic
)
# for texts, without compiling
PLAIN_TURN, PLAIN_FIND, PLAIN_ATTACKERS = (
    np.errstate(over="ignore")(plain(rule)) for rule in (turn_round, find, attackers)
)
