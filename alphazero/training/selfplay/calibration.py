"""Before the clock of a run starts: compiles all, and measures the network and how many games a GPU should play."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from alphazero.errors import DeviceMemoryError, is_out_of_memory
from alphazero.game.kernels import Kernels
from alphazero.invocation import option
from alphazero.matches.openings import choose_openings
from alphazero.nets.neural_net import CudaEvaluator, NeuralNet
from alphazero.players.net_players import make_net_player
from alphazero.search.cuda_kernels import make_buffers
from alphazero.search.cuda_memory import open_cuda
from alphazero.search.cuda_search import room_for
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import SearchConfig
from alphazero.search.placement import as_many_as_fit, runs_on_cuda
from alphazero.search.tree import HOST
from alphazero.training.config import SelfPlayConfig
from alphazero.training.health import count_positions
from alphazero.training.selfplay.games import SelfPlay

SMALLEST = 64
"""Games at once in the first try; each next try has twice as many."""
GOOD_ENOUGH = 0.9
"""Take the fewest games that reach this share of top speed; more only delay each move."""
SHARE = 0.5
"""Share of the free memory for the trees: learning and matches need some too."""
SECONDS = 0.05
"""Duration of a measurement, which is made three times."""
CHUNK = 64
"""Positions per network call on the processor."""


def bytes_of_tree(kernels: Kernels, config: SearchConfig) -> int:
    """Memory that each further tree of a search takes."""

    def size(num_trees: int) -> int:
        blocks = {}
        for array in itertools.chain(*room_for(kernels, config, num_trees, HOST)):
            while array.base is not None:  # it is a part of another one
                array = array.base
            blocks[id(array)] = array
        return sum(block.nbytes for block in blocks.values())

    return size(2) - size(1)


def choose_slots(kernels: Kernels, evaluate: CudaEvaluator, config: SearchConfig, num_searches: int, most: int) -> int:
    """The fewest games at once for each of `num_searches` with which the GPU's network is nearly at its top speed."""
    device = open_cuda()
    fitting = int(SHARE * device.free_bytes()) // (num_searches * bytes_of_tree(kernels, config))
    most = max(1, min(most, fitting))
    rate, first = as_many_as_fit(lambda size: rate_on_device(kernels, evaluate, size), min(SMALLEST, most))
    rates = {first: rate}
    larger = [SMALLEST << i for i in range(1, 32) if SMALLEST << i < most] + [most]
    for size in larger if first == SMALLEST < most else ():
        try:
            rates[size] = rate_on_device(kernels, evaluate, size)
        except DeviceMemoryError:
            break
    return next(size for size, rate in rates.items() if rate >= GOOD_ENOUGH * max(rates.values()))


def rate_on_device(kernels: Kernels, evaluate: CudaEvaluator, size: int) -> float:
    """Positions per second on the GPU, in calls of `size`, each replayed as a graph. Raises DeviceMemoryError."""
    device = open_cuda()
    try:
        work = make_buffers(kernels, size, 1, 1, device)
        ask = device.captured(lambda: evaluate(work.planes, work.asked_masks, work.answers, work.values))
    except Exception as error:
        if not is_out_of_memory(error):
            raise
        raise DeviceMemoryError(
            f"the GPU's memory does not hold the network's evaluation of {size:,} positions at once: choose a "
            f"smaller net ({option('net.channels')}), close what else uses the GPU, or compute on the processor "
            f"({option('device', 'cpu')})"
        ) from error

    def ask_often(count: int) -> None:
        with device.stream() as stream:
            for _ in range(count):
                ask()
            device.read((work.values,), 1, stream)  # waits

    return size * calls_per_second(ask_often)


def rate_on_processor(kernels: Kernels, net: NeuralNet, threads: int) -> float:
    """Positions per second that the network evaluates on so many threads of the processor."""
    states = kernels.start_states(CHUNK)
    planes, (masks, _, _) = kernels.observations(states), kernels.describe_all(states)

    def ask_often(count: int) -> None:
        for _ in range(count):
            net.evaluate(planes, masks)

    with ThreadPoolExecutor(threads, initializer=net.use_threads, initargs=(1,)) as pool:
        return CHUNK * sum(pool.map(calls_per_second, [ask_often] * threads))


def calls_per_second(call_often: Callable[[int], None]) -> float:
    """The median of three measurements; `call_often(n)` makes n calls."""

    def seconds(count: int) -> float:
        begin = time.perf_counter()
        call_often(count)
        return time.perf_counter() - begin

    seconds(1)
    count = 1
    while seconds(count) < SECONDS:
        count *= 2
    return count / statistics.median(seconds(count) for _ in range(3))


def compile_all(kernels: Kernels, config: SelfPlayConfig, search: SearchConfig, net: NeuralNet) -> None:
    """Plays a game with few simulations and no network; asks the network, and chooses a move and an opening, once.

    What a run computes does not depend on it. Of a game whose rules run as plain Python, the search alone is compiled,
    and no game is played; a search on the GPU has compiled its code when it was made.
    """
    if runs_on_cuda(kernels, net):
        return
    quick = replace(search, num_simulations=2, leaves_per_step=1)
    states, zero = kernels.rolled_states(1), np.zeros(1, np.int64)
    make_net_player("", kernels, net, quick, seed=0, threads=1).select_actions(states, zero, zero)
    if not kernels.game.compiled:
        return
    shape = kernels.game.value_shape
    equal = lambda states, masks: (masks.astype(np.float32), np.zeros((len(states), *shape), np.float32))  # noqa: E731
    SelfPlay(kernels, config, quick, equal, 1, seed=0).play(1)
    masks, _, _ = kernels.describe_all(states)
    Evaluator(kernels, net, cache_size=4, sees_wins=True)(states, masks)
    choose_openings(kernels.game, 1, 0)
    count_positions(kernels)
