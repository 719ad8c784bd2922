"""Memory, streams and graphs of a GPU, shared by torch and numba; and the same faces in numba's simulator."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numba import config, cuda

from alphazero.search.tree import Memory

config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a match of few games is a small launch, and fast enough
CAPTURING = threading.Lock()
"""Only one graph can be captured at a time."""
SIMULATED = bool(config.ENABLE_CUDASIM)
"""Kernels run in numba's simulator (NUMBA_ENABLE_CUDASIM=1), as plain Python on the processor's memory."""


class CudaMemory(Memory):
    """The current GPU, seen through one stream of its own."""

    def __init__(self) -> None:
        import torch  # takes a second, which players without a network do not need

        self._torch = torch
        self._stream = torch.cuda.Stream()
        self._numba_stream = cuda.external_stream(self._stream.cuda_stream)
        self._sources: list[np.ndarray] = []

    def zeros(self, shape: tuple[int, ...], kind: Any) -> Any:
        """An array for numba's kernels in memory that torch manages; raises torch.OutOfMemoryError."""
        size = math.prod(shape) * np.dtype(kind).itemsize
        memory = self._torch.zeros(size, dtype=self._torch.uint8, device="cuda")
        self._torch.cuda.current_stream().synchronize()  # other streams use it from now on
        return cuda.as_cuda_array(memory).view(kind).reshape(shape)

    def part(self, array: Any, at: int | slice) -> Any:
        return cuda.as_cuda_array(_Part(array, at))

    def get_ready(self, work: Callable[[], None]) -> None:
        """Does `work` once, so that all is compiled and has its memory."""
        work()

    def wait(self) -> None:
        """Until all that was begun is done; memory that is not used any more is given back."""
        self._torch.cuda.synchronize()
        self._torch.cuda.empty_cache()

    def free_bytes(self) -> int:
        """Memory that nobody uses yet."""
        return int(self._torch.cuda.mem_get_info()[0])

    @contextlib.contextmanager
    def stream(self) -> Iterator[Any]:
        """What torch and the kernels do inside goes to this stream; gives numba's name for it."""
        with self._torch.cuda.stream(self._stream):
            yield self._numba_stream

    def write(self, array: Any, rows: np.ndarray, stream: Any) -> None:
        """Copies `rows` to the beginning of an array on the device."""
        source = np.ascontiguousarray(rows, array.dtype)
        self._sources.append(source)  # must stay until it is copied
        array[: len(rows)].copy_to_device(source, stream=stream)

    def read(self, arrays: Sequence[Any], count: int, stream: Any) -> list[np.ndarray]:
        """The first `count` rows of each array; waits until they are there."""
        found = [array[:count].copy_to_host(stream=stream) for array in arrays]
        stream.synchronize()
        self._sources.clear()
        return found

    def captured(self, launch: Callable[[], None]) -> Callable[[], None]:
        """What `launch` sends to the stream, as one graph: no call of Python or of the driver between its kernels.

        `launch` is called a few times first, so that whatever it compiles is there.
        """
        with CAPTURING:
            with self.stream() as stream:
                for _ in range(3):
                    launch()
                stream.synchronize()
            graph = self._torch.cuda.CUDAGraph()
            with self._torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
                launch()
        return graph.replay


def open_cuda() -> CudaMemory | SimulatedMemory:
    """The memory of the current GPU, or of the simulator."""
    return SimulatedMemory() if SIMULATED else CudaMemory()


class _Part:
    """`array[:, :, at]` of an array on the device, for `as_cuda_array`.

    numba's own slicing makes a Python object of every row: half a minute for a large tree.
    """

    def __init__(self, array: Any, at: int | slice):
        like = np.lib.stride_tricks.as_strided(np.empty(1, array.dtype), array.shape, array.strides)[:, :, at]
        first = at.start if isinstance(at, slice) else at
        whole = array.__cuda_array_interface__
        address = whole["data"][0] + first * array.strides[2]
        self.array = array  # keeps the memory
        self.__cuda_array_interface__ = whole | {
            "shape": like.shape, "strides": like.strides, "data": (address, False)
        }  # fmt: skip


class SimulatedMemory(Memory):
    """The same on the processor, for tests of the kernels."""

    def get_ready(self, work: Callable[[], None]) -> None:
        """Plain Python has nothing to compile."""

    def wait(self) -> None:
        """Nothing is ever under way."""

    def free_bytes(self) -> int:
        return 1 << 32

    def stream(self) -> contextlib.AbstractContextManager[int]:
        return contextlib.nullcontext(0)

    def write(self, array: Any, rows: np.ndarray, stream: Any) -> None:
        array[: len(rows)] = rows

    def read(self, arrays: Sequence[Any], count: int, stream: Any) -> list[np.ndarray]:
        return [array[:count].copy() for array in arrays]

    def captured(self, launch: Callable[[], None]) -> Callable[[], None]:
        return launch
