"""How many threads share Python's lock: the model by hand and by simulation, and workers of both kinds in a run."""

from __future__ import annotations

import heapq
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game.kernels import Kernels
from alphazero.search.mcts import SearchConfig
from alphazero.training import workers
from alphazero.training.selfplay.threads import LEAST_EFFICIENCY, share_under_lock, speedup, threads_that_pay
from tests.training.test_workers import expect_equal, run


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.9, 1.0])
def test_two_threads_by_hand(share: float):
    """Mean value analysis for two: the second finds the first at the lock with probability `share`."""
    assert speedup(share, 1) == 1
    assert speedup(share, 2) == pytest.approx(2 / (1 + share * share))
    assert (speedup(0.0, 64), speedup(1.0, 64)) == pytest.approx((64, 1))


@pytest.mark.parametrize(("share", "threads"), [(0.05, 4), (0.2, 8), (0.5, 3)])
def test_the_model_against_a_simulation(share: float, threads: int):
    """Threads that compute for a random time, then queue for the lock: their rate over a long time."""
    rng = np.random.default_rng(0)
    free_at, done, now = 0.0, 0, 0.0
    ready = [(rng.exponential(1 - share), i) for i in range(threads)]
    heapq.heapify(ready)
    while done < 30_000:
        now, thread = heapq.heappop(ready)
        free_at = max(now, free_at) + rng.exponential(share)
        done += 1
        heapq.heappush(ready, (free_at + rng.exponential(1 - share), thread))
    assert done / now == pytest.approx(speedup(share, threads), rel=0.03)


def test_the_most_threads_that_pay():
    assert threads_that_pay(0.0, 16) == 16
    assert threads_that_pay(1.0, 16) == 1
    count = threads_that_pay(0.1, 64)
    assert 1 < count <= 10, "the lock alone ends the gain at 1 / 0.1"
    assert speedup(0.1, count) >= LEAST_EFFICIENCY * count
    assert speedup(0.1, count + 1) < LEAST_EFFICIENCY * (count + 1)


def test_the_lock_matters_less_beside_a_slow_network():
    kernels = Kernels(registry.load("tictactoe").game)
    share = share_under_lock(kernels, SearchConfig(), 16, network_rate=1e3)
    assert 0 <= share < 0.1, "a step of 16 milliseconds, of which the trees take a few hundredths"


def test_workers_of_both_kinds_play_the_games_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    threads = run(tmp_path / "threads", ["cpu"], generations=1)
    monkeypatch.setattr(workers, "FEW", 1)
    monkeypatch.setattr(workers, "share_under_lock", lambda *arguments: 1.0)
    started, start = list[int](), workers.LocalWorkers._start_process
    monkeypatch.setattr(workers.LocalWorkers, "_start_process", lambda self, i: (started.append(i), start(self, i))[1])
    both = run(tmp_path / "both", ["cpu"], generations=1)
    assert started == [1], "the second worker is a process, the first is not"
    expect_equal(threads, both)
