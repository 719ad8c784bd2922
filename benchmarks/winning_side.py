"""Does a net hold a won game? `python -m benchmarks.winning_side pretrained/connect4/best.safetensors`.

Connect Four is won for who begins, Othello on 6x6 squares for the other. The net plays that side from the start
position against a strong opponent. Games differ because the net draws its first plies by visits^(1/temperature),
because the opponent's first plies may be random (no move of the losing side gives the win away), and because the
opponent picks at random among equally good moves.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import tyro

from alphazero.commands.shared import parse, run_command
from alphazero.errors import InvalidSetting, UnknownName
from alphazero.game import registry
from alphazero.game.kernels import Kernels
from alphazero.matches.intervals import score_interval
from alphazero.players.contestants import game_of, open_contestant
from alphazero.players.player import Player
from alphazero.progress import Progress, count_cores
from alphazero.settings import check_ranges

SIDES = ("first", "second")


@dataclass(frozen=True)
class WinningSide:
    """A net, always on the winning side, from the start position."""

    net: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NET")]
    """A checkpoint, a run folder, or the name of a shipped net together with --game."""
    game: str = ""
    """The game; empty = the one on the net's card."""
    side: str = "first"
    """The net's: first or second."""
    opponent: str = "solver"
    """A contestant."""
    games: int = 50
    """Games to play."""
    simulations: int = 800
    """The net's simulations per ply."""
    temperature: float = 0.2
    """Temperature of the net's first plies."""
    plies: int = 4
    """Plies of a game in which the net draws at that temperature."""
    random_plies: int = 0
    """Plies of a game in which the opponent plays at random."""
    seed: int = 0
    """The same seed plays the same games."""
    threads: int = field(default_factory=count_cores)
    """Processor threads."""

    def __post_init__(self) -> None:
        if self.side not in SIDES:
            raise UnknownName("side", self.side, SIDES)
        check_ranges(
            self, games=(1, 100_000), simulations=(0, 1_000_000), temperature=(0, 100), plies=(0, math.inf),
            random_plies=(0, math.inf), seed=(0, (1 << 63) - 1), threads=(1, 1024),
        )  # fmt: skip


def main(argv: list[str]) -> None:
    config = parse(WinningSide, argv)
    name = game_of(config.net)
    if name is None and not config.game:
        raise InvalidSetting(
            f"{config.net!r:.200} is not a net: give a checkpoint, a run folder, or a shipped net with --game"
        )
    loaded = registry.load(config.game) if config.game else registry.load_named(str(name), config.net)
    settings = f"simulations={config.simulations},temperature={config.temperature},temperature_plies={config.plies}"
    net, opponent, at_random = (
        open_contestant(text, loaded, seed=config.seed, threads=config.threads)
        for text in (f"{config.net}@{settings}", config.opponent, "random")
    )
    results, num_different = play(Kernels(loaded.game), net, opponent, at_random, config)
    low, high = score_interval(results[1], results[0], results[-1])
    print(
        f"{results[1]} wins, {results[0]} draws, {results[-1]} losses of the net in {config.games} games, "
        f"{num_different} of them different: score {(results[1] + results[0] / 2) / config.games:.1%} "
        f"(95% interval {low:.1%} to {high:.1%})"
    )


def play(
    kernels: Kernels, net: Player, opponent: Player, at_random: Player, config: WinningSide
) -> tuple[Counter[int], int]:
    """Counts of games that the net won (1), drew (0) and lost (-1), and of different games."""
    states, to_play = kernels.start_states(config.games), np.zeros(config.games, np.int8)
    kernels.find_movers(states, to_play)
    moves: list[tuple[int, ...]] = [()] * config.games
    results: Counter[int] = Counter()
    going, own = np.arange(config.games), SIDES.index(config.side)
    with Progress("games from the start position") as progress:
        for ply in range(kernels.game.max_plies):
            actions = np.empty(len(going), np.int64)
            for player, rows in (
                (net, np.flatnonzero(to_play[going] == own)),
                (at_random if ply < config.random_plies else opponent, np.flatnonzero(to_play[going] != own)),
            ):
                if len(rows):
                    actions[rows] = player.select_actions(states[going[rows]], going[rows], np.full(len(rows), ply))
            played, movers = states[going], to_play[going]
            kernels.play(played, movers, actions)
            states[going], to_play[going] = played, movers
            for game, action in zip(going, actions, strict=True):
                moves[game] += (int(action),)
            _, terminal, values = kernels.describe_all(played)
            results.update(int(value) if mover == own else -int(value) for value, mover in zip(
                values[terminal], movers[terminal], strict=True
            ))  # fmt: skip
            going = going[~terminal]
            progress.show(
                1 - len(going) / config.games, f"{len(going)} of {config.games} games go on after ply {ply + 1}"
            )
            if not len(going):
                break
    return results, len(set(moves))


if __name__ == "__main__":
    sys.exit(run_command(main))
