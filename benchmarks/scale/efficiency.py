"""Measures what a cluster costs on this machine: one worker and two of them beside threads without a cluster.

Nearly nothing is learned meanwhile, so the cores belong to self-play. What counts is the whole time from one generation
to the next, in which workers play on while the coach saves. One worker, thread or process has one core for everything,
coach and Ray included; two have two cores. Processes that know nothing of each other show what the second core is worth
to anybody: cores share their memory, and often more.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from alphazero.catalogue import registry
from alphazero.cluster.ray_cluster import RayCluster
from alphazero.errors import InputError
from alphazero.machine import count_cores
from alphazero.training.config import EvaluationConfig, RunConfig
from alphazero.training.run import train
from benchmarks.scale.costs import play_together

GENERATIONS, WARM_UP = 5, 2
ALONE_SECONDS = 20.0
"""Of each measurement of processes without a run."""


def compare(game_name: str, config: RunConfig, rounds: int) -> str:
    """Positions a second, medians of some rounds in turns, as a table; raises InputError where that cannot be."""
    if count_cores() < 2:
        raise InputError("--efficiency compares one core with two: run it on a machine with two cores or more")
    config = replace(
        config, generations=GENERATIONS, minutes=0.0, evaluation=EvaluationConfig(opponents=()),
        gate=replace(config.gate, enabled=False), learner=replace(config.learner, sample_reuse=0.05),
    )  # fmt: skip
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for cores in (1, 2):
            for name, measure, arguments in (
                (
                    f"{cores} process{'es' * (cores > 1)} alone",
                    play_together,
                    (game_name, config, cores, ALONE_SECONDS),
                ),
                (f"--threads {cores}", positions_per_s, (game_name, config, cores, False)),
                (f"--cluster-workers {cores}", positions_per_s, (game_name, config, cores, True)),
            ):
                found.setdefault(name, []).append(on_cores(cores, measure, *arguments))
    rates = {name: median(values) for name, values in found.items()}
    lines = [f"{name:<22} {rate:8,.0f} positions/s   ({', '.join(f'{value:,.0f}' for value in found[name])})"
             for name, rate in rates.items()]  # fmt: skip
    processes = rates["2 processes alone"] / rates["1 process alone"]
    workers = rates["--cluster-workers 2"] / rates["--cluster-workers 1"]
    lines.append(
        f"from one core to two: workers {workers:.3f}, processes {processes:.3f}; workers gain {workers / 2:.1%} of "
        f"twice, {workers / processes:.1%} of what the machine allows"
    )
    lines.append(f"two workers and two threads: {rates['--cluster-workers 2'] / rates['--threads 2'] - 1:+.1%}")
    return "\n".join(lines)


def on_cores(count: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the function in a new process that has so many cores, as have all processes that it starts.

    Raises InputError where processes cannot be pinned to cores.
    """
    if not hasattr(os, "sched_setaffinity"):
        raise InputError("this pins processes to cores, which this system cannot do: run it on Linux")
    cores = set(sorted(os.sched_getaffinity(0))[:count])
    with ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn"), initializer=os.sched_setaffinity, initargs=(0, cores)
    ) as pool:
        return pool.submit(function, *arguments).result()


def positions_per_s(game_name: str, config: RunConfig, number: int, on_a_cluster: bool) -> float:
    """Runs a training with so many threads, or workers of a new cluster; its positions a second after the warm-up.

    It has no more threads than cores.
    """
    loaded = replace(registry.load(game_name), make_benchmark=None)
    cluster = RayCluster("local", number, number) if on_a_cluster else None
    with tempfile.TemporaryDirectory() as folder:
        run = train(
            loaded, config, Path(folder) / "run", game_name=game_name, threads=min(number, count_cores()),
            cluster=cluster,
        )  # fmt: skip
        warm, *rows = run.metrics[WARM_UP - 1 :]
    return sum(row["positions"] for row in rows) / (rows[-1]["seconds"] - warm["seconds"])
