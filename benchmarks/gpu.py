"""Measures all speeds on a GPU: `python -m benchmarks.gpu --json FILE`, in 9 minutes, or in 2 with `--quick`.

First what the GPU can do at best (copying, multiplying), then the network alone, the search around it, self-play and
learning, and at last a whole run until it plays well. Each figure is a median of repeats in this one process, so that
they can be compared.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from alphazero.catalogue import registry
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InvalidSetting
from alphazero.game.kernels import Kernels
from alphazero.machine import count_cores
from alphazero.nets.neural_net import CudaEvaluator, NeuralNet
from alphazero.nets.resnet import NetConfig
from alphazero.nets.torch_net import TorchNet
from alphazero.search.cuda_search import CudaSearch
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Search, SearchConfig
from alphazero.search.placement import make_evaluators, make_search, runs_on_cuda
from alphazero.settings import check_ranges
from alphazero.storage.files import check_output_file, write_json
from alphazero.training.config import SelfPlayConfig
from alphazero.training.replay_buffer import TrainingSet, batches_on
from alphazero.training.selfplay import SelfPlay, play_games
from alphazero.training.selfplay.calibration import rate_on_device
from benchmarks.search import random_states

NETS = {"5x64": (5, 64), "10x128": (10, 128)}
SIMULATIONS = 16, 64, 200, 800
USUAL = 64
"""Simulations of self-play, and of the only search that `--quick` measures."""
BATCHES = 256, 1024, 4096, 16384
USUAL_BATCH = 4096
UPDATE_SIZES = 512, 4096
UPDATES = 20
"""Updates that are timed together."""
REPEATS = 5


@dataclass(frozen=True)
class GpuBenchmark:
    """The GPU's ceilings, and how near network, search, self-play and learning come to them."""

    game: str = "connect4"
    """Game to search and to learn."""
    json: Path | None = None
    """Write the figures into this file as well."""
    quick: bool = False
    """Fewer sizes, and no learning: 2 minutes instead of 9."""
    batch: int = 4096
    """Trees searched at once."""
    minutes: float = 4.0
    """The run that learns is stopped after so many minutes."""

    def __post_init__(self) -> None:
        if self.json is not None:
            check_output_file("--json", self.json)
        check_ranges(self, batch=(1, math.inf), minutes=(1e-3, 1e5))


class Free(CudaEvaluator):
    """Answers nothing at all: what is left is the time of the kernels."""

    def __call__(self, planes: Any, legal_masks: Any, priors: Any, values: Any) -> None:
        pass


def main(argv: list[str]) -> None:
    options = parse(GpuBenchmark, argv)
    if not torch.cuda.is_available():
        raise InvalidSetting("benchmarks.gpu measures a GPU, and torch finds no CUDA device here")
    figures: dict[str, Any] = {}
    for part in (ceilings, network, search, self_play, learner, learning):
        begin = time.perf_counter()
        found = part(options)
        figures |= found
        for name, value in found.items():
            print(f"{name:44} {value:>18,.4g}" if isinstance(value, float) else f"{name:44} {value!s:>18}", flush=True)
        print(f"({part.__name__} took {time.perf_counter() - begin:.0f} s)", flush=True)
        if options.json:  # after each part, so that a machine that is taken away has not worked in vain
            write_json(options.json, figures)


def seconds(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    """The median time of `work`, the GPU's part included, after one more for warming up."""
    times = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


def ceilings(options: GpuBenchmark) -> dict[str, Any]:
    """The limits of the device: bytes read and written, and bf16 operations, per second."""
    source = torch.empty(1 << 28, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    matrix = torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda")
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "copy_bytes_per_s": 2.0 * source.nbytes / seconds(lambda: target.copy_(source)),
        "bf16_flops_per_s": 2.0 * 8192**3 / seconds(lambda: matrix @ matrix),
    }


def open_net(options: GpuBenchmark, name: str) -> tuple[Kernels, TorchNet]:
    loaded = registry.load(options.game)
    torch.manual_seed(0)
    net = loaded.make_net(loaded.game, asdict(NetConfig(*NETS[name])))
    assert isinstance(net, TorchNet)
    net.use_device("cuda")
    return Kernels(loaded.game), net


def network(options: GpuBenchmark) -> dict[str, Any]:
    """Evaluations a second of the network alone, as a graph, and the share of the bf16 ceiling that they use."""
    figures: dict[str, Any] = {}
    for name in list(NETS)[: 1 if options.quick else 2]:
        kernels, net = open_net(options, name)
        for batch in (USUAL_BATCH,) if options.quick else BATCHES:
            rate = rate_on_device(kernels, on_device(net), batch)
            figures[f"evaluations_per_s_{name}_{batch}"] = rate
            figures[f"network_flops_per_s_{name}_{batch}"] = rate * net.card["flops_per_position"]
    return figures


def on_device(net: TorchNet) -> CudaEvaluator:
    """The network for a search on the GPU."""
    evaluate = net.cuda_evaluator()
    assert evaluate is not None
    return evaluate


def search(options: GpuBenchmark) -> dict[str, Any]:
    """Simulations a second with the trees on the GPU, and on the processor; where the time goes."""
    kernels, net = open_net(options, "5x64")
    states = random_states(kernels, min(options.batch, 256))
    states = np.tile(states, (-(-options.batch // len(states)), 1))[: options.batch]
    raw = rate_on_device(kernels, on_device(net), options.batch)
    figures: dict[str, Any] = {"trees_on_gpu": runs_on_cuda(kernels, net), "search_batch": options.batch}
    for simulations in (USUAL,) if options.quick else SIMULATIONS:
        config = SearchConfig(num_simulations=simulations)
        if figures["trees_on_gpu"]:
            figures |= figures_of_trees_on_gpu(kernels, net, config, states, raw)
        few = states[: max(1, 64 * options.batch // simulations)]  # or the long searches would take minutes
        name = f"simulations_per_s_{simulations}_trees_on_processor"
        figures[name] = rate_of_trees_on_processor(kernels, net, config, few, count_cores())
    return figures


def figures_of_trees_on_gpu(
    kernels: Kernels, net: TorchNet, config: SearchConfig, states: np.ndarray, raw: float
) -> dict[str, Any]:
    """Simulations a second; and where the time goes: over `raw`, the network's own rate, they are its share."""
    numbers, simulations, took = np.arange(len(states)), config.num_simulations, {}
    for name, answer in (("search", on_device(net)), ("kernels", Free())):
        searcher = CudaSearch(kernels, config, answer, len(states))
        took[name] = seconds(lambda searcher=searcher: searcher.run(states, numbers, numbers * 0), 3)  # type: ignore[misc]
        del searcher
        torch.cuda.empty_cache()
    rate, share_of_kernels = len(states) * simulations / took["search"], took["kernels"] / took["search"]
    return {
        f"simulations_per_s_{simulations}": rate,
        f"simulations_over_raw_{simulations}": rate / raw,
        f"share_of_kernels_{simulations}": share_of_kernels,
        f"share_of_gaps_{simulations}": 1 - share_of_kernels - rate / raw,
    }


def rate_of_trees_on_processor(
    kernels: Kernels, net: NeuralNet, config: SearchConfig, states: np.ndarray, threads: int
) -> float:
    """Simulations a second of searches side by side, one on each thread, which ask the network on the GPU."""
    parts = np.array_split(states, min(threads, len(states)))
    searches = [make_search(kernels, config, Evaluator(kernels, net, 0), len(part)) for part in parts]

    def run(searcher: Search | CudaSearch, part: np.ndarray) -> None:
        numbers = np.arange(len(part))
        searcher.run(part, numbers, numbers * 0)

    with ThreadPoolExecutor(len(parts), initializer=net.use_threads, initargs=(1,)) as pool:
        whole = seconds(lambda: list(pool.map(run, searches, parts)), 1)
    return config.num_simulations * len(states) / whole


def self_play(options: GpuBenchmark) -> dict[str, Any]:
    """Positions a second of whole games, as a run plays them."""
    kernels, net = open_net(options, "5x64")
    evaluators = make_evaluators(kernels, net, 2, 1 << 20)
    config = SearchConfig(num_simulations=USUAL)
    slots = max(1, options.batch // len(evaluators))
    workers = [
        SelfPlay(kernels, SelfPlayConfig(), config, evaluate, slots, 0, i, len(evaluators))
        for i, evaluate in enumerate(evaluators)
    ]
    begin = time.perf_counter()
    play_games(workers, max(1, options.batch // (4 if options.quick else 1)), net.use_threads)
    positions = sum(worker.num_positions for worker in workers)
    return {f"self_play_positions_per_s_{USUAL}": positions / (time.perf_counter() - begin)}


def learner(options: GpuBenchmark) -> dict[str, Any]:
    """Samples a second that the network learns from, with batches made on the GPU and on the processor."""
    kernels, net = open_net(options, "5x64")
    rng, figures, trainer = np.random.default_rng(0), {}, net.trainer()
    states = np.tile(random_states(kernels, 256), (64, 1))
    policies = np.full((len(states), kernels.game.num_actions), 1 / kernels.game.num_actions, np.float32)
    window = TrainingSet(kernels, states, policies, rng.uniform(-1, 1, len(states)).astype(np.float32))
    for where, device in (("gpu", "cuda"), ("processor", "cpu")):
        for size in UPDATE_SIZES:

            def update(device: str = device, size: int = size) -> None:
                for batch in batches_on(device, window, window.draws(size, UPDATES, rng), count_cores()):
                    trainer.train_step(batch, 1e-3)

            figures[f"learner_samples_per_s_{size}_batches_on_{where}"] = UPDATES * size / seconds(update)
    return figures


def learning(options: GpuBenchmark) -> dict[str, Any]:
    """Seconds from the start of `main.py` until the policy alone has 85, 90 and 95% of the game's benchmark."""
    if options.quick or registry.load(options.game).make_benchmark is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learning.json"
        command = [
            sys.executable, "-m", "benchmarks.learning", "--game", options.game, "--preset", "standard", "--seeds", "1",
            "--until", "0.85,0.90,0.95", "--minutes", str(options.minutes), "--json", str(path),
        ]  # fmt: skip
        subprocess.run(command, check=True)
        found = json.loads(path.read_text())
    return {"seconds_until": json.dumps(found["seconds_until"])}


if __name__ == "__main__":
    sys.exit(run_command(main))
