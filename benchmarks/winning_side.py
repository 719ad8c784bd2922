"""Does a net hold a won game? `python -m benchmarks.winning_side pretrained/connect4/best.safetensors`.

Connect Four is won for who begins, Othello on 6x6 squares for the other. The net plays that side from the start
position against a strong opponent. Games differ because the net draws its first plies by visits^(1/temperature),
because the opponent's first plies may be random (no move of the losing side gives the win away), and because the
opponent picks at random among equally good moves.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import tyro

from alphazero.catalogue import registry
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InvalidSetting, UnknownName
from alphazero.game import Game
from alphazero.game.kernels import kernels_of
from alphazero.machine import count_cores
from alphazero.matches.arena import Arena
from alphazero.matches.result import MatchResult
from alphazero.players.contestants import ContestantText, game_of, make_player
from alphazero.players.player import Player
from alphazero.progress import Progress
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
    name = game_of(ContestantText.parse(config.net))
    if name is None and not config.game:
        raise InvalidSetting(
            f"{config.net!r:.200} is not a net: give a checkpoint, a run folder, or a shipped net with --game"
        )
    loaded = registry.load(config.game) if config.game else registry.load_named(str(name), config.net)
    settings = f"simulations={config.simulations},temperature={config.temperature},temperature_plies={config.plies}"
    net, opponent, at_random = (
        make_player(text, loaded, seed=config.seed, threads=config.threads)
        for text in (f"{config.net}@{settings}", config.opponent, "random")
    )
    result = play(loaded.game, net, BeginsAtRandom(opponent, at_random, config.random_plies), config)
    low, high = result.score_interval
    print(
        f"{result.wins} wins, {result.draws} draws, {result.losses} losses of the net in {config.games} games, "
        f"{result.distinct_games} of them different: score {result.score:.1%} (95% interval {low:.1%} to {high:.1%})"
    )


def play(game: Game, net: Player, opponent: Player, config: WinningSide) -> MatchResult:
    """The games, whose even or odd numbers give the net its side."""
    with Progress("games from the start position") as progress:
        match = Arena(
            kernels_of(game), net, opponent, 2 * config.games, config.seed, opening_plies=0,
            numbers=range(SIDES.index(config.side), 2 * config.games, 2),
        )  # fmt: skip
        for result in match:
            progress.show(result.num_games / config.games, f"{result.num_games} are over")
        return match.result()


class BeginsAtRandom(Player):
    """A player whose first plies are those of another one."""

    def __init__(self, player: Player, at_random: Player, random_plies: int):
        self.name, self._player, self._at_random, self._plies = player.name, player, at_random, random_plies

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        actions, early = np.empty(len(states), np.int64), plies < self._plies
        for player, rows in ((self._at_random, early), (self._player, ~early)):
            if rows.any():
                actions[rows] = player.select_actions(states[rows], games[rows], plies[rows])
        return actions


if __name__ == "__main__":
    sys.exit(run_command(main))
