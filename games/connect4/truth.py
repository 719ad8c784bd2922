"""What every column leads to, exactly, for a human who asks."""

from __future__ import annotations

import numpy as np

from alphazero.game import Game, Position
from alphazero.package import Truth
from games.connect4.solver import NO_SCORE, Solver, describe


def make_truth(game: Game) -> Truth:
    solver = Solver()

    def truth(position: Position) -> dict[int, str]:
        scores = solver.column_scores_all(position.state[None])[0]
        best_first = np.argsort(-scores.astype(int), kind="stable")
        return {
            int(column): describe(int(scores[column]), position) for column in best_first if scores[column] != NO_SCORE
        }

    return truth
