"""How many games a GPU plays at once, without one: rates and memory are planted."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import DeviceMemoryError
from alphazero.game.kernels import Kernels
from alphazero.search import cuda_memory
from alphazero.search.cuda_memory import SimulatedMemory
from alphazero.search.cuda_search import room_for
from alphazero.search.mcts import SearchConfig
from alphazero.search.placement import as_many_as_fit
from alphazero.search.tree import Memory
from alphazero.training.selfplay import calibration
from alphazero.training.selfplay.calibration import bytes_of_tree, calls_per_second, choose_slots

CONFIG = SearchConfig(num_simulations=8)


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(registry.load("connect4").game)


def plant(monkeypatch, rates: dict[int, float], free: float = 1e12) -> list[int]:
    """Rates by size; larger sizes do not fit. Returns the sizes that were tried."""
    tried = []

    def rate(kernels, evaluate, size):
        tried.append(size)
        if size not in rates:
            raise DeviceMemoryError(f"no room for {size}: choose a smaller net")
        return rates[size]

    device = SimpleNamespace(free_bytes=lambda: int(free), wait=lambda: None)
    for module in (calibration, cuda_memory):
        monkeypatch.setattr(module, "open_cuda", lambda: device)
    monkeypatch.setattr(calibration, "rate_on_device", rate)
    return tried


@pytest.mark.parametrize(
    ("rates", "most", "chosen"),
    [
        ({64: 10, 128: 20, 256: 39, 512: 60, 1024: 62, 2048: 63}, 2048, 512),  # 60 is over 0.9 * 63, 39 is not
        ({64: 10, 128: 20, 256: 39}, 4096, 256),  # 512 does not fit
        ({64: 10, 100: 18}, 100, 100),
        ({7: 3}, 7, 7),
        ({16: 3}, 4096, 16),  # 64 and 32 do not fit
        ({1: 3}, 5, 1),
    ],
)
def test_the_fewest_games_that_keep_the_gpu_busy(kernels, monkeypatch, rates, most, chosen):
    plant(monkeypatch, rates)
    assert choose_slots(kernels, None, CONFIG, 2, most) == chosen


def test_a_gpu_that_holds_nothing_is_said(kernels, monkeypatch, caplog):
    tried = plant(monkeypatch, {})
    with pytest.raises(DeviceMemoryError, match="no room for 1: choose a smaller net"):
        choose_slots(kernels, None, CONFIG, 2, 4096)
    assert tried == [64, 32, 16, 8, 4, 2, 1] and "no room for 64; going on with half of them" in caplog.text


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


def test_trees_get_half_of_the_free_memory(kernels, monkeypatch):
    each = bytes_of_tree(kernels, CONFIG)
    tried = plant(monkeypatch, {64: 10, 128: 20, 200: 30}, free=2 * 2 * 200 * each)
    assert choose_slots(kernels, None, CONFIG, 2, 4096) == 200 and tried == [64, 128, 200]


@pytest.mark.parametrize("name", ["connect4", "othello6", "pig"])
def test_the_bytes_are_those_of_all_arrays(name):
    kernels = Kernels(registry.load(name).game)

    class Counter(Memory):
        """Allocates nothing and counts the bytes."""

        num_bytes = 0

        def zeros(self, shape, kind):
            self.num_bytes += math.prod(shape) * np.dtype(kind).itemsize
            return np.zeros((0,) * len(shape), kind)

        def part(self, words, kind, at):
            return words

        tail = part

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
