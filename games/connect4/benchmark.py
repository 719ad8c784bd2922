"""Scores a player by the exact truth of Connect Four; docs/reference/games/connect4.md says what the figures mean.

python -m games.connect4.benchmark runs/connect4-1 --simulations 0 100
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from alphazero.catalogue import registry
from alphazero.commands.rules.benchmark import JudgeConfig, report
from alphazero.commands.shared import parse, run_command
from alphazero.game import Game
from alphazero.game.kernels import kernels_of
from alphazero.matches.judge import Judgement, Labelled, Measure, ask, load_file, signs_right
from alphazero.players.baselines import NO_SCORE
from alphazero.players.player import Player
from alphazero.storage.arrays import Array, read_npz
from games.connect4.game import COLUMNS, ROWS
from games.connect4.solver import GAME, Solver

FOLDER = Path(__file__).parent / "data"
MAX_PLY = 35
"""The last ply of which there are positions in the frozen set."""
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


def load_frozen(folder: Path = FOLDER) -> Labelled:
    """The frozen set."""
    expected = {
        "actions": Array(np.int8, ("n", MAX_PLY), -1, COLUMNS - 1),
        "column_scores": Array(np.int8, ("n", COLUMNS), NO_SCORE, COLUMNS * ROWS),
        "children": Array(np.int8, ("n",), -1, COLUMNS - 1),
    }
    arrays = read_npz(folder / "labelled.npz", expected, max_bytes=1 << 24)
    actions, scores, children = arrays["actions"], arrays["column_scores"], arrays["children"]
    kernels = kernels_of(GAME)
    states = kernels.start_states(len(actions))
    for column in (*actions.T, children):
        before = states.copy()
        kernels.play(states, np.zeros(len(states), np.int8), column.astype(np.int64))
    has_child = np.flatnonzero(children >= 0)
    names = ["".join(str(action + 1) for action in row[row >= 0]) for row in actions]
    return Labelled(names, before, scores, states[has_child], -scores[has_child, children[has_child]])


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
