"""Scores a player by exact Othello endgames; docs/reference/games/othello.md says what the figures mean.

python -m games.othello.benchmark runs/othello-1 --simulations 0 100
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from alphazero.catalogue import registry
from alphazero.commands.rules.benchmark import JudgeConfig, report
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InvalidSetting, count_of
from alphazero.game import Game, Position
from alphazero.matches.judge import Judgement, Labelled, Measure, ask, load_file, signs_right
from alphazero.players.baselines import NO_SCORE
from alphazero.players.player import Player
from alphazero.storage.arrays import Array, read_npz
from games.othello.game import Othello
from games.othello.solver import Solver

FOLDER = Path(__file__).parent / "data"
MOST_EMPTY_SQUARES = 20
"""The most empty squares in positions of files; with more, each takes minutes."""


def judge(player: Player, labelled: Labelled, on_progress: Callable[[float], None] | None = None) -> Judgement:
    """Asks `player` about every position; `on_progress` hears the share that is done."""
    plies = np.bitwise_count(labelled.states).sum(axis=1, dtype=np.int64) - 4  # passes do not show in a position
    answer = ask(player, labelled.states, plies, on_progress)
    scores, best = labelled.scores.astype(np.int64), labelled.value_scores.astype(np.int64)
    played = scores[np.arange(len(scores)), answer.actions]
    losses = best - played
    return Judgement(
        {
            "accuracy": Measure(losses == 0, plies),
            "outcome_accuracy": Measure(np.sign(played) == np.sign(best), plies),
            "disc_loss": Measure(losses, plies),
            "value_sign_accuracy": Measure(signs_right(answer.values, best), plies),
        }
    )


def load_frozen(size: int) -> Labelled:
    """The frozen set of a board size."""
    expected = {"states": Array(np.uint64, ("n", 2)), "scores": Array(np.int8, ("n", size**2 + 1), NO_SCORE, size**2)}
    arrays = read_npz(FOLDER / f"endgames_{size}.npz", expected, max_bytes=1 << 24)
    states, scores = arrays["states"], arrays["scores"]
    return Labelled([], states, scores, states, scores.max(axis=1))


def make_benchmark(game: Game) -> Callable[[Player], dict[str, float]]:
    """Scores a player on the frozen set of the game's board; a figure on which it has no opinion is left out."""
    assert isinstance(game, Othello)
    labelled = load_frozen(game.size)
    return lambda player: judge(player, labelled).rounded("endgame")


# --- the command ---


@dataclass(frozen=True)
class BenchmarkConfig(JudgeConfig):
    """Scores a contestant's moves and values in Othello endgames by their exact scores."""

    game: str = "othello"
    """othello or othello6."""


def main(argv: list[str]) -> None:
    config = parse(BenchmarkConfig, argv)
    loaded = registry.load(config.game)
    game = loaded.game
    if not isinstance(game, Othello):
        raise InvalidSetting(f"--game must be othello or othello6, not {config.game}")
    solver, labelled = Solver(game, config.threads), load_frozen(game.size)
    if config.positions:

        def near(position: Position) -> bool:
            return bool(solver.num_empty(position.state[None])[0] <= MOST_EMPTY_SQUARES)

        labelled = load_file(config.positions, game, solver.move_scores, near)

    def each_loss(judgement: Judgement) -> str:
        """The positions of a file, which have names."""
        losses = zip(labelled.names, np.asarray(judgement.measures["disc_loss"].each), strict=False)
        words = ((name, f"{count_of(loss, 'disc')} lost" if loss else "right") for name, loss in losses)
        return "".join(f"\n  {name:<10} {word}" for name, word in words)

    report(config, loaded, labelled, judge, details=each_loss)


if __name__ == "__main__":
    sys.exit(run_command(main))
