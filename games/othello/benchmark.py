"""How well does a player finish an Othello game? Scores any contestant by exact endgames.

    python -m games.othello.benchmark runs/othello-1 --simulations 0,100
    python -m games.othello.benchmark minimax:4 --game othello6
    python -m games.othello.benchmark solver --positions FILE --json result.json

- accuracy: the move played loses no disc;
- outcome accuracy: it keeps the best outcome (win, draw or loss);
- disc loss: how many discs of the final difference it gives away, on average;
- value sign accuracy: the value is above 1/3 where the position is won, below -1/3 where it is lost, else between them.

All with 95% intervals. In a run these figures, of the network without a search, join every generation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError, InvalidSetting
from alphazero.game import Game, registry
from alphazero.matches.intervals import mean_with_interval, share_with_interval
from alphazero.players.contestants import open_contestant
from alphazero.players.player import Player
from alphazero.progress import Progress, count_cores
from alphazero.storage.files import check_output_file, write_json
from games.othello.game import Othello
from games.othello.labelled import Labelled, load_file, load_frozen
from games.othello.solver import NO_SCORE, Solver

FIGURES = ("accuracy", "outcome_accuracy", "disc_loss", "value_sign_accuracy")
DRAWN = 1 / 3
"""Values up to this from 0 say that the position is a draw."""
POSITIONS_PER_CALL = 512


@dataclass(frozen=True)
class Judgement:
    """What a contestant did with n positions; None where it has no such opinion."""

    disc_losses: np.ndarray
    """`int64[n]`: discs that its move gives away."""
    outcomes_right: np.ndarray
    """`bool[n]`: the move keeps the best outcome."""
    values_right: np.ndarray | None
    """`bool[n]`."""

    def figures(self) -> dict[str, Any]:
        """The figures by name, with their intervals `[low, high]`."""
        found = {
            "accuracy": share_with_interval(self.disc_losses == 0),
            "outcome_accuracy": share_with_interval(self.outcomes_right),
            "disc_loss": mean_with_interval(self.disc_losses),
            "value_sign_accuracy": (None, None)
            if self.values_right is None
            else share_with_interval(self.values_right),
        }
        return {k: v for name, pair in found.items() for k, v in zip((name, f"{name}_interval"), pair, strict=True)}


def judge(player: Player, labelled: Labelled, on_progress: Callable[[float], None] | None = None) -> Judgement:
    """Asks `player` about every position; `on_progress` hears the share that is done."""
    states, scores = labelled.states, labelled.scores.astype(np.int64)
    answers = []
    for start in range(0, len(states), POSITIONS_PER_CALL):
        piece = states[start : start + POSITIONS_PER_CALL]
        plies = np.bitwise_count(piece).sum(axis=1, dtype=np.int64) - 4  # passes do not show in a position
        answers.append(player.assess(piece, np.arange(start, start + len(piece)), plies))
        if on_progress:
            on_progress((start + len(piece)) / len(states))
    played = scores[np.arange(len(states)), np.concatenate([answer.actions for answer in answers])]
    best = np.where(scores == NO_SCORE, -100, scores).max(axis=1)
    values_right = None
    if answers[0].values is not None:
        values = np.concatenate([answer.values for answer in answers if answer.values is not None])
        values_right = np.where(np.abs(values) <= DRAWN, 0, np.sign(values)) == np.sign(best)
    return Judgement(best - played, np.sign(played) == np.sign(best), values_right)


def make_benchmark(game: Game) -> Callable[[Player], dict[str, float]]:
    """Scores a player on the frozen set of the game's board; a figure that it has no opinion on is left out."""
    assert isinstance(game, Othello)
    labelled = load_frozen(game.size)

    def benchmark(player: Player) -> dict[str, float]:
        figures = judge(player, labelled).figures()
        return {f"endgame_{name}": round(figures[name], 5) for name in FIGURES if figures[name] is not None}

    return benchmark


# --- the command ---


@dataclass(frozen=True)
class BenchmarkConfig:
    """Scores a contestant's moves and values in Othello endgames by their exact scores.

    A contestant is a checkpoint, a run folder, random, greedy, minimax:DEPTH, mcts:SIMULATIONS or solver.
    """

    contestant: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="CONTESTANT")]
    """Whom to score."""
    game: str = "othello"
    """othello or othello6."""
    simulations: str = "0"
    """Simulations per position of a net, one or several as in 0,100,800; 0 = its policy without a search."""
    positions: Path | None = None
    """Score on the positions of this JSON file instead: {"1": {"board": "--XXO...", "to_move": "X"}, ...}."""
    json: Path | None = None
    """Write the figures into this file as well."""
    seed: int = 0
    """Breaks ties between equally good moves."""
    threads: int = field(default_factory=count_cores)
    """Processor threads."""

    def __post_init__(self) -> None:
        if not 1 <= self.threads <= 1024 or not 0 <= self.seed < 1 << 63:
            raise InvalidSetting("--threads must lie between 1 and 1,024, and --seed from 0 up")
        if self.json is not None:
            check_output_file("--json", self.json)


def main(argv: list[str]) -> None:
    config = parse(BenchmarkConfig, argv)
    loaded = registry.load(config.game)
    game = loaded.game
    if not isinstance(game, Othello):
        raise InvalidSetting(f"--game must be othello or othello6, not {config.game}")
    players: dict[str, Player] = {}
    for simulations in parse_simulations(config.simulations):
        player = open_contestant(
            config.contestant, loaded, seed=config.seed, threads=config.threads, simulations=simulations
        )
        if player.one_at_a_time:
            raise InputError(f"{config.contestant} plays one game at a time; thousands of positions would be too many")
        searches = hasattr(player, "num_simulations") or simulations == 0
        players[f"{simulations} simulations" if searches and simulations else "without a search"] = player
    solver = Solver(game, config.threads)
    labelled = load_file(config.positions, solver, game) if config.positions else load_frozen(game.size)
    source = config.positions or "the frozen set"
    print(f"{config.contestant} on {source}: {len(labelled.states)} positions")
    results = []
    for title, player in players.items():
        with Progress(title) as progress:

            def show(done: float, progress: Progress = progress) -> None:
                progress.show(done, f"{done:.0%}")

            judgement = judge(player, labelled, show)
        results.append({"contestant": config.contestant, "search": title, **judgement.figures()})
        print(f"\n{title}")
        for name in FIGURES:
            figure, interval = results[-1][name], results[-1][f"{name}_interval"]
            if figure is not None:
                print(f"  {name.replace('_', ' '):<22} {figure:.3f} ({interval[0]:.3f} to {interval[1]:.3f})")
        if config.positions:
            for name, loss in zip(labelled.names, judgement.disc_losses, strict=True):
                print(f"  {name:<10} {'right' if loss == 0 else f'{loss} discs lost'}")
    if config.json is not None:
        write_json(config.json, results)


def parse_simulations(text: str) -> list[int]:
    """The numbers of `--simulations`."""
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        raise InvalidSetting(f"--simulations takes whole numbers as in 0,100,800, not {text!r}") from None
    if not all(0 <= number <= 1_000_000 for number in numbers):
        raise InvalidSetting(f"--simulations must lie between 0 and 1,000,000, not {text}")
    return numbers


if __name__ == "__main__":
    sys.exit(run_command(main))
