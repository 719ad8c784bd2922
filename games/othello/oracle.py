"""Othello's own players and exact results for people.

All of them use one endgame solver for each board size, so its transposition tables are in memory once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from alphazero.errors import InvalidSetting, count_of
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels
from alphazero.game.spec import ExactResult, Oracle
from alphazero.players.baselines import MinimaxPlayer
from alphazero.players.exact import ScorePlayer
from alphazero.players.player import Player
from games.othello.game import Othello
from games.othello.solver import shared_solver

EMPTY_SQUARES = 16
"""Default number of empty squares from which the solver plays perfectly; a position takes about 0.1 s."""
MOST_EMPTY_SQUARES = 22
DEPTH = 4
"""Depth of the minimax search that the solver plays by earlier in the game."""


class SolverPlayer(Player):
    """Plays for the most discs, perfectly, with at most `empty_squares` empty squares; before that by minimax."""

    def __init__(self, kernels: Kernels, empty_squares: int, seed: int, threads: int):
        self.name = f"solver:{empty_squares}"
        assert isinstance(kernels.game, Othello)
        solver = shared_solver(type(kernels.game))  # type: ignore[arg-type]
        self._solver, self._empty_squares = solver, empty_squares
        self._exact = ScorePlayer("", kernels, seed, lambda x: solver.move_scores(x, best_only=True, threads=threads))
        self._minimax = MinimaxPlayer(kernels, DEPTH, seed, threads)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        actions = np.empty(len(states), np.int64)
        solved = self._solver.num_empty(states) <= self._empty_squares
        for rows, player in ((solved, self._exact), (~solved, self._minimax)):
            if rows.any():
                actions[rows] = player.select_actions(states[rows], games[rows], plies[rows])
        return actions


def make_greedy(kernels: Kernels, argument: str, settings: Mapping[str, str], *, seed: int, threads: int) -> Player:
    """Takes the move that turns over the most discs."""
    if argument or settings:
        raise InvalidSetting("greedy takes no argument and no settings; write greedy")

    def count_discs(states: np.ndarray) -> np.ndarray:
        legal_masks, _, _ = kernels.describe_all(states)
        counts = np.zeros(legal_masks.shape, np.int64)
        rows, actions = np.nonzero(legal_masks)
        children = states[rows]
        kernels.play(children, np.zeros(len(rows), np.int8), actions)
        counts[rows, actions] = 1 + np.bitwise_count(children[:, 1])  # the mover's discs, seen from the other side
        return counts

    return ScorePlayer("greedy", kernels, seed, count_discs)


def make_solver(
    kernels: Kernels, argument: str, settings: Mapping[str, str], *, seed: int, threads: int
) -> SolverPlayer:
    wanted = argument or str(EMPTY_SQUARES)
    if settings or not re.fullmatch("[0-9]{1,2}", wanted) or not 1 <= int(wanted) <= MOST_EMPTY_SQUARES:
        raise InvalidSetting(
            "solver takes no settings, and as its argument the number of empty squares from which it plays perfectly, "
            f"1 to {MOST_EMPTY_SQUARES}: write solver or solver:20"
        )
    return SolverPlayer(kernels, int(wanted), seed, threads)


def make_oracle(game: Game) -> Oracle:
    assert isinstance(game, Othello)
    solver = shared_solver(type(game))  # type: ignore[arg-type]

    def num_empty(position: Position) -> int:
        return int(solver.num_empty(position.state[None].copy())[0])

    def limit(position: Position) -> str:
        return f"it has {count_of(num_empty(position), 'empty square')}, and {EMPTY_SQUARES} or fewer can be solved"

    def solve(position: Position) -> dict[int, ExactResult]:
        if num_empty(position) > EMPTY_SQUARES:
            return {}
        scores = solver.move_scores(position.state[None].copy())[0].tolist()
        best_first = sorted(position.legal_actions, key=lambda action: -scores[action])
        return {action: ExactResult(int(np.sign(scores[action])), abs(scores[action]) or None) for action in best_first}

    return Oracle(solve, how="by", unit="disc", limit=limit)
