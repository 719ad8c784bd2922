"""Scores a player of 2048 by its games."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alphazero.game import Game
from alphazero.game.kernels import kernels_of
from alphazero.players.player import Player
from games.twenty48.game import NUM_CELLS, POINTS, TILES

GAMES, SEED = 64, 2048


def play(player: Player, game: Game, num_games: int, seed: int) -> np.ndarray:
    """The last states `uint64[num_games, K]` of games that the player plays side by side."""
    kernels, numbers = kernels_of(game), np.arange(num_games)
    states, to_play, plies = kernels.start_states(num_games), np.zeros(num_games, np.int8), np.zeros(num_games, int)
    kernels.roll(states, to_play, seed, numbers, plies)
    going = numbers
    while len(going := going[~kernels.describe_all(states[going])[1]]):
        now, movers = states[going], to_play[going]
        kernels.play(now, movers, player.select_actions(now, going, plies[going]))
        plies[going] += 1
        kernels.roll(now, movers, seed, going, plies[going])
        states[going] = now
    return states


def largest_tiles(states: np.ndarray) -> np.ndarray:
    """`int64[n]`: the largest number on each board."""
    exponents = (states[:, TILES, None] >> np.arange(0, 4 * NUM_CELLS, 4, dtype=np.uint64)) & np.uint64(15)
    return 1 << exponents.max(axis=1).astype(np.int64)


def make_benchmark(game: Game, games: int = GAMES) -> Callable[[Player], dict[str, float]]:
    """Gives the mean points of some games, always with the same dice, and the shares that reach 2048 and 4096."""

    def judge(player: Player) -> dict[str, float]:
        states = play(player, game, games, SEED)
        tiles = largest_tiles(states)
        return {
            "mean_points": float(states[:, POINTS].mean()),
            "reached_2048": float((tiles >= 2048).mean()),
            "reached_4096": float((tiles >= 4096).mean()),
        }

    return judge
