"""Makes Othello endgames with the exact score of every move, for measuring moves and values.

The frozen sets, `endgames_8.npz` and `endgames_6.npz` in `games/othello/data`, have 2,000 positions each with 10 to 14
empty squares, one from a game between players who look two plies ahead and now and then play at random. All are
distinct, also up to symmetry, and in each some move is better than another.
`python -m benchmarks.frozen.othello` makes both anew: a minute, and the same files every time.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from alphazero.catalogue import registry
from alphazero.commands.shared import parse, run_command
from alphazero.game.kernels import kernels_of
from alphazero.players.baselines import NO_SCORE, MinimaxPlayer, RandomPlayer
from alphazero.storage.arrays import write_npz
from benchmarks.frozen import LabelConfig, canonical_keys, take
from games.othello.benchmark import FOLDER
from games.othello.game import Othello
from games.othello.solver import Solver

NUM_POSITIONS = 2000
NAMES = "othello", "othello6"
EMPTY_SQUARES = range(10, 15)
EPSILONS = (0.05, 0.1, 0.2, 0.4)
"""Shares of random moves; each game draws one of these."""
GAMES_PER_ROUND = 500


def main(argv: list[str], folder: Path = FOLDER, count: int = NUM_POSITIONS, names: Sequence[str] = NAMES) -> None:
    threads = parse(LabelConfig, argv).threads
    for name in names:
        game = registry.load(name).game
        assert isinstance(game, Othello)
        found = take(endgames(game, threads), count, f"labelled positions of {name}")
        path = folder / f"endgames_{game.size}.npz"
        states, scores = (np.array(part) for part in zip(*found, strict=True))
        write_npz(path, {"states": states, "scores": scores})
        print(f"{len(found)} positions in {path}, {path.stat().st_size:,} bytes")


def endgames(game: Othello, threads: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Distinct positions `(uint64[2], scores int8[A])` in which some move is better than another."""
    kernels, solver, rng = kernels_of(game), Solver(game, threads), np.random.default_rng(0)
    seen: set[tuple[int, ...]] = set()
    for seed in itertools.count():
        states = play_until_endgame(game, rng, seed, threads)
        keys = canonical_keys(kernels, states)
        scores = solver.move_scores(states)
        worst = np.where(scores == NO_SCORE, 100, scores).min(axis=1)
        for row in np.flatnonzero(worst < scores.max(axis=1)):
            if keys[row] not in seen:
                seen.add(keys[row])
                yield states[row], scores[row]


def play_until_endgame(game: Othello, rng: np.random.Generator, seed: int, threads: int) -> np.ndarray:
    """States `uint64[n, 2]`, each of a game of its own that goes on with 10 to 14 empty squares."""
    kernels = kernels_of(game)
    states, to_play = kernels.start_states(GAMES_PER_ROUND), np.zeros(GAMES_PER_ROUND, np.int8)
    wanted = rng.choice(EMPTY_SQUARES, GAMES_PER_ROUND)
    epsilons = rng.choice(EPSILONS, GAMES_PER_ROUND)
    careful, careless = MinimaxPlayer(kernels, 2, seed, threads), RandomPlayer(kernels, seed)
    numbers = np.arange(GAMES_PER_ROUND)
    for ply in range(game.max_plies):
        _, terminal, _ = kernels.describe_all(states)
        going_on = ~terminal & (game.size**2 - np.bitwise_count(states).sum(axis=1) > wanted)
        if not going_on.any():
            break
        at_random = rng.random(GAMES_PER_ROUND) < epsilons
        for player, rows in ((careful, going_on & ~at_random), (careless, going_on & at_random)):
            if rows.any():
                played, movers = states[rows], to_play[rows]
                actions = player.select_actions(played, numbers[rows], np.full(len(played), ply))
                kernels.play(played, movers, actions)
                states[rows], to_play[rows] = played, movers
    return states[~kernels.describe_all(states)[1]]


if __name__ == "__main__":
    sys.exit(run_command(main))
