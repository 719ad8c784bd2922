"""CUDA graphs: what a function sends to a GPU, sent again by one call, as the updates of a network that learns.

An update is many short kernels, and Python takes longer to send them than a GPU to run them.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from alphazero.errors import is_out_of_memory, quote
from alphazero.nets.neural_net import Batch

logger = logging.getLogger(__name__)

CAPTURING = threading.Lock()
"""Only one graph can be captured at a time."""
BEFORE = 3
"""Updates of batches of one size before their graph is captured: by then the libraries have chosen their kernels."""

Update = Callable[[Batch, Tensor, Tensor], Sequence[Tensor]]
"""Takes a batch, the learning rate and the share of the newest weights in their average; returns results."""


class CudaUpdates:
    """Calls an update, or replays what it did to the GPU.

    Arrays that the update changes must stay in their memory, and it must do the same for every batch of one size.
    """

    def __init__(self, device: torch.device):
        self._device = device
        self._rate, self._share = (torch.zeros((), device=device) for _ in range(2))
        self._size = self._seen = 0
        self._inputs: list[Tensor] = []
        self._results: Sequence[Tensor] = ()
        self._replay: Callable[[], None] | None = None
        self._fails = False

    def __call__(
        self, update: Update, batch: Batch, learning_rate: float, share: float, replays: bool
    ) -> Sequence[Tensor]:
        """The update's results; with `replays`, by a graph once there is one.

        Give the same update each time. It is not kept: a method would keep its trainer, and the memory of that, alive.
        """
        self._rate.fill_(learning_rate)
        self._share.fill_(share)
        if len(batch.value_targets) != self._size:
            self._size, self._seen, self._replay = len(batch.value_targets), 0, None
        self._seen += 1
        if replays and self._replay is None and self._seen > BEFORE and not self._fails:
            self._capture(update, batch)
        if not replays or self._replay is None:
            return update(batch, self._rate, self._share)
        for mine, new in zip(self._inputs, vars(batch).values(), strict=True):
            mine.copy_(torch.as_tensor(new))
        self._replay()
        return [result.clone() for result in self._results]  # the next replay writes into the same memory

    def _capture(self, update: Update, batch: Batch) -> None:
        try:
            self._inputs = [torch.as_tensor(array, device=self._device).clone() for array in vars(batch).values()]

            def launch() -> None:
                self._results = update(Batch(*self._inputs), self._rate, self._share)

            with CAPTURING:
                self._replay = capture(launch, torch.cuda.Stream(self._device))
        except Exception as error:  # torch and CUDA raise many kinds
            self._fails, self._inputs, self._results = True, [], ()
            reason = "the GPU's memory is full" if is_out_of_memory(error) else quote(str(error), 200)
            logger.warning("this network's updates cannot be replayed as a graph, and take longer: %s", reason)


def capture(launch: Callable[[], None], stream: torch.cuda.Stream) -> Callable[[], None]:
    """A function that sends to the GPU of `stream` all that `launch` sends there. Until it is called, nothing is done.

    Hold CAPTURING. Raises torch's error where `launch` cannot be captured, as where it waits for a result of the GPU.
    """
    with torch.cuda.device(stream.device):
        before, pool = torch.cuda.current_stream(), torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local"):
                launch()
        except Exception:
            # torch leaves the thread on the graph's stream, and until 2.12 its memory in the state of a capture, in
            # which it cannot be tidied up any more
            torch.cuda.set_stream(before)
            with contextlib.suppress(RuntimeError):
                torch._C._cuda_endAllocateToPool(torch.cuda.current_device(), pool)
            with contextlib.suppress(RuntimeError):
                torch._C._cuda_releasePool(torch.cuda.current_device(), pool)
            raise
    return graph.replay
