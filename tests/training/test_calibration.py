"""How many games a GPU plays at once, without one: its memory is planted."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import DeviceMemoryError
from alphazero.game.kernels import Kernels
from alphazero.search.cuda_memory import SimulatedMemory
from alphazero.search.cuda_search import room_for
from alphazero.search.mcts import SearchConfig
from alphazero.search.placement import as_many_as_fit
from alphazero.search.tree import Memory
from alphazero.training.selfplay import calibration
from alphazero.training.selfplay.calibration import bytes_of_tree, calls_per_second, games_in_memory

CONFIG = SearchConfig(num_simulations=8)


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(registry.load("connect4").game)


def test_no_memory_for_the_networks_answers_is_said_in_a_sentence(kernels, monkeypatch):
    """However the GPU's libraries call it."""

    def captured(launch):
        raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")

    device = SimulatedMemory()
    monkeypatch.setattr(device, "captured", captured)
    monkeypatch.setattr(calibration, "open_cuda", lambda: device)
    monkeypatch.setattr(calibration, "make_buffers", lambda *arguments: None)
    with pytest.raises(DeviceMemoryError, match=r"1,024 positions at once: .*net.channels.*device='cpu'"):
        calibration.rate_on_device(kernels, None, 1024)


@pytest.mark.parametrize(("free", "most", "games"), [(400, 4096, 100), (400, 64, 64), (3, 64, 1)])
def test_trees_get_half_of_the_free_memory(kernels, monkeypatch, free, most, games):
    """Of two searches each gets a half of that; `free`: so many trees."""
    free *= bytes_of_tree(kernels, CONFIG)
    monkeypatch.setattr(calibration, "open_cuda", lambda: SimpleNamespace(free_bytes=lambda: free))
    assert games_in_memory(kernels, CONFIG, 2, most) == games


@pytest.mark.parametrize("name", ["connect4", "othello6"])
def test_the_bytes_are_those_of_all_arrays(name):
    kernels = Kernels(registry.load(name).game)

    class Counter(Memory):
        """Allocates nothing and counts the bytes."""

        num_bytes = 0

        def zeros(self, shape, kind):
            self.num_bytes += math.prod(shape) * np.dtype(kind).itemsize
            return np.zeros((0,) * len(shape), kind)

        def part(self, array, at):
            return array

    fewer, more = Counter(), Counter()
    for count, counter in ((3, fewer), (4, more)):
        room_for(kernels, CONFIG, count, counter)
    assert bytes_of_tree(kernels, CONFIG) == more.num_bytes - fewer.num_bytes


def test_a_search_that_does_not_fit_is_halved_until_it_does(caplog, monkeypatch):
    monkeypatch.setattr("alphazero.search.cuda_memory.open_cuda", lambda: SimpleNamespace(wait=lambda: None))

    def make(count):
        if count > 10:
            raise DeviceMemoryError(f"no room for {count}: choose fewer")
        return "made"

    assert as_many_as_fit(make, 100) == ("made", 7)  # 100, 50, 25, 13, 7
    assert caplog.text.count("going on with half") == 4
    with pytest.raises(DeviceMemoryError):
        as_many_as_fit(lambda count: make(11), 3)


def test_calls_are_counted_by_the_clock(monkeypatch):
    """Planted: a call takes 0.02 s."""
    now = [0.0]
    monkeypatch.setattr(calibration.time, "perf_counter", lambda: now[0])

    def call_often(count):
        now[0] += 0.02 * count

    assert calls_per_second(call_often) == pytest.approx(50)
