"""Connect Four solved exactly: the score of any position, and of every move in it.

The score is positive if the player to move wins, negative if the opponent does, 0 for a draw; its size says how early:
22 less the number of stones that the winner will have played, which is half the stones left on the board, plus one.

    python -m games.connect4.solver 4453            the board, and the result of every column
    python -m games.connect4.solver --file FILE     checks a file of lines `moves score`
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from alphazero.errors import StorageError
from alphazero.game import Position
from alphazero.game.kernels import kernels_of
from alphazero.machine import Threads, count_cores
from alphazero.storage.arrays import Array, read_npz
from games.connect4.solver.kernels import BOOK_BITS, BOOK_HEADER, SQUARES, solve_many
from games.connect4.solver.notation import GAME

BOOK_FILE = Path(__file__).parents[1] / "data" / "book.npz"
NO_SCORE = -100
"""In arrays of column scores: the column cannot be played."""
TABLE_ENTRIES = 1 << 20
"""Entries of 8 bytes in each thread's transposition table; a larger one would not fit the processor's cache."""
POSITIONS_PER_CALL = 64
"""Positions that a thread takes at once, at most."""


class Solver:
    """Solves positions on all cores, with a transposition table of 8 MB for each thread.

    `book` false: without the opening book.
    """

    def __init__(self, threads: int | None = None, book: bool = True):
        self._threads = count_cores() if threads is None else threads
        self._pool = Threads(self._threads)
        self._own = threading.local()
        self._memories: list[np.ndarray] = []
        self._book = read_book() if book else np.zeros(0, np.uint8)
        self._kernels = kernels_of(GAME)

    @property
    def num_nodes(self) -> int:
        """Positions looked at so far."""
        return sum(int(moves[0]) for moves in self._memories)

    def solve(self, position: Position, weak: bool = False) -> int:
        """The score of a position; -1, 0 or 1 if `weak`."""
        return int(self.solve_all(position.state[None], weak)[0])

    def column_scores(self, position: Position, weak: bool = False) -> list[int | None]:
        """The score of playing each column, for the player to move; None where a column cannot be played."""
        scores = self.column_scores_all(position.state[None], weak)[0]
        return [None if score == NO_SCORE else int(score) for score in scores]

    def solve_all(self, states: np.ndarray, weak: bool = False, threads: int | None = None) -> np.ndarray:
        """Scores `int8[n]` of `states uint64[n, 2]`, as the game has them; on `threads` cores, if that is fewer."""
        _, terminal, values = self._kernels.describe_all(states)
        lost_by = (SQUARES + 2 - np.bitwise_count(states).sum(axis=1, dtype=np.int64)) // 2
        scores = np.where(values < 0, -1 if weak else -lost_by, 0).astype(np.int8)
        scores[~terminal] = self._solve_open(states[~terminal], weak, threads or self._threads)
        return scores

    def column_scores_all(self, states: np.ndarray, weak: bool = False, threads: int | None = None) -> np.ndarray:
        """The score `int8[n, 7]` of every column of `states uint64[n, 2]`; NO_SCORE where it cannot be played."""
        legal_masks, _, _ = self._kernels.describe_all(states)
        rows, columns = np.nonzero(legal_masks)
        children = states[rows]
        self._kernels.play(children, np.zeros(len(rows), np.int8), columns)
        scores = np.full(legal_masks.shape, NO_SCORE, np.int8)
        scores[rows, columns] = -self.solve_all(children, weak, threads)
        return scores

    def solve_timed(self, states: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """`(scores int8[m], seconds float64[m])` of `states uint64[n, 2]`, piece after piece, none of them over.

        The seconds are of processor time: those that a thread waits for others do not count.
        """

        def work(piece: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            scores, seconds = np.empty(len(piece), np.int8), np.empty(len(piece))
            memory = self._memory()
            for i in range(len(piece)):
                one, score = piece[i : i + 1], scores[i : i + 1]
                begin = time.thread_time()
                solve_many(one, False, *memory, self._book, score)
                seconds[i] = time.thread_time() - begin
            return scores, seconds

        return self._pool.map(work, np.array_split(states, math.ceil(len(states) / 8)))

    def _solve_open(self, states: np.ndarray, weak: bool, threads: int) -> np.ndarray:
        """Scores of positions that are not over."""
        scores = np.empty(len(states), np.int8)
        size = max(1, min(POSITIONS_PER_CALL, len(states) // (8 * threads)))
        starts = iter(range(0, len(states), size))

        def work(_: int) -> None:
            memory = self._memory()
            for start in starts:  # each thread takes the next piece that is left
                piece = slice(start, start + size)
                solve_many(states[piece], weak, *memory, self._book, scores[piece])

        list(self._pool.map(work, range(min(threads, math.ceil(len(states) / size)))))
        return scores

    def _memory(self) -> tuple[np.ndarray, np.ndarray]:
        """This thread's transposition table and scratch space."""
        if not hasattr(self._own, "memory"):
            table = np.full(TABLE_ENTRIES, 0, np.uint64)  # unlike zeros, it touches its memory now, not in a search
            self._own.memory = table, np.zeros(8 * (SQUARES + 1), np.uint64)
            self._memories.append(self._own.memory[1])
        return self._own.memory


def read_book(path: Path = BOOK_FILE) -> np.ndarray:
    """The book `uint8[...]` in a file; raises StorageError if it is none."""
    book = read_npz(path, {"book": Array(np.uint8, ("n",))}, max_bytes=1 << 23)["book"]
    if len(book) > BOOK_HEADER:
        _, num_segments, segment_size = (int(word) for word in book[:BOOK_HEADER].view("<u8"))
        num_bits = (num_segments + 2) * segment_size * BOOK_BITS
        if segment_size & (segment_size - 1) == 0 and len(book) == BOOK_HEADER + -(-num_bits // 8) + 1:
            return book
    raise StorageError(f"{path} is not an opening book; make it anew by python -m games.connect4.book --make")


@cache
def shared_solver() -> Solver:
    """The solver of this process, which the functions below use."""
    return Solver()


def solve(position: Position, weak: bool = False) -> int:
    """The exact score of a position for the player to move; -1, 0 or 1 if `weak`."""
    return shared_solver().solve(position, weak)


def column_scores(position: Position, weak: bool = False) -> list[int | None]:
    """The exact score of each column for the player to move, None where it cannot be played."""
    return shared_solver().column_scores(position, weak)


def solve_all(states: np.ndarray, weak: bool = False, threads: int | None = None) -> np.ndarray:
    """Scores `int8[n]` of `states uint64[n, 2]`, on all cores, or on `threads` of them."""
    return shared_solver().solve_all(states, weak, threads)


def column_scores_all(states: np.ndarray, weak: bool = False, threads: int | None = None) -> np.ndarray:
    """Column scores `int8[n, 7]` of `states uint64[n, 2]`, as `solve_all`; NO_SCORE where no stone can be played."""
    return shared_solver().column_scores_all(states, weak, threads)
