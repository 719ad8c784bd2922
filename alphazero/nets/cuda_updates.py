"""Updates of a network on a GPU, replayed as one CUDA graph.

An update is some thousand short kernels, and Python takes longer to send them than a GPU to run them.
"""

from __future__ import annotations

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

    def __init__(self, update: Update, device: torch.device):
        self._update = update
        self._device = device
        self._rate, self._share = (torch.zeros((), device=device) for _ in range(2))
        self._size = self._seen = 0
        self._inputs: list[Tensor] = []
        self._results: Sequence[Tensor] = ()
        self._replay: Callable[[], None] | None = None
        self._fails = False

    def __call__(self, batch: Batch, learning_rate: float, share: float, replays: bool) -> Sequence[Tensor]:
        """The update's results; with `replays`, by a graph once there is one."""
        self._rate.fill_(learning_rate)
        self._share.fill_(share)
        arrays = batch.observations, batch.legal_masks, batch.policy_targets, batch.value_targets
        tensors = [torch.as_tensor(array, device=self._device) for array in arrays]
        if len(batch.value_targets) != self._size:
            self._size, self._seen, self._replay = len(batch.value_targets), 0, None
        self._seen += 1
        if replays and self._replay is None and self._seen > BEFORE and not self._fails:
            self._capture(tensors)
        if not replays or self._replay is None:
            return self._update(Batch(*tensors), self._rate, self._share)
        for mine, new in zip(self._inputs, tensors, strict=True):
            mine.copy_(new)
        self._replay()
        return [result.clone() for result in self._results]  # the next replay writes into the same memory

    def _capture(self, tensors: Sequence[Tensor]) -> None:
        self._inputs = [tensor.clone() for tensor in tensors]

        def launch() -> None:
            self._results = self._update(Batch(*self._inputs), self._rate, self._share)

        try:
            self._replay = captured(launch)
        except Exception as error:  # torch and CUDA raise many kinds
            self._fails, self._inputs, self._results = True, [], ()
            reason = "its memory is full" if is_out_of_memory(error) else quote(str(error), 200)
            logger.warning(
                "this network's updates cannot be replayed as a graph of the GPU, and take longer: %s", reason
            )


def captured(launch: Callable[[], None]) -> Callable[[], None]:
    """Everything that `launch` sends to the GPU, to be sent again by one call; nothing is done yet."""
    with CAPTURING:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            launch()
    return graph.replay
