"""Connect Four solved exactly: the score of any position, and of every move in it.

The score is positive if the player to move wins, negative if the opponent does, 0 for a draw; its size says how early:
22 less the number of stones that the winner will have played, which is half the stones left on the board, plus one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit

from alphazero.errors import InvalidSetting, StorageError
from alphazero.game import Game, Position, count_bits
from alphazero.game.kernels import Kernels, kernels_of
from alphazero.game.spec import AreBalanced, CompiledOracle, ExactResult, Oracle
from alphazero.players.baselines import NO_SCORE, ExactSolver, ScorePlayer
from alphazero.players.player import Player
from alphazero.storage.arrays import Array, read_npz
from games.connect4.game import Connect4
from games.connect4.solver_kernels import (
    BOOK_BITS,
    BOOK_HEADER,
    SQUARES,
    moves_to_end,
    score_column,
    solve_many,
)

BOOK_FILE = Path(__file__).parent / "data" / "book.npz"
GAME = Connect4()
TABLE_ENTRIES = 1 << 20
"""Entries of 8 bytes in each thread's transposition table; a larger one would not fit the processor's cache."""
POSITIONS_PER_CALL = 64
"""Positions that a thread takes at once, at most."""
KNOWN_PLY = 14
"""Stones from which the solver needs no book: all columns take some 150,000 positions, seldom a million."""


class Solver(ExactSolver):
    """Solves positions on all cores, with a transposition table of 8 MB for each thread.

    `book` false: without the opening book.
    """

    def __init__(self, threads: int | None = None, book: bool = True):
        # unlike zeros, full touches its memory now, not in a search
        super().__init__(
            lambda: (np.full(TABLE_ENTRIES, 0, np.uint64), np.zeros(8 * (SQUARES + 1), np.uint64)), threads
        )
        self._book = read_book() if book else np.zeros(0, np.uint8)
        self._kernels = kernels_of(GAME)

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
        left = states[~terminal]
        found = np.empty(len(left), np.int8)
        size = max(1, min(POSITIONS_PER_CALL, len(left) // (8 * (threads or self.threads))))

        def work(rows: slice, table: np.ndarray, moves: np.ndarray) -> None:
            solve_many(left[rows], weak, table, moves, self._book, found[rows])

        self.share(len(left), size, work, threads)
        scores[~terminal] = found
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


def read_book(path: Path = BOOK_FILE) -> np.ndarray:
    """The book `uint8[...]` in a file; raises StorageError if it is none."""
    book = read_npz(path, {"book": Array(np.uint8, ("n",))}, max_bytes=1 << 23)["book"]
    if len(book) > BOOK_HEADER:
        _, num_segments, segment_size = (int(word) for word in book[:BOOK_HEADER].view("<u8"))
        num_bits = (num_segments + 2) * segment_size * BOOK_BITS
        if segment_size & (segment_size - 1) == 0 and len(book) == BOOK_HEADER + -(-num_bits // 8) + 1:
            return book
    raise StorageError(f"{path} is not an opening book; install the program anew")


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


# --- for the framework ---


def make_solver(kernels: Kernels, argument: str, settings: Mapping[str, str], *, seed: int, threads: int) -> Player:
    """Wins as soon as possible and loses as late as possible."""
    if argument or settings:
        raise InvalidSetting("solver takes no argument and no settings; write solver")
    solver = shared_solver()
    return ScorePlayer("solver", seed, lambda states: solver.column_scores_all(states, threads=threads))


def exact_results(position: Position) -> dict[int, ExactResult]:
    """The result of every column that is not full, the best first."""
    scores = shared_solver().column_scores_all(position.state[None])[0].tolist()
    best_first = sorted(position.legal_actions, key=lambda column: -scores[column])
    return {column: result_of(scores[column], position) for column in best_first}


def result_of(score: int, position: Position) -> ExactResult:
    """A score as a result, whose distance counts the winner's moves."""
    if score == 0:
        return ExactResult(0)
    moves = moves_to_end(score, int(np.bitwise_count(position.state).sum()))
    return ExactResult(1 if score > 0 else -1, int(moves))


class SolverMemory(NamedTuple):
    """The memory of a solver, as its kernels take it."""

    table: np.ndarray
    moves: np.ndarray
    book: np.ndarray


def _make_memory(zeros: Callable[..., np.ndarray]) -> SolverMemory:
    """The memory without the book, which is larger than a page may be."""
    return SolverMemory(
        table=zeros((TABLE_ENTRIES,), np.uint64), moves=zeros((8 * (SQUARES + 1),), np.uint64),
        book=zeros((0,), np.uint8),
    )  # fmt: skip


@njit
def _is_known(state):
    return count_bits(state[0] | state[1]) >= KNOWN_PLY


@njit
def _score_of(state, action, memory):
    return score_column(state[0], state[1], action, memory.table, memory.moves, memory.book)


@njit
def _distance_of(state, score):
    return moves_to_end(score, count_bits(state[0] | state[1]))


ORACLE = Oracle(exact_results, compiled=CompiledOracle(_is_known, _score_of, _distance_of, _make_memory))


def make_oracle(game: Game) -> Oracle:
    return ORACLE


def make_balance(game: Game) -> AreBalanced:
    return lambda states: solve_all(states, weak=True, threads=1) == 0
