"""Memory, streams and graphs of a GPU, shared by torch and numba; and a stand-in for numba's simulator."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numba import config, cuda

from alphazero.nets.cuda_updates import CAPTURING, capture
from alphazero.search.tree import Memory

config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a match of few games is a small launch, and fast enough
SIMULATED = bool(config.ENABLE_CUDASIM)
"""Kernels run in numba's simulator (NUMBA_ENABLE_CUDASIM=1), as plain Python on the processor's memory."""


class CudaMemory(Memory):
    """Memory of the current GPU, used through one stream."""

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

    def part(self, words: Any, kind: np.dtype[Any], at: int) -> Any:
        return cuda.as_cuda_array(_View(words, kind, 4 * at, words.shape[:2], words.strides[:2]))

    def tail(self, words: Any, kind: np.dtype[Any], at: int) -> Any:
        return cuda.as_cuda_array(_View(words, kind, 4 * at, (words.size - at,), None))

    def wait(self) -> None:
        """Waits for the GPU; memory that is no longer used is freed."""
        self._torch.cuda.synchronize()
        self._torch.cuda.empty_cache()

    def free_bytes(self) -> int:
        """Free memory in bytes."""
        return int(self._torch.cuda.mem_get_info()[0])

    @contextlib.contextmanager
    def stream(self) -> Iterator[Any]:
        """Inside, torch and the kernels use this stream; gives numba's object for it."""
        with self._torch.cuda.stream(self._stream):
            yield self._numba_stream

    def write(self, array: Any, rows: np.ndarray, stream: Any) -> None:
        """Copies `rows` to the beginning of an array on the GPU."""
        source = np.ascontiguousarray(rows, array.dtype)
        self._sources.append(source)  # must stay until it is copied
        array[: len(rows)].copy_to_device(source, stream=stream)

    def read(self, arrays: Sequence[Any], count: int, stream: Any) -> list[np.ndarray]:
        """Copies of the first `count` rows of each array; waits until they have arrived."""
        found = [array[:count].copy_to_host(stream=stream) for array in arrays]
        stream.synchronize()
        self._sources.clear()
        return found

    def captured(self, launch: Callable[[], None]) -> Callable[[], None]:
        """Everything that `launch` sends to the stream, as one graph without calls of Python or the driver in between.

        `launch` is called a few times first, so that it has compiled everything.
        """
        with CAPTURING:
            with self.stream() as stream:
                for _ in range(3):
                    launch()
                stream.synchronize()
            return capture(launch, self._stream)


def open_cuda() -> CudaMemory | SimulatedMemory:
    """The memory of the current GPU, or of the simulator."""
    return SimulatedMemory() if SIMULATED else CudaMemory()


class _View:
    """A view of an array on the GPU, from byte `at` on, for `as_cuda_array`.

    numba's own slicing makes a Python object for every row, which takes half a minute for a large tree.
    """

    def __init__(self, words: Any, kind: np.dtype[Any], at: int, shape: tuple[int, ...], strides: Any):
        self.words = words  # keeps the memory
        whole = words.__cuda_array_interface__
        self.__cuda_array_interface__ = whole | {
            "shape": shape, "strides": strides, "typestr": kind.str, "data": (whole["data"][0] + at, False)
        }  # fmt: skip


class SimulatedMemory(Memory):
    """The processor's memory in place of a GPU's, for numba's simulator."""

    def wait(self) -> None:
        """Returns at once: nothing runs in the background."""

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
