"""Checks the arithmetic of `python -m benchmarks.gpu` without a GPU: run by test_gpu_benchmark.py.

The search on the GPU runs in numba's simulator, the processor's memory stands for the GPU's, and all sizes are small.
Every clock is planted, and the work is counted where it is done: visits at the roots, samples that the trainer gets,
positions that self-play searches. Each figure must be the count over the planted seconds.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from alphazero.commands.shared import run_command
from alphazero.nets.torch_net import TorchCudaEvaluator, TorchNet
from alphazero.search.cuda_search import CudaSearch
from alphazero.search.mcts import Search
from benchmarks import gpu

RAW = 1000.0
"""Planted: evaluations a second for each position of a call."""
TICK = 3.0
"""Planted: seconds between two looks at the clock."""
TREES = 4

done = {"simulations": 0, "samples": 0, "positions": 0}
"""Work counted so far."""
timed: list[tuple[float, dict[str, int]]] = []
"""For each work that was timed, the planted seconds and the counts."""
visits: dict[type, list[np.ndarray]] = {Search: [], CudaSearch: []}
"""The root visits of every search by the network."""


def count_visits(kind: Any) -> None:
    run = kind.run

    def counted(self: Any, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> Any:
        found = run(self, states, games, plies)
        done["simulations"] += int(found.visit_counts.sum())
        if not isinstance(self.evaluate, gpu.Free):
            visits[kind].append(found.visit_counts.copy())
        return found

    kind.run = counted


def count_samples() -> None:
    make = TorchNet.trainer

    def trainer(self: TorchNet) -> Any:
        made = make(self)
        step = made.train_step

        def counted(batch: Any, learning_rate: float) -> Any:
            done["samples"] += len(batch.observations)
            return step(batch, learning_rate)

        made.train_step = counted  # type: ignore[method-assign]
        return made

    TorchNet.trainer = trainer  # type: ignore[method-assign]


def count_positions() -> None:
    play = gpu.play_games

    def counted(workers: Any, *arguments: Any) -> Any:
        played = play(workers, *arguments)
        done["positions"] += sum(worker.num_positions for worker in workers)
        return played

    gpu.play_games = counted


def planted_seconds(work: Callable[[], Any], repeats: int = 1) -> float:
    before = dict(done)
    work()
    timed.append((2.0 + len(timed), {name: done[name] - before[name] for name in done}))
    return timed[-1][0]


def stand_in_for_a_gpu() -> None:
    torch.cuda.is_available = lambda: True
    torch.cuda.empty_cache = lambda: None
    TorchNet.use_device = lambda self, name: None  # type: ignore[method-assign]
    TorchNet.cuda_evaluator = lambda self: TorchCudaEvaluator(self)  # type: ignore[method-assign]
    gpu.batches_on = lambda device, source, draws, threads: source.batches(draws)
    # one launch at a time in the simulator
    gpu.make_evaluators = lambda kernels, net, count, size: [TorchCudaEvaluator(net)]
    gpu.ceilings = lambda options: {}  # nothing but a GPU's own figures
    gpu.NETS, gpu.SIMULATIONS, gpu.USUAL, gpu.USUAL_BATCH = {"5x64": (1, 4)}, (4, 8), 4, 16
    gpu.BATCHES, gpu.UPDATE_SIZES, gpu.UPDATES = (8, 16), (64, 128), 3
    gpu.count_cores = lambda: 1


def check(figures: dict[str, Any], flops: float) -> None:
    expected: dict[str, Any] = {"trees_on_gpu": True, "search_batch": TREES}
    for batch in gpu.BATCHES:
        expected[f"evaluations_per_s_5x64_{batch}"] = RAW * batch
        expected[f"network_flops_per_s_5x64_{batch}"] = RAW * batch * flops
    of_searches, of_updates = timed[: 3 * len(gpu.SIMULATIONS)], timed[3 * len(gpu.SIMULATIONS) :]
    for number, by_gpu, by_kernels, by_processor in zip(
        gpu.SIMULATIONS, of_searches[::3], of_searches[1::3], of_searches[2::3], strict=True
    ):
        for _, counts in (by_gpu, by_kernels, by_processor):
            assert counts["simulations"] in range(TREES * (number - 1), TREES * number + 1), (
                "what was timed is a search"
            )
        rate, share = TREES * number / by_gpu[0], by_kernels[0] / by_gpu[0]
        expected |= {
            f"simulations_per_s_{number}": rate,
            f"simulations_over_raw_{number}": rate / (RAW * TREES),
            f"share_of_kernels_{number}": share,
            f"share_of_gaps_{number}": 1 - share - rate / (RAW * TREES),
            f"simulations_per_s_{number}_trees_on_processor": TREES * number / by_processor[0],
        }
    expected[f"self_play_positions_per_s_{gpu.USUAL}"] = done["positions"] / TICK
    cases = itertools.product(("gpu", "processor"), gpu.UPDATE_SIZES)
    for (where, size), (seconds, counts) in zip(cases, of_updates, strict=True):
        assert counts["samples"] == gpu.UPDATES * size
        expected[f"learner_samples_per_s_{size}_batches_on_{where}"] = counts["samples"] / seconds
    assert figures == pytest.approx(expected)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        line = ["--game", "tictactoe", "--batch", str(TREES), "--json", str(file)]
        if code := run_command(gpu.main, line):
            return code
        figures = json.loads(file.read_text())
    _, net = gpu.open_net(SimpleNamespace(game="tictactoe"), "5x64")
    check(figures, net.card["flops_per_position"])
    assert len(visits[CudaSearch]) == len(visits[Search]) == len(gpu.SIMULATIONS)
    for on_gpu, on_processor in zip(visits[CudaSearch], visits[Search], strict=True):
        assert np.array_equal(on_gpu, on_processor), "both engines search alike"
    print("all equal")
    return 0


if __name__ == "__main__":
    stand_in_for_a_gpu()
    count_visits(Search)
    count_visits(CudaSearch)
    count_samples()
    count_positions()
    ticks = itertools.count(0.0, TICK)
    gpu.seconds = planted_seconds
    gpu.time = SimpleNamespace(perf_counter=lambda: next(ticks))  # type: ignore[assignment]
    gpu.rate_on_device = lambda kernels, evaluate, size: RAW * size
    gpu.learning = lambda options: {}
    sys.exit(main())
