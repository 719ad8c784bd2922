"""Makes the 2,000 positions of tic-tac-mo's benchmark, `positions.npz` in `games/tictacmo/data`: a minute.

They come from random games, are distinct, also up to symmetry, and in each some move is better than another.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np

from alphazero.catalogue import registry
from alphazero.commands.shared import run_command
from alphazero.game.kernels import kernels_of
from alphazero.players.baselines import NO_SCORE
from alphazero.storage.arrays import write_npz
from benchmarks.frozen import canonical_keys, take
from games.tictacmo.benchmark import FILE
from games.tictacmo.game import SQUARES
from games.tictacmo.solver import exact_results

NUM_POSITIONS = 2000


def main(argv: list[str]) -> None:
    states, scores = (np.array(part) for part in zip(*take(labelled(), NUM_POSITIONS, "positions"), strict=True))
    FILE.parent.mkdir(exist_ok=True)
    write_npz(FILE, {"states": states, "scores": scores})
    print(f"{len(states)} positions in {FILE}, {FILE.stat().st_size:,} bytes")


def labelled() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Distinct positions `(uint64[3], scores float32[15])`, a random one of each random game."""
    game, rng = registry.load("tictacmo").game, np.random.default_rng(0)
    seen: set[tuple[int, ...]] = set()
    while True:
        history = [game.start()]
        while not history[-1].terminal:
            history.append(history[-1].play(int(rng.choice(history[-1].legal_actions))))
        position = history[int(rng.integers(len(history) - 1))]
        scores = np.full(SQUARES, NO_SCORE, np.float32)
        for action, result in exact_results(position).items():
            scores[action] = result.outcome
        (key,) = canonical_keys(kernels_of(game), position.state[None])
        if len(set(scores[position.legal_actions].tolist())) > 1 and key not in seen:
            seen.add(key)
            yield position.state, scores


if __name__ == "__main__":
    sys.exit(run_command(main))
