"""Does a net hold what the first player has? `python -m benchmarks.first_player pretrained/connect4/best.safetensors`.

Connect Four is won for who begins. The net begins every game from the empty board against the perfect solver, which
never gives a win away but picks at random among equally good columns, and the net draws its first plies by
visits^(1/temperature), so that the games differ.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import tyro

import games
from alphazero.command import Progress, count_cores, parse, run_command
from alphazero.contestants import open_contestant
from alphazero.errors import InvalidSetting
from alphazero.kernels import Kernels
from alphazero.rating import score_interval


@dataclass(frozen=True)
class FirstPlayer:
    """A net, always first, against the solver from the empty board of Connect Four."""

    net: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NET")]
    """A checkpoint or run folder."""
    games: int = 50
    """Games to play."""
    simulations: int = 800
    """The net's simulations per ply."""
    temperature: float = 0.2
    """Of the net's first plies."""
    plies: int = 4
    """Plies of a game at that temperature."""
    seed: int = 0
    """The same seed plays the same games."""
    threads: int = field(default_factory=count_cores)
    """Processor threads."""

    def __post_init__(self) -> None:
        if not 1 <= self.games <= 100_000 or not 0 <= self.plies <= 42:
            raise InvalidSetting("--games must lie between 1 and 100,000, and --plies between 0 and 42")


def main(argv: list[str]) -> None:
    config = parse(FirstPlayer, argv)
    package = games.load("connect4")
    kernels = Kernels(package.game)
    settings = f"simulations={config.simulations},temperature={config.temperature},temperature_plies={config.plies}"
    net, solver = (
        open_contestant(text, package, seed=config.seed, threads=config.threads)
        for text in (f"{config.net}@{settings}", "solver")
    )
    states, to_play = kernels.start_states(config.games), np.zeros(config.games, np.int8)
    moves = [""] * config.games
    results: Counter[int] = Counter()
    going = np.arange(config.games)
    with Progress("games against the solver") as progress:
        for ply in range(package.game.max_plies):
            player = solver if ply % 2 else net
            actions = player.select_actions(states[going], going, np.full(len(going), ply))
            played, movers = states[going], to_play[going]
            kernels.play(played, movers, actions)
            states[going], to_play[going] = played, movers
            for game, action in zip(going, actions, strict=True):
                moves[game] += str(action + 1)
            _, terminal, values = kernels.describe_all(played)
            for value, mover in zip(values[terminal], movers[terminal], strict=True):
                results[int(value) if mover == 0 else -int(value)] += 1
            going = going[~terminal]
            progress.show(
                1 - len(going) / config.games, f"{len(going)} of {config.games} games go on after ply {ply + 1}"
            )
            if not len(going):
                break
    low, high = score_interval(results[1], results[0], results[-1])
    print(
        f"{results[1]} wins, {results[0]} draws, {results[-1]} losses of the net in {config.games} games, "
        f"{len(set(moves))} of them different: score {(results[1] + results[0] / 2) / config.games:.1%} "
        f"(95% interval {low:.1%} to {high:.1%})"
    )


if __name__ == "__main__":
    sys.exit(run_command(main))
