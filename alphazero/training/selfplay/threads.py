"""Finds how many threads play side by side before they wait for Python's lock; further workers are processes.

The model is a closed queueing network: each thread computes without the lock, then waits for it, holds it, and computes
again. Its exact solution is mean value analysis (Reiser and Lavenberg 1980). What the lock costs is measured, since
most of it is the time in which a waiting thread wakes up.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np

from alphazero.game.kernels import Kernels
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Search, SearchConfig

LEAST_EFFICIENCY = 0.8
"""Threads pay as long as each has this share of a lonely thread's speed."""
SIMULATIONS = 16
"""Simulations of each search that is timed."""
REPEATS = 5
SECONDS = 0.03
"""Time of each measurement on one thread."""


def speedup(share: float, threads: int) -> float:
    """The work of `threads` in the time in which one does 1, if each alone holds the lock for that share of its time.

    >>> round(speedup(0.1, 2), 3)  # 2 / (1 + 0.1^2)
    1.98
    """
    waiting, rate = 0.0, 0.0
    for count in range(1, threads + 1):
        answer = share * (1.0 + waiting)
        rate = count / (1.0 - share + answer)
        waiting = rate * answer
    return rate


def threads_that_pay(share: float, most: int) -> int:
    """The most threads, up to `most`, that each have `LEAST_EFFICIENCY` of a lonely thread's speed; at least 1."""
    count = 1
    while count < most and speedup(share, count + 1) >= LEAST_EFFICIENCY * (count + 1):
        count += 1
    return count


def share_under_lock(kernels: Kernels, config: SearchConfig, num_trees: int, network_rate: float) -> float:
    """The share of a step of self-play for which a thread holds or waits for the lock, `num_trees` in a step.

    `network_rate` positions a second are what the network answers for one thread. The lock's part is measured by one
    thread beside two with a network that costs nothing.
    """
    searches = [_search(kernels, config, num_trees) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        _seconds(pool, searches, 1)  # compiles
        count = max(1, math.ceil(SECONDS / _seconds(pool, searches[:1], 1)))
        times = [(_seconds(pool, searches[:1], count), _seconds(pool, searches, count)) for _ in range(REPEATS)]
    step = statistics.median(one for one, _ in times) / count / SIMULATIONS
    two = statistics.median(2 * one / both for one, both in times)
    share = math.sqrt(max(0.0, 2.0 / two - 1.0))  # the inverse of `speedup` for two threads
    return step * min(1.0, share) / (step + num_trees / network_rate)


def _search(kernels: Kernels, config: SearchConfig, num_trees: int) -> Callable[[], object]:
    net: Any = SimpleNamespace(  # answers at once
        evaluate=lambda planes, legal_masks: (legal_masks.astype(np.float32), np.zeros(len(planes), np.float32))
    )
    settings = SearchConfig(num_simulations=SIMULATIONS, gumbel_actions=config.gumbel_actions)
    search = Search(kernels, settings, Evaluator(kernels, net, 0, sees_wins=True), num_trees)
    states, numbers = kernels.start_states(num_trees), np.arange(num_trees)
    return lambda: search.run(states, numbers, numbers * 0)


def _seconds(pool: ThreadPoolExecutor, actions: Sequence[Callable[[], object]], count: int) -> float:
    """Seconds until each action has been done `count` times, each on a thread of its own."""

    def do(action: Callable[[], object]) -> None:
        for _ in range(count):
            action()

    begin = time.perf_counter()
    list(pool.map(do, actions))
    return time.perf_counter() - begin
