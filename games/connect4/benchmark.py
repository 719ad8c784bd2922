"""Scores a player by the exact truth of Connect Four; docs/reference/games/connect4.md says what the figures mean.

python -m games.connect4.benchmark runs/connect4-1 --simulations 0 100
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from alphazero.catalogue import registry
from alphazero.commands.rules.benchmark import JudgeConfig, report
from alphazero.commands.shared import parse, run_command
from alphazero.game import Game
from alphazero.matches.judge import Judgement, Labelled, Measure, ask, load_file, signs_right
from alphazero.players.baselines import NO_SCORE
from alphazero.players.player import Player
from games.connect4.labelled import load_frozen
from games.connect4.solver import GAME, Solver

PHASES = {"0-11": (0, 11), "12-23": (12, 23), "24-": (24, 41)}
"""Parts of the game by ply, first to last."""
LEAST_MASS = 1e-3
"""A policy that gives all good actions less than this is not punished further."""


def judge(player: Player, labelled: Labelled, on_progress: Callable[[float], None] | None = None) -> Judgement:
    """Asks `player` about every position, and about the value of others; `on_progress` hears the share of each."""
    both = labelled.states, labelled.value_states
    plies, value_plies = (np.bitwise_count(states).sum(axis=1, dtype=np.int64) for states in both)
    answer = ask(player, labelled.states, plies, on_progress)
    values_right = None
    if answer.values is not None and len(value_plies):
        values = ask(player, labelled.value_states, value_plies, on_progress).values
        values_right = signs_right(values, labelled.value_scores)
    scores, best = labelled.scores, labelled.scores.max(axis=1, keepdims=True)
    keeps = (scores != NO_SCORE) & (np.sign(scores) == np.sign(best))
    losses = None
    if answer.policy is not None:
        masses = (answer.policy * keeps).sum(axis=1, dtype=np.float64)
        losses = -np.log(np.clip(masses, LEAST_MASS, 1.0))
    rows = np.arange(len(plies))
    return Judgement(
        {
            "accuracy": Measure(keeps[rows, answer.actions], plies),
            "strict_accuracy": Measure((scores == best)[rows, answer.actions], plies),
            "cross_entropy": Measure(losses, plies),
            "value_sign_accuracy": Measure(values_right, value_plies),
        }
    )


def make_benchmark(game: Game) -> Callable[[Player], dict[str, float]]:
    """Scores a player on the frozen set; a figure on which it has no opinion is left out."""
    labelled = load_frozen()
    return lambda player: judge(player, labelled).rounded("pons")


# --- the command ---


def main(argv: list[str]) -> None:
    config = parse(JudgeConfig, argv)
    solve = Solver(config.threads).column_scores_all
    labelled = load_file(config.positions, GAME, solve) if config.positions else load_frozen()
    report(config, registry.load("connect4"), labelled, judge, PHASES)


if __name__ == "__main__":
    sys.exit(run_command(main))
