"""The memory of a long run on Linux: how many pools of free memory the C library keeps, and what it gives back."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

ARENA_MAX = -8
"""M_ARENA_MAX of mallopt(3)."""


def limit_arenas(count: int) -> None:
    """Lets the C library keep at most `count` pools of free memory (arenas), unless MALLOC_ARENA_MAX says how many.

    By default glibc has eight for each core. Every generation begins new threads, each of which gets any of them, so
    all slowly fill with holes that nothing fits into. Does nothing with other C libraries.
    """
    if "MALLOC_ARENA_MAX" not in os.environ and hasattr(_library(), "mallopt"):
        _library().mallopt(ARENA_MAX, count)


def return_free_memory() -> None:
    """Gives the system the pages that are free, after work that took many for a moment; some milliseconds.

    Does nothing with other C libraries than glibc.
    """
    if hasattr(_library(), "malloc_trim"):
        _library().malloc_trim(ctypes.c_size_t(0))


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(None) if os.name == "posix" else None
