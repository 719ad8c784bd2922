"""Connect Four's perfect player, exact results for people, and balanced openings.

All of them use one solver, so its transposition tables are in memory once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numba import njit

from alphazero.errors import InvalidSetting
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels
from alphazero.game.spec import AreBalanced, CompiledOracle, ExactResult, Oracle
from alphazero.players.exact import ScorePlayer
from alphazero.players.player import Player
from games.connect4.solver import TABLE_ENTRIES, shared_solver, solve_all
from games.connect4.solver.kernels import SQUARES, count_bits, moves_to_end, score_column

KNOWN_PLY = 14
"""Stones from which the solver needs no book: all columns take some 150,000 positions, seldom a million."""


def make_solver(kernels: Kernels, argument: str, settings: Mapping[str, str], *, seed: int, threads: int) -> Player:
    """Wins as soon as possible and loses as late as possible."""
    if argument or settings:
        raise InvalidSetting("solver takes no argument and no settings; write solver")
    solver = shared_solver()
    return ScorePlayer("solver", kernels, seed, lambda states: solver.column_scores_all(states, threads=threads))


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
