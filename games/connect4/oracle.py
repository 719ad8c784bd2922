"""Connect Four's perfect player, exact results for people, and balanced openings.

All of them use one solver, so its transposition tables are in memory once.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from alphazero.errors import InvalidSetting
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels
from alphazero.game.spec import AreBalanced, Truth
from alphazero.players.player import Chooser, Player
from games.connect4.solver import NO_SCORE, column_scores_all, describe, solve_all


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


def make_balance(game: Game) -> AreBalanced:
    return lambda states: solve_all(states, weak=True, threads=1) == 0
