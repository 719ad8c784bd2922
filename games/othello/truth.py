"""What every move leads to, exactly, for a human who asks; in the last 16 empty squares."""

from __future__ import annotations

import numpy as np

from alphazero.game import Game, Position
from alphazero.package import Truth
from games.othello.contestants import EMPTY_SQUARES
from games.othello.solver import NO_SCORE, Solver


def make_truth(game: Game) -> Truth:
    solver = Solver(game)  # type: ignore[arg-type]

    def truth(position: Position) -> dict[int, str]:
        states = position.state[None].copy()
        if solver.num_empty(states)[0] > EMPTY_SQUARES:
            return {}
        scores = solver.move_scores(states)[0].astype(int)
        best_first = np.argsort(-scores, kind="stable")
        return {int(action): describe(int(scores[action])) for action in best_first if scores[action] != NO_SCORE}

    return truth


def describe(score: int) -> str:
    """A score, the mover's discs less the opponent's at the end, in words."""
    return f"wins by {score}" if score > 0 else f"loses by {-score}" if score < 0 else "draw"
