"""What Connect Four adds to the contestants of every game: `solver`, which plays perfectly."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from alphazero.errors import InvalidSetting
from alphazero.kernels import Kernels
from alphazero.players import Chooser, Player
from games.connect4.solver import Solver


class SolverPlayer(Player):
    """Wins as soon and loses as late as can be; among equally good columns it picks at random."""

    name = "solver"

    def __init__(self, kernels: Kernels, seed: int, threads: int):
        self._solver, self._chooser = Solver(threads), Chooser(kernels, seed)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        return self._chooser.best(self._solver.column_scores_all(states), games, plies)


def make_solver(
    kernels: Kernels, argument: str, settings: Mapping[str, str], *, seed: int, threads: int
) -> SolverPlayer:
    if argument or settings:
        raise InvalidSetting("solver takes no argument and no settings; write solver")
    return SolverPlayer(kernels, seed, threads)


contestants = {"solver": make_solver}
