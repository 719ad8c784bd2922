"""Which positions of Connect Four are balanced: the draws, of which there are enough after any number of plies.

A drawn position has to be held by both players; every other one is won by force, however late.
"""

from __future__ import annotations

import numpy as np

from alphazero.game import Game
from alphazero.package import AreBalanced
from games.connect4.solver import Solver


def make_balance(game: Game) -> AreBalanced:
    solver = Solver(threads=1)

    def are_balanced(states: np.ndarray) -> np.ndarray:
        return solver.solve_all(states, weak=True) == 0

    return are_balanced
