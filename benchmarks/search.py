"""Measures the search beside the network alone: `python -m benchmarks.search --game connect4 --net 5x64`.

The measurements take turns in one run, so that they can be compared although the machine's speed varies. Each figure
is the median of `--repeats`.
"""

from __future__ import annotations

import math
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from alphazero.catalogue import registry
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InvalidSetting
from alphazero.game.kernels import Kernels
from alphazero.nets.devices import want_inference, wanted_inference
from alphazero.nets.neural_net import NeuralNet
from alphazero.nets.resnet import NetConfig
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Evaluate, Search, SearchConfig
from alphazero.settings import check_ranges
from alphazero.storage.files import write_json
from alphazero.training.config import SelfPlayConfig
from alphazero.training.replay_buffer import Samples
from alphazero.training.selfplay import SelfPlay, play_games

PARTS = 8
"""Parts in which self-play is measured; the network alone is measured between them."""
FREE_SEARCHES = 60
"""Searches of all positions in each measurement with a network that costs nothing."""
FIRST_SEARCH = """
import sys, numpy as np
from alphazero.catalogue import registry
from alphazero.search.evaluator import Evaluator
from alphazero.game.kernels import Kernels
from alphazero.search.mcts import Search, SearchConfig
loaded = registry.load(sys.argv[1])
kernels, zero = Kernels(loaded.game), np.zeros(1, np.int64)
evaluate = Evaluator(kernels, loaded.make_net(loaded.game, {}))
Search(kernels, SearchConfig(num_simulations=16), evaluate, 1).run(kernels.start_states(1), zero, zero)
"""


@dataclass(frozen=True)
class SearchBenchmark:
    """Network evaluations per second, alone and under the search; simulations per second; memory; start-up time."""

    game: str = "connect4"
    """Game to search."""
    net: str = "5x64"
    """Blocks x channels of the network; "free" measures only the search with a network that costs nothing."""
    inference: str = field(default_factory=wanted_inference)
    """The library that answers for the network: auto (the fastest here), torch, openvino or winograd."""
    batch: int = 256
    """Trees on each thread, and positions in each network call."""
    simulations: int = 64
    """Simulations per ply."""
    threads: int = 1
    """Threads, each with trees of its own."""
    games: int = 0
    """Self-play games measured; 0 = one and a half for each tree."""
    repeats: int = 5
    """Repetitions of each short measurement."""
    json: Path | None = None
    """Write the figures into this file as well."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d{1,3}x\d{1,4}|free", self.net):
            raise InvalidSetting(f"--net takes blocks x channels, such as 5x64, or free, not {self.net!r}")
        want_inference(self.inference)
        check_ranges(
            self, batch=(1, math.inf), simulations=(1, math.inf), threads=(1, math.inf), repeats=(1, math.inf),
            games=(0, math.inf),
        )  # fmt: skip


def main(argv: list[str]) -> None:
    options = parse(SearchBenchmark, argv)
    figures = measure_free(options) if options.net == "free" else measure(options)
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:{width}}  {value:>14,.2f}" if isinstance(value, float) else f"{name:{width}}  {value:>14}")
    if options.json:
        write_json(options.json, figures)


def measure(options: SearchBenchmark) -> dict[str, Any]:
    """All figures by name."""
    loaded = registry.load(options.game)
    game, kernels = loaded.game, Kernels(loaded.game)
    blocks, channels = map(int, options.net.split("x"))
    torch.manual_seed(0)
    net = loaded.make_net(game, asdict(NetConfig(blocks=blocks, channels=channels)))
    library = net.use_inference(options.inference)
    states = random_states(kernels, options.batch)
    masks, _, _ = kernels.describe_all(states)
    observations = kernels.observations(states)
    count = options.batch * options.threads
    config = SearchConfig(num_simulations=options.simulations)
    uncached = [searcher(options, kernels, Evaluator(kernels, net, 0)) for _ in range(options.threads)]
    free_searches = [searcher(options, kernels, free_answers(masks)) for _ in range(options.threads)]
    with ThreadPoolExecutor(options.threads, initializer=net.use_threads, initargs=(1,)) as pool:

        def rate(actions: list[Callable[[], Any]], units: int) -> float:
            return units / seconds_of(pool, actions)

        raw = [lambda: [net.evaluate(observations, masks) for _ in range(8)]] * options.threads
        rates: dict[str, list[float]] = {"raw": [], "uncached": [], "free": []}
        for repeat in range(options.repeats + 1):
            found = (
                rate(raw, 8 * count),
                rate(uncached, count * options.simulations),
                rate(free_searches, count * options.simulations),
            )
            if repeat:  # the first round compiles and warms up
                for values, value in zip(rates.values(), found, strict=True):
                    values.append(value)
        cached, positions, evaluations, raw_then = self_play_rates(
            options, kernels, net, config, lambda: statistics.median(rate(raw, 8 * count) for _ in range(3))
        )
    middle = {name: statistics.median(values) for name, values in rates.items()}
    return {
        "game": options.game, "net": options.net, "batch": options.batch, "simulations": options.simulations,
        "threads": options.threads, "inference": library,
        "raw_evaluations_per_s": middle["raw"],
        "simulations_per_s_uncached": middle["uncached"],
        "uncached_over_raw": statistics.median(
            a / b for a, b in zip(rates["uncached"], rates["raw"], strict=True)
        ),
        "simulations_per_s_cached": cached,
        "cached_over_raw": cached / raw_then,
        "self_play_evaluations_per_s": evaluations,
        "self_play_positions_per_s": positions,
        "simulations_per_s_free": middle["free"],
        "first_search_s": first_search_seconds(options),
        "peak_memory_mb": peak_memory_mb(),
    }  # fmt: skip


def measure_free(options: SearchBenchmark) -> dict[str, Any]:
    """The search with a network that costs nothing: on one thread, on all, and how they share Python's lock."""
    kernels = Kernels(registry.load(options.game).game)
    masks, _, _ = kernels.describe_all(random_states(kernels, options.batch))
    searches = [searcher(options, kernels, free_answers(masks)) for _ in range(options.threads)]
    each = FREE_SEARCHES * options.batch * options.simulations
    rates = []
    with ThreadPoolExecutor(options.threads) as pool:
        actions = [lambda search=search: [search() for _ in range(FREE_SEARCHES)] for search in searches]
        seconds_of(pool, actions)  # compiles and warms up
        for _ in range(options.repeats):
            one, all_together = seconds_of(pool, actions[:1]), seconds_of(pool, actions)
            rates.append((each / one, len(actions) * each / all_together))
    alone, together = (statistics.median(values) for values in zip(*rates, strict=True))
    return {
        "game": options.game, "batch": options.batch, "simulations": options.simulations, "threads": options.threads,
        "simulations_per_s_free_alone": alone,
        "simulations_per_s_free": together,
        "free_speedup": statistics.median(b / a for a, b in rates),
        "most_simulations_per_s_free_alone": max(a for a, _ in rates),
        "most_simulations_per_s_free": max(b for _, b in rates),
    }  # fmt: skip


def free_answers(legal_masks: np.ndarray) -> Evaluate:
    """An `evaluate` that costs nothing, for up to as many positions as `legal_masks bool[n, A]` has."""
    ones, zeros = np.ones(legal_masks.shape, np.float32), np.zeros(len(legal_masks), np.float32)
    return lambda states, legal_masks: (ones[: len(states)], zeros[: len(states)])


def searcher(options: SearchBenchmark, kernels: Kernels, evaluate: Evaluate) -> Callable[[], None]:
    """A function that searches the same positions at each call."""
    search = Search(kernels, SearchConfig(num_simulations=options.simulations), evaluate, options.batch)
    search.evaluate = evaluate  # functions are checked at each step, networks in their own time
    states, numbers = random_states(kernels, options.batch), np.arange(options.batch)

    def run() -> None:
        search.run(states, numbers, numbers * 0)

    return run


def seconds_of(pool: ThreadPoolExecutor, actions: Sequence[Callable[[], Any]]) -> float:
    """Seconds until all actions, each on a thread of its own, are over."""
    begin = time.perf_counter()
    for future in [pool.submit(action) for action in actions]:
        future.result()
    return time.perf_counter() - begin


def peak_memory_mb() -> float:
    """The most memory that this process has used; nan if the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def random_states(kernels: Kernels, count: int) -> np.ndarray:
    """`uint64[count, K]`: positions after a few random plies where a player is to move."""
    rng = np.random.default_rng(0)
    chosen: list[np.ndarray] = []
    while len(chosen) < count:
        position = kernels.game.start()
        for _ in range(int(rng.integers(0, max(1, kernels.game.max_plies // 4)))):
            if not position.terminal:
                position = position.play(int(rng.choice(position.legal_actions)))
        if not position.terminal and not position.chances:
            chosen.append(position.state)
    return np.array(chosen)


def self_play_rates(
    options: SearchBenchmark, kernels: Kernels, net: NeuralNet, config: SearchConfig, raw_rate: Callable[[], float]
) -> tuple[float, float, float, float]:
    """Simulations, positions and evaluations per second of whole self-play games from the start position.

    The last figure is the rate of the network alone, measured between the parts.
    """
    evaluators = [Evaluator(kernels, net) for _ in range(options.threads)]
    workers = [
        TimedSelfPlay(kernels, SelfPlayConfig(), config, evaluator, options.batch, 0, i, options.threads)
        for i, evaluator in enumerate(evaluators)
    ]
    SelfPlay(kernels, SelfPlayConfig(), config, Evaluator(kernels, net), options.batch, 1).play(1)  # compiles
    wanted = options.games or 3 * options.batch * options.threads // 2
    raw = [raw_rate()]
    for part in range(PARTS):
        share = wanted * (part + 1) // PARTS - wanted * part // PARTS
        play_games(workers, share, net.use_threads)
        raw.append(raw_rate())
    positions = sum(worker.num_positions / worker.seconds for worker in workers)
    evaluations = sum(e.num_evaluations / worker.seconds for e, worker in zip(evaluators, workers, strict=True))
    return positions * config.num_simulations, positions, evaluations, statistics.median(raw)


class TimedSelfPlay(SelfPlay):
    """Self-play that counts the seconds in which it plays.

    A thread whose games of a part are over sooner waits for the others. In a part of few games chance decides how long.
    """

    seconds = 0.0

    def play(self, *arguments: Any, **named: Any) -> Samples:
        begin = time.perf_counter()
        samples = super().play(*arguments, **named)
        self.seconds += time.perf_counter() - begin
        return samples


def first_search_seconds(options: SearchBenchmark) -> float:
    """Seconds that a fresh process needs to finish its first search with a network; compiled code is on disk."""
    times = []
    for _ in range(2):  # the first one may compile
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", FIRST_SEARCH, options.game], check=True)
        times.append(time.perf_counter() - begin)
    return times[-1]


if __name__ == "__main__":
    sys.exit(run_command(main))
