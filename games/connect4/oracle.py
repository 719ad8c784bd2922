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
from alphazero.game.spec import AreBalanced, CompiledTruth, Truth
from alphazero.players.player import Chooser, Player
from games.connect4.solver import NO_SCORE, TABLE_ENTRIES, column_scores_all, describe, solve_all
from games.connect4.solver_kernels import SQUARES, count_bits, moves_to_end, score_column

KNOWN_PLY = 14
"""Stones from which the solver needs no book: all columns take some 150,000 positions, seldom a million."""


class SolverPlayer(Player):
    """Wins as soon as possible and loses as late as possible; picks at random among equally good columns."""

    name = "solver"

    def __init__(self, kernels: Kernels, seed: int, threads: int):
        self._threads, self._chooser = threads, Chooser(kernels, seed)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        return self._chooser.best(column_scores_all(states, threads=self._threads), games, plies)


def make_solver(
    kernels: Kernels, argument: str, settings: Mapping[str, str], *, seed: int, threads: int
) -> SolverPlayer:
    if argument or settings:
        raise InvalidSetting("solver takes no argument and no settings; write solver")
    return SolverPlayer(kernels, seed, threads)


def make_truth(game: Game) -> Truth:
    def truth(position: Position) -> dict[int, str]:
        scores = column_scores_all(position.state[None])[0]
        best_first = np.argsort(-scores.astype(int), kind="stable")
        return {
            int(column): describe(int(scores[column]), position) for column in best_first if scores[column] != NO_SCORE
        }

    return truth


class SolverMemory(NamedTuple):
    """The memory of a solver, as its kernels take it."""

    table: np.ndarray
    moves: np.ndarray
    book: np.ndarray


def make_compiled_truth(game: Game) -> CompiledTruth:
    """The solver without its book, which is larger than a page may be; so it knows no position of the opening."""

    def make_memory(zeros: Callable[..., np.ndarray]) -> SolverMemory:
        return SolverMemory(
            table=zeros((TABLE_ENTRIES,), np.uint64), moves=zeros((8 * (SQUARES + 1),), np.uint64),
            book=zeros((0,), np.uint8),
        )  # fmt: skip

    return CompiledTruth(_is_known, _score_of, _distance_of, make_memory, how="in", unit="move")


@njit
def _is_known(state):
    return count_bits(state[0] | state[1]) >= KNOWN_PLY


@njit
def _score_of(state, action, memory):
    return score_column(state[0], state[1], action, memory.table, memory.moves, memory.book)


@njit
def _distance_of(state, score):
    return moves_to_end(score, count_bits(state[0] | state[1]))


def make_balance(game: Game) -> AreBalanced:
    return lambda states: solve_all(states, weak=True, threads=1) == 0
