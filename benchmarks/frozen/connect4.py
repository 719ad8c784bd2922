"""Makes Connect Four positions with the exact score of every column, for measuring policies and values.

The frozen set, `games/connect4/data/labelled.npz`, has about 7,000 positions from games between players who mostly play
perfectly and sometimes at random. All are distinct, also up to mirroring, spread over plies 0 to 35, and *decisive*:
some legal action keeps the best outcome and some other does not. There the best outcome is never a loss, so values are
measured on a second set: one random child of each position, with wins, draws and losses as they come.
`python -m benchmarks.frozen.connect4` makes it anew: minutes, and the same file every time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from alphazero.commands.shared import parse, run_command
from alphazero.game.kernels import kernels_of
from alphazero.players.baselines import NO_SCORE
from alphazero.storage.arrays import write_npz
from benchmarks.frozen import LabelConfig, canonical_keys, take
from games.connect4.benchmark import FOLDER, MAX_PLY
from games.connect4.solver import GAME, Solver

NUM_POSITIONS = 7000
POSITIONS_PER_PLY = 240
"""The most positions of one ply in the frozen set; the first few plies have fewer."""
GAMES_PER_ROUND = 256
EPSILONS = (0.1, 0.2, 0.3, 0.5)
"""Shares of random moves; each game draws one of these."""


def decisive(column_scores: np.ndarray) -> np.ndarray:
    """`bool[n]`: not all legal actions have the same outcome; of `int8[n, 7]`."""
    legal = column_scores != NO_SCORE
    outcomes = np.sign(column_scores)
    return (legal & (outcomes != outcomes.max(axis=1, initial=-1, where=legal, keepdims=True))).any(axis=1)


def main(argv: list[str], folder: Path = FOLDER, count: int = NUM_POSITIONS, seed: int = 0) -> None:
    solver = Solver(parse(LabelConfig, argv).threads)
    found = take(decisive_positions(seed, solver), count, "labelled positions")
    found.sort(key=lambda item: (len(item[0]), item[0]))
    actions = np.full((len(found), MAX_PLY), -1, np.int8)
    for row, (played, _) in enumerate(found):
        actions[row, : len(played)] = played
    scores = np.array([row for _, row in found])
    children = _pick_children(actions, scores, np.random.default_rng([seed, 1]))
    path = folder / "labelled.npz"
    write_npz(path, {"actions": actions, "column_scores": scores, "children": children})
    print(f"{len(found)} positions in {path}, {path.stat().st_size:,} bytes")


def decisive_positions(seed: int, solver: Solver) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Distinct decisive positions, `(actions, column scores int8[7])`, from one game after the other."""
    rng = np.random.default_rng(seed)
    kernels = kernels_of(GAME)
    seen: set[tuple[int, ...]] = set()
    counts = np.zeros(MAX_PLY + 1, np.int64)
    while True:
        states, alive = kernels.start_states(GAMES_PER_ROUND), np.arange(GAMES_PER_ROUND)
        epsilons = rng.choice(EPSILONS, GAMES_PER_ROUND)
        played: list[tuple[int, ...]] = [()] * GAMES_PER_ROUND
        for ply in range(MAX_PLY + 1):
            scores = solver.column_scores_all(states)
            keys = canonical_keys(kernels, states)
            for row in np.flatnonzero(decisive(scores)):
                if keys[row] not in seen and counts[ply] < POSITIONS_PER_PLY:
                    seen.add(keys[row])
                    counts[ply] += 1
                    yield played[alive[row]], scores[row]
            at_random = rng.random(len(states)) < epsilons[alive]
            choices = np.where(at_random[:, None], scores != NO_SCORE, scores == scores.max(axis=1, keepdims=True))
            actions = (choices * rng.random(choices.shape)).argmax(axis=1)
            for game, action in zip(alive, actions, strict=True):
                played[game] = (*played[game], int(action))
            kernels.play(states, np.zeros(len(states), np.int8), actions)
            going_on = ~kernels.describe_all(states)[1]
            states, alive = states[going_on], alive[going_on]


def _pick_children(actions: np.ndarray, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """`int8[n]`: for each position an action, picked at random, after which the game goes on; -1 if there is none."""
    plies = (actions >= 0).sum(axis=1)
    ends = (scores == ((43 - plies) // 2)[:, None]) | (plies == 41)[:, None]
    choices = (scores != NO_SCORE) & ~ends
    picked = (choices * rng.random(choices.shape)).argmax(axis=1)
    return np.where(choices.any(axis=1), picked, -1).astype(np.int8)


if __name__ == "__main__":
    sys.exit(run_command(main))
