"""Measures what a cluster costs on this machine: one worker and two of them beside threads without a cluster.

Nearly nothing is learned meanwhile, so the cores belong to self-play. What counts is the whole time from one generation
to the next, in which workers play on while the coach saves. Two processes that know nothing of each other show what the
second core is worth to anybody: cores share their memory, and often more.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median

from alphazero.cluster.connection import Cluster
from alphazero.game import registry
from alphazero.game.spec import LoadedGame
from alphazero.training.config import EvaluationConfig, RunConfig
from alphazero.training.run import train
from benchmarks.scale.costs import play_together

GENERATIONS, WARM_UP = 5, 2
ALONE_SECONDS = 20.0
"""Of each measurement of processes without a run."""


def compare(game_name: str, config: RunConfig, rounds: int) -> str:
    """Positions a second, medians of some rounds in turns, as a table."""
    loaded = replace(registry.load(game_name), make_benchmark=None)
    config = replace(
        config, generations=GENERATIONS, minutes=0.0, evaluation=EvaluationConfig(opponents=()),
        gate=replace(config.gate, enabled=False), learner=replace(config.learner, sample_reuse=0.05),
    )  # fmt: skip
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for number in (1, 2):
            found.setdefault(f"{number} process{'es' * (number > 1)} alone", []).append(
                play_together(game_name, config, number, ALONE_SECONDS)
            )
            found.setdefault(f"--threads {number}", []).append(positions_per_s(loaded, game_name, config, number))
            cluster = Cluster("local", number, number)
            rate = positions_per_s(loaded, game_name, config, number, cluster)
            found.setdefault(f"--cluster-workers {number}", []).append(rate)
    rates = {name: median(values) for name, values in found.items()}
    lines = [f"{name:<22} {rate:8,.0f} positions/s   ({', '.join(f'{value:,.0f}' for value in found[name])})"
             for name, rate in rates.items()]  # fmt: skip
    processes = rates["2 processes alone"] / rates["1 process alone"]
    workers = rates["--cluster-workers 2"] / rates["--cluster-workers 1"]
    lines.append(
        f"from one worker to two {workers:.3f}, from one process to two {processes:.3f}: {workers / 2:.1%} of twice, "
        f"{workers / processes:.1%} of what the machine allows"
    )
    lines.append(f"two workers and two threads: {rates['--cluster-workers 2'] / rates['--threads 2'] - 1:+.1%}")
    return "\n".join(lines)


def positions_per_s(
    loaded: LoadedGame, game_name: str, config: RunConfig, threads: int, cluster: Cluster | None = None
) -> float:
    """Runs a training and returns its positions a second, after the first generations."""
    with tempfile.TemporaryDirectory() as folder:
        run = train(loaded, config, Path(folder) / "run", game_name=game_name, threads=threads, cluster=cluster)
        warm, *rows = run.metrics[WARM_UP - 1 :]
    return sum(row["positions"] for row in rows) / (rows[-1]["seconds"] - warm["seconds"])
