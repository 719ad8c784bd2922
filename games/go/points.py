"""Sets of points of a Go board, and chains of stones, as functions that numba compiles.

A set is seven words, of which a board of 9 x 9 fills two. A row takes one bit more than it has points, which is always
0, so that shifts do not lead from one row into the next, and no row lies in two words.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache

import numpy as np
from numba import njit

from alphazero.game import count_bits, lowest_bit
from alphazero.game.functions import plain

ZERO, ONE = np.uint64(0), np.uint64(1)
NOTHING = (ZERO, ZERO, ZERO, ZERO, ZERO, ZERO, ZERO)


@njit
def either(a, b):
    return (a[0] | b[0], a[1] | b[1], a[2] | b[2], a[3] | b[3], a[4] | b[4], a[5] | b[5], a[6] | b[6])


@njit
def both(a, b):
    return (a[0] & b[0], a[1] & b[1], a[2] & b[2], a[3] & b[3], a[4] & b[4], a[5] & b[5], a[6] & b[6])


@njit
def without(a, b):
    return (a[0] & ~b[0], a[1] & ~b[1], a[2] & ~b[2], a[3] & ~b[3], a[4] & ~b[4], a[5] & ~b[5], a[6] & ~b[6])


@njit
def is_empty(a):
    return a[0] | a[1] | a[2] | a[3] | a[4] | a[5] | a[6] == ZERO


@njit
def count(a):
    points = 0
    for word in a:
        points += count_bits(word)
    return points


def words_of(size: int) -> int:
    """The words of a set of points."""
    return -(-size // (64 // (size + 1)))


@njit
def mirrored(row, size):
    """The bits of a row in reverse order, at most 32 (H. S. Warren, Hacker's Delight, 7-1)."""
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0x0000FFFF)):
        distance, half = np.uint64(shift), np.uint64(mask)
        row = ((row & half) << distance) | ((row >> distance) & half)
    return row >> np.uint64(32 - size)


Points = namedtuple("Points", "board in_row row_of point lowest load store around connected smothered captured_by")


def make_points(size: int) -> Points:
    """All points of a board of `size` x `size`, at most 19, and functions for it; a point is size * row + column."""
    stride = size + 1
    rows = 64 // stride  # in a word
    words = words_of(size)
    full_row = np.uint64((1 << size) - 1)
    across, down, to_next = np.uint64(1), np.uint64(stride), np.uint64((rows - 1) * stride)

    @njit
    def in_row(row, bits):
        """The points of a row, whose lowest bit is the left one."""
        word, bits = row // rows, bits << np.uint64(row % rows * stride)
        return (
            bits if word == 0 else ZERO,
            bits if word == 1 else ZERO,
            bits if word == 2 else ZERO,
            bits if word == 3 else ZERO,
            bits if word == 4 else ZERO,
            bits if word == 5 else ZERO,
            bits if word == 6 else ZERO,
        )

    @njit
    def row_of(state, at, row):
        """The bits of a row of the points that a state holds from the word `at` on."""
        return (state[at + row // rows] >> np.uint64(row % rows * stride)) & full_row

    @njit
    def point(cell):
        return in_row(cell // size, ONE << np.uint64(cell % size))

    board = NOTHING
    for each in range(size):
        board = either.py_func(board, in_row.py_func(each, full_row))

    @njit
    def lowest(number, word):
        """The point of the lowest bit that is 1 in a word, which is the `number`-th."""
        index = lowest_bit(word)
        return (number * rows + index // stride) * size + index % stride

    @njit
    def load(state, at):
        return both(
            (
                state[at],
                state[at + 1] if words > 1 else ZERO,
                state[at + 2] if words > 2 else ZERO,
                state[at + 3] if words > 3 else ZERO,
                state[at + 4] if words > 4 else ZERO,
                state[at + 5] if words > 5 else ZERO,
                state[at + 6] if words > 6 else ZERO,
            ),
            board,
        )

    @njit
    def store(state, at, these):
        for word in range(words):
            state[at + word] = these[word]

    @njit
    def beside(before, here, after):
        """The neighbours of a word's points; `before` and `after` are the words of the rows above and below."""
        near = (here << across) | (here >> across) | (here << down) | (here >> down)
        return near | (before >> to_next) | (after << to_next)

    @njit
    def around(a):
        """The points beside these; bits outside of the board as well."""
        return (
            beside(ZERO, a[0], a[1]),
            beside(a[0], a[1], a[2]),
            beside(a[1], a[2], a[3]),
            beside(a[2], a[3], a[4]),
            beside(a[3], a[4], a[5]),
            beside(a[4], a[5], a[6]),
            beside(a[5], a[6], ZERO),
        )

    @njit
    def connected(start, stones):
        """The points `start`, and all `stones` that hang together with them."""
        while True:
            grown = either(start, both(around(start), stones))
            if grown == start:
                return start
            start = grown

    @njit
    def smothered(start, stones, empty):
        """The same, but nothing if one of the points `empty` is beside them."""
        while True:
            near = around(start)
            if not is_empty(both(near, empty)):
                return NOTHING
            grown = either(start, both(near, stones))
            if grown == start:
                return start
            start = grown

    @njit
    def captured_by(cell, other, empty):
        """The stones of `other` that a stone on a point takes; `empty`: the empty points but this one."""
        found, near = NOTHING, both(around(point(cell)), other)
        for word in range(words):
            rest = near[word]
            while rest:
                stone = point(lowest(word, rest))
                rest &= rest - ONE
                if is_empty(both(stone, found)):
                    found = either(found, smothered(stone, other, empty))
        return found

    return Points(board, in_row, row_of, point, lowest, load, store, around, connected, smothered, captured_by)


@cache
def plain_points(size: int) -> Points:
    """The same for texts, without compiling."""
    return Points(*map(plain, make_points(size)))
