"""The memory of a long run on Linux: how many pools of free memory the C library keeps, and what it gives back."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

ARENA_MAX = -8
"""M_ARENA_MAX of mallopt(3), as are the next two M_TRIM_THRESHOLD and M_MMAP_THRESHOLD."""
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
MOST_FREE = 1 << 30
"""Bytes at the end of a pool that stay with the process."""
LARGEST_OF_POOL = 32 << 20
"""Bytes of the largest block that a pool gives; glibc itself goes as far."""


def limit_arenas(count: int) -> None:
    """Lets the C library keep at most `count` pools of free memory (arenas), unless MALLOC_ARENA_MAX says how many.

    By default glibc has eight for each core. Every generation begins new threads, each of which gets any of them, so
    all slowly fill with holes that nothing fits into. Does nothing with other C libraries.
    """
    if "MALLOC_ARENA_MAX" not in os.environ and hasattr(_library(), "mallopt"):
        _library().mallopt(ARENA_MAX, count)


def keep_free_memory() -> None:
    """Lets the C library keep what is free until `return_free_memory`, unless MALLOC_TRIM_THRESHOLD_ is set.

    By default glibc gives it back at once, so that every layer of a network that learns writes to new pages, each of
    which the system clears first: a twelfth of the time of learning. Does nothing with other C libraries.
    """
    if "MALLOC_TRIM_THRESHOLD_" not in os.environ and hasattr(_library(), "mallopt"):
        _library().mallopt(TRIM_THRESHOLD, MOST_FREE)
        _library().mallopt(MMAP_THRESHOLD, LARGEST_OF_POOL)  # the threshold above ends its growing by itself


def return_free_memory() -> None:
    """Gives the system the pages that are free, after work that took many for a moment; some milliseconds.

    Does nothing with other C libraries than glibc.
    """
    if hasattr(_library(), "malloc_trim"):
        _library().malloc_trim(ctypes.c_size_t(0))


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(None) if os.name == "posix" else None
