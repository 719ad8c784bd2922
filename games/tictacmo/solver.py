"""Tic-tac-mo solved exactly: each player's result in every position, if all play for their own best (max^n).

A player to whom several actions bring the same plays any of them, all equally likely: the others get the mean. So
values are those of no particular order of the squares.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from numba import njit

from alphazero.game import Position
from alphazero.game.kernels import kernel
from alphazero.game.spec import ExactResult
from games.tictacmo.game import SQUARES, has_line

ALL = (1 << SQUARES) - 1


@cache
def tables() -> tuple[np.ndarray, np.ndarray]:
    """The place of each set of squares among those of its size, `int32[2^15]`, and how many these are, `int64[16, 16]`.

    The second table says how many sets of k squares n squares have.
    """
    places, counts = np.zeros(1 << SQUARES, np.int32), np.zeros((SQUARES + 1, SQUARES + 1), np.int64)
    for size in range(SQUARES + 1):
        sets = sorted(sum(1 << square for square in chosen) for chosen in combinations(range(SQUARES), size))
        places[sets] = np.arange(len(sets))
        for squares in range(size, SQUARES + 1):
            counts[squares, size] = sum(chosen < 1 << squares for chosen in sets)
    return places, counts


@njit
def among(stones, squares):
    """The set of the stones as numbered among the squares of a set."""
    found, bit = 0, 1
    for square in range(SQUARES):
        if squares >> square & 1:
            if stones >> square & 1:
                found |= bit
            bit <<= 1
    return found


@njit
def count(stones):
    found = 0
    while stones:
        stones &= stones - 1
        found += 1
    return found


@njit
def place_of(own, following, last, places, counts):
    """The place of a position among those of as many stones."""
    free, ours = ALL ^ own, count(own)
    second = among(following, free)
    third = among(last, free ^ following)
    left, theirs = SQUARES - ours, count(following)
    place = places[own] * counts[left, theirs] + places[second]
    return place * counts[left - theirs, count(last)] + places[third]


@kernel
def solve(num_stones, positions, after, places, counts, values):
    """Writes `values float32[n, 3]` of `positions int32[n, 3]`, first for the mover; `after`: those of a stone more.

    They are in the order of their places.
    """
    for i in range(len(positions)):
        own, following, last = positions[i]
        if has_line(np.uint64(last)) or num_stones == SQUARES:
            won = has_line(np.uint64(last))
            values[i] = 0.0
            if won:
                values[i, 0] = values[i, 1] = -0.5
                values[i, 2] = 1.0
            continue
        best, equal = np.float32(-2.0), 0
        first, second, third = 0.0, 0.0, 0.0
        for square in range(SQUARES):
            if (own | following | last) >> square & 1:
                continue
            child = after[place_of(following, last, own | 1 << square, places, counts)]
            if child[2] > best:
                best, equal, first, second, third = child[2], 0, 0.0, 0.0, 0.0
            if child[2] == best:
                equal += 1
                first += child[2]
                second += child[0]
                third += child[1]
        values[i, 0], values[i, 1], values[i, 2] = first / equal, second / equal, third / equal


@kernel
def list_positions(ours, theirs, lasts, positions):
    """Writes all positions of so many stones of each player, `int32[n, 3]`, in the order of their places."""
    found = 0
    for own in range(1 << SQUARES):
        if count(own) != ours:
            continue
        for second in range(1 << (SQUARES - ours)):
            if count(second) != theirs:
                continue
            following = spread(second, ALL ^ own)
            for third in range(1 << (SQUARES - ours - theirs)):
                if count(third) == lasts:
                    positions[found, 0], positions[found, 1] = own, following
                    positions[found, 2] = spread(third, ALL ^ own ^ following)
                    found += 1


@njit
def spread(numbered, squares):
    """The opposite of `among`."""
    found = 0
    for square in range(SQUARES):
        if squares >> square & 1:
            found |= (numbered & 1) << square
            numbered >>= 1
    return found


def stones_of(num_stones: int) -> tuple[int, int, int]:
    """The stones of the player to move, of the next one and of the one after."""
    return num_stones // 3, (num_stones + 1) // 3, (num_stones + 2) // 3


@cache
def exact_values() -> tuple[np.ndarray, ...]:
    """The values `float32[n, 3]` of all positions of 0 to 15 stones; a minute, and a gigabyte of memory."""
    places, counts = tables()
    found: list[np.ndarray] = [np.empty((0, 3), np.float32)]
    for num_stones in range(SQUARES, -1, -1):
        ours, theirs, lasts = stones_of(num_stones)
        number = counts[SQUARES, ours] * counts[SQUARES - ours, theirs] * counts[SQUARES - ours - theirs, lasts]
        positions, values = np.empty((number, 3), np.int32), np.empty((number, 3), np.float32)
        list_positions(ours, theirs, lasts, positions)
        solve(num_stones, positions, found[-1], places, counts, values)
        found.append(values)
    return tuple(found[:0:-1])


def values_of(states: np.ndarray) -> np.ndarray:
    """The exact results `float32[n, 3]` of `states uint64[n, 3]`, first those of the players to move."""
    places, counts = tables()
    found = np.empty((len(states), 3), np.float32)
    for row, (own, following, last) in enumerate(states.astype(np.int64).tolist()):
        stones = (own | following | last).bit_count()
        found[row] = exact_values()[stones][place_of(own, following, last, places, counts)]
    return found


def exact_results(position: Position) -> dict[int, ExactResult]:
    """The mover's result of every action, the best first."""
    after = [position.play(action) for action in position.legal_actions]
    values = values_of(np.array([child.state for child in after]))[:, 2].tolist()
    found = dict(zip(position.legal_actions, values, strict=True))
    return {action: ExactResult(found[action]) for action in sorted(found, key=lambda action: -found[action])}
