"""Where a search runs: on the GPU if its network answers there, else on the processor.

The CUDA modules are imported once a network is on a GPU, so a search on the processor never loads them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from alphazero.errors import DeviceMemoryError
from alphazero.game.kernels import Kernels
from alphazero.machine import count_cores
from alphazero.nets.neural_net import CudaEvaluator, NeuralNet
from alphazero.progress import say
from alphazero.search import cpu_kernels
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Evaluate, Search, SearchConfig
from alphazero.storage.kernel_cache import needs_compiling

if TYPE_CHECKING:
    from alphazero.search.cuda_search import CudaSearch

Made = TypeVar("Made")
logger = logging.getLogger(__name__)


def make_search(
    kernels: Kernels, config: SearchConfig, evaluate: Evaluate | CudaEvaluator, num_trees: int, seed: int = 0
) -> Search | CudaSearch:
    """A search on the GPU if `evaluate` answers there, else on the processor."""
    if isinstance(evaluate, CudaEvaluator):
        from alphazero.search.cuda_search import CudaSearch

        return CudaSearch(kernels, config, evaluate, num_trees, seed)
    return on_processor(kernels, config, evaluate, num_trees, seed)


def on_processor(kernels: Kernels, config: SearchConfig, evaluate: Evaluate, num_trees: int, seed: int = 0) -> Search:
    """A search on the processor. If the search is to be compiled for this machine first, that is said, once.

    Another process compiles the kernels of the roots meanwhile: numba compiles on one thread at a time.
    """
    if _compiling or not needs_compiling(cpu_kernels.read_roots):
        return Search(kernels, config, evaluate, num_trees, seed)
    _compiling.append(True)
    say("compiling the search for this machine, once: about 20 seconds")
    other = None
    if count_cores() > 1 and sys.executable:
        path = os.pathsep.join((str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])))
        program = "from alphazero.search.mcts import compile_roots; compile_roots()"
        command = [sys.executable, "-P", "-c", program]  # -P: no module of the current folder is imported
        null = subprocess.DEVNULL
        with contextlib.suppress(OSError):  # no process can be started, as where memory is short
            other = subprocess.Popen(
                command, stdin=null, stdout=null, stderr=null, env=os.environ | {"PYTHONPATH": path}
            )
    try:
        return Search(kernels, config, evaluate, num_trees, seed)
    except BaseException:
        if other:
            other.kill()
        raise
    finally:
        if other:
            other.wait()


_compiling: list[bool] = []
"""Whether this process has said that it compiles."""


def make_evaluators(
    kernels: Kernels, net: NeuralNet, threads: int, cache_size: int
) -> Sequence[Evaluator | CudaEvaluator]:
    """The evaluators of a network, one for each search that runs beside the others.

    On the GPU, if the network is there and the rules compile for it, there are two: one searches while the host plays
    the moves that the other found. On the processor there is one for each of `threads`, with a cache of `cache_size`
    entries.
    """
    if runs_on_cuda(kernels, net):
        return [evaluate for _ in range(2) if (evaluate := net.cuda_evaluator())]
    return [Evaluator(kernels, net, cache_size, sees_wins=True) for _ in range(threads)]


_tried: WeakKeyDictionary[NeuralNet, WeakKeyDictionary[Kernels, bool]] = WeakKeyDictionary()
"""The nets that were on a GPU, and the games whose search could or could not be set up with them."""


def runs_on_cuda(kernels: Kernels, net: NeuralNet) -> bool:
    """The network is on a GPU and a search of the game can be set up there; logs once why not, if it cannot."""
    evaluate = net.cuda_evaluator() if kernels.game.compiled else None
    if evaluate is None:
        return False
    tried = _tried.setdefault(net, WeakKeyDictionary())
    if kernels not in tried:
        try:
            make_search(kernels, SearchConfig(num_simulations=1), evaluate, 1)
            tried[kernels] = True
        except Exception as error:  # numba raises many kinds
            tried[kernels] = False
            logger.warning(
                "the search of %s cannot be set up on the GPU; its trees stay on the processor, and the network on the "
                "GPU: %s", kernels.game.name, " ".join(str(error).split())[:300],
            )  # fmt: skip
    return tried[kernels]


def as_many_as_fit(make: Callable[[int], Made], count: int) -> tuple[Made, int]:
    """Returns `(make(n), n)` for the largest n of count, count / 2, ... that the GPU's memory allows."""
    while True:
        try:
            return make(count), count
        except DeviceMemoryError as error:
            if count == 1:
                raise
            logger.warning("%s; going on with half of them", str(error).split(":")[0])
        from alphazero.search.cuda_memory import open_cuda

        open_cuda().wait()  # until here the error holds what was made
        count = (count + 1) // 2
