"""The memory of a long run on Linux: how many pools of free memory the C library keeps, and what it gives back."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

ARENA_MAX = -8
"""M_ARENA_MAX of mallopt(3)."""
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)."""
MOST_FREE = 1 << 30
"""Free bytes at the end of a pool that the process keeps."""
LARGEST_BLOCK = 32 << 20
"""Bytes of the largest block that a pool gives. glibc itself raises its threshold so far."""


def limit_arenas(count: int) -> None:
    """Lets the C library keep at most `count` pools of free memory (arenas), unless MALLOC_ARENA_MAX says how many.

    By default glibc has eight for each core. Every generation begins new threads, each of which gets any of them, so
    all slowly fill with holes that nothing fits into. Does nothing with other C libraries.
    """
    if "MALLOC_ARENA_MAX" not in os.environ and hasattr(_library(), "mallopt"):
        _library().mallopt(ARENA_MAX, count)


def keep_free_memory() -> None:
    """Lets the C library keep free memory until `return_free_memory`.

    By default glibc returns it at once, and each layer of a network that learns writes to new pages. The system clears
    every new page first: a twelfth of the time of learning. Does nothing if MALLOC_TRIM_THRESHOLD_ or
    MALLOC_MMAP_THRESHOLD_ is set, nor with other C libraries.
    """
    chosen = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"} & os.environ.keys()
    if not chosen and hasattr(_library(), "mallopt"):
        _library().mallopt(TRIM_THRESHOLD, MOST_FREE)
        _library().mallopt(MMAP_THRESHOLD, LARGEST_BLOCK)  # glibc no longer raises it once the other one is set


def return_free_memory() -> None:
    """Gives the system the pages that are free, after work that took many for a moment; some milliseconds.

    Does nothing with other C libraries than glibc.
    """
    if hasattr(_library(), "malloc_trim"):
        _library().malloc_trim(ctypes.c_size_t(0))


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(None) if os.name == "posix" else None
