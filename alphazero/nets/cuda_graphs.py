"""CUDA graphs: what a function sends to a GPU, to be sent again by one call."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import torch

CAPTURING = threading.Lock()
"""Only one graph can be captured at a time."""


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
