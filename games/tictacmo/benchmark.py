"""Scores a player on 2,000 positions that random play reaches, by their exact values.

Positions in which all actions bring the same are left out: nothing could be wrong there. They are frozen in
data/positions.npz, which `python -m benchmarks.frozen.tictacmo` makes anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from alphazero.game import Game
from alphazero.matches.judge import Judgement, Measure, ask
from alphazero.players.baselines import NO_SCORE
from alphazero.players.player import Player
from alphazero.storage.arrays import Array, read_npz
from games.tictacmo.game import SQUARES

FILE = Path(__file__).parent / "data" / "positions.npz"


def load_frozen() -> tuple[np.ndarray, np.ndarray]:
    """`states uint64[n, 3]`, and what each action brings the mover, `float32[n, 15]`; NO_SCORE if it is illegal."""
    expected = {"states": Array(np.uint64, ("n", 3)), "scores": Array(np.float32, ("n", SQUARES), NO_SCORE, 1.0)}
    arrays = read_npz(FILE, expected, max_bytes=1 << 20)
    return arrays["states"], arrays["scores"]


def make_benchmark(game: Game) -> Callable[[Player], dict[str, float]]:
    """Gives the share of positions in which a player plays one of the best actions, and what its actions give away."""
    states, scores = load_frozen()
    plies = np.bitwise_count(states).sum(axis=1, dtype=np.int64)

    def judge(player: Player) -> dict[str, float]:
        answer = ask(player, states, plies)
        losses = scores.max(axis=1) - scores[np.arange(len(scores)), answer.actions]
        measures = {"accuracy": Measure(losses == 0, plies), "loss": Measure(losses, plies)}
        return Judgement(measures).rounded("exact")

    return judge
