"""Makes the opening book: the score of every Connect Four position of 12 stones, 5 bits each.

A position and its mirror image share an entry, and positions that the search sees through at once (the mover wins with
the next stone, or cannot stop the opponent from doing so) have none: 4,116,273 remain. The search needs only the
positions of one ply, since from those of fewer stones it reaches them within moments. As each of them is in the book,
it need not hold the positions themselves: it is a table of cells, and the three cells of a position (picked by a hash)
have its score as their exclusive or. That is a static function on a binary fuse graph (Graf and Lemire 2022, "Binary
Fuse Filters: Fast and Smaller Than Xor Filters"), with 1.13 cells a position.

Making it needs `bitbully`, another solver for Connect Four, with a book of 12 stones, MIT licensed, in its package
`bitbully-databases`; our own would need some 100 core hours.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from alphazero.commands.options import Seed, Threads, check_options
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError
from alphazero.machine import count_cores
from alphazero.progress import Progress, say
from alphazero.storage.arrays import write_npz
from games.connect4.game import ONE, has_four
from games.connect4.solver import BOOK_FILE, Solver, read_book
from games.connect4.solver_kernels import (
    BOOK_BITS,
    BOOK_OFFSET,
    BOOK_PLY,
    BOTTOM,
    SEVEN,
    book_cells,
    can_win,
    canonical_key,
    look_up,
    open_squares,
    safe_squares,
)


@dataclass(frozen=True)
class BookConfig:
    """Makes or checks the opening book of the Connect Four solver."""

    make: bool = False
    """Make the book anew; without it, the book that is there is checked."""
    check: int = 1000
    """Positions of the book, picked at random, whose scores our own solver must find without it."""
    seed: Seed = 0
    threads: Threads = field(default_factory=count_cores)

    def __post_init__(self) -> None:
        check_options(self, check=(0, 1_000_000))


def main(argv: list[str]) -> None:
    config = parse(BookConfig, argv)
    states = quiet_positions(BOOK_PLY)
    if config.make:
        write_npz(BOOK_FILE, {"book": make_book(states, bitbullys_scores(states))})
        say(f"{BOOK_FILE}: {len(states)} positions, {BOOK_FILE.stat().st_size} bytes")
    book, solver = read_book(BOOK_FILE), Solver(config.threads, book=False)
    picked = states[np.random.default_rng(config.seed).choice(len(states), config.check, replace=False)]
    with Progress("checking the book") as progress:
        for start in range(0, len(picked), 64):
            piece = picked[start : start + 64]
            wrong = np.flatnonzero(solver.solve_all(piece) != look_up_all(piece, book))
            if len(wrong):
                raise InputError(
                    f"the book's score of the position {piece[wrong[0]].tolist()} is wrong: make it anew by --make"
                )
            progress.show((start + len(piece)) / len(picked), f"{start + len(piece)} of {len(picked)} positions")
    print(f"all {len(picked)} positions checked agree with the solver")


# --- the positions ---


def quiet_positions(ply: int) -> np.ndarray:
    """`uint64[n, 2]`: every position of `ply` stones up to mirroring, in which neither the mover wins at once nor the
    opponent is sure to win with the stone after."""
    keys = np.array([BOTTOM], np.uint64)
    for _ in range(ply):
        keys = np.unique(_children(keys))
    return _quiet_states(keys)


@njit
def _state(key):
    """`(own, stones)` of a key."""
    own, stones = np.uint64(0), np.uint64(0)
    for column in range(7):
        shift = np.uint64(7 * column)
        bits = (key >> shift) & SEVEN
        top = ONE
        while (top << ONE) <= bits:
            top <<= ONE
        own |= (bits ^ top) << shift
        stones |= (top - ONE) << shift
    return own, stones


@njit
def _quiet_states(keys):
    states = np.empty((len(keys), 2), np.uint64)
    count = 0
    for key in keys:
        own, stones = _state(key)
        if not can_win(own, stones) and safe_squares(own, stones) != np.uint64(0):
            states[count, 0], states[count, 1] = own, own ^ stones
            count += 1
    return states[:count]


@njit
def _children(keys):
    """The canonical keys of all positions one stone later that are not won."""
    children = np.empty(7 * len(keys), np.uint64)
    count = 0
    for key in keys:
        own, stones = _state(key)
        squares = open_squares(stones)
        while squares:
            square = squares & (~squares + ONE)
            squares ^= square
            if not has_four(own | square):
                children[count] = canonical_key(own ^ stones, stones | square)
                count += 1
    return children[:count]


# --- their scores ---


def bitbullys_scores(states: np.ndarray) -> np.ndarray:
    """`int8[n]`; raises InputError if bitbully is not installed."""
    try:
        import bitbully  # type: ignore[import-not-found]
    except ImportError:
        raise InputError("--make needs bitbully, which is not installed: pip install bitbully") from None
    agent = bitbully.BitBully("12-ply-dist")
    squares = np.array([[7 * column + row for row in range(6)] for column in range(7)], np.uint64)
    scores = np.empty(len(states), np.int8)
    with Progress("scores for the book") as progress:
        for start in range(0, len(states), 1 << 13):
            piece = states[start : start + (1 << 13)]
            own, opponent = ((piece[:, i, None, None] >> squares & ONE).astype(int) for i in range(2))
            boards = (own + 2 * opponent).tolist()  # 12 stones: the first player is to move
            scores[start : start + len(piece)] = [agent.mtdf(bitbully.Board(board)) for board in boards]
            progress.show(start / len(states), f"{start:,} of {len(states):,} positions")
    return scores


# --- the table ---


def make_book(states: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The book `uint8[...]` that gives each of `states uint64[n, 2]` its score; the format is that of `look_up`."""
    count = len(states)
    segment_size = 1 << max(2, int(math.log(max(count, 2)) / math.log(3.33) + 2.25))
    room = 1.125 if count > 100_000 else 1.4  # small graphs need more
    num_segments = max(1, math.ceil(count * room / segment_size) - 2)
    for seed in range(100):
        cells = _fill(states, scores.astype(np.int64) + BOOK_OFFSET, seed, num_segments, segment_size)
        if len(cells):
            break
    else:
        raise ValueError("no seed fits: are there equal positions among them?")
    bits = (cells[:, None] >> np.arange(BOOK_BITS, dtype=np.uint8) & 1).ravel()
    header = np.array([seed, num_segments, segment_size], "<u8").view(np.uint8)
    book = np.concatenate([header, np.packbits(bits, bitorder="little"), np.zeros(1, np.uint8)])
    if (look_up_all(states, book) != scores).any():
        raise ValueError("the book does not give back what was put in")
    return book


@njit
def look_up_all(states, book):
    """The scores `int8[n]` that the book has for `states uint64[n, 2]`."""
    scores = np.empty(len(states), np.int8)
    for i in range(len(states)):
        scores[i] = look_up(states[i, 0], states[i, 0] | states[i, 1], book)
    return scores


@njit
def _fill(states, values, seed, num_segments, segment_size):
    """Cells `uint8[...]` with the values of all states; empty if this seed does not work.

    A cell that only one state uses can always be set right at last: such states are taken away one after the other, and
    their cells set in the opposite order.
    """
    num_cells = (num_segments + 2) * segment_size
    uses, users = np.zeros(num_cells, np.int64), np.zeros(num_cells, np.int64)
    places = np.empty((len(states), 3), np.int64)
    for i in range(len(states)):
        key = canonical_key(states[i, 0], states[i, 0] | states[i, 1])
        first, second, third = book_cells(key, np.uint64(seed), np.uint64(num_segments), np.uint64(segment_size))
        places[i, 0], places[i, 1], places[i, 2] = first, second, third
        for cell in places[i]:
            uses[cell] += 1
            users[cell] ^= i
    single = [cell for cell in range(num_cells) if uses[cell] == 1]
    order = np.empty((len(states), 2), np.int64)
    count = 0
    while single:
        own = single.pop()
        if uses[own] != 1:
            continue
        i = users[own]
        order[count, 0], order[count, 1] = i, own
        count += 1
        for cell in places[i]:
            uses[cell] -= 1
            users[cell] ^= i
            if uses[cell] == 1:
                single.append(cell)
    cells = np.zeros(num_cells if count == len(states) else 0, np.uint8)
    if count == len(states):
        for j in range(count - 1, -1, -1):
            i, own = order[j]
            value = values[i]
            for cell in places[i]:
                value ^= cells[cell]
            cells[own] = value
    return cells


if __name__ == "__main__":
    sys.exit(run_command(main))
