"""The memory of a long run on Linux: how many pools of free memory the C library keeps."""

from __future__ import annotations

import ctypes
import os

ARENA_MAX = -8
"""M_ARENA_MAX of mallopt(3)."""


def limit_arenas(count: int) -> None:
    """Lets the C library keep at most `count` pools of free memory (arenas), unless MALLOC_ARENA_MAX says how many.

    By default glibc has eight for each core. Every generation begins new threads, each of which gets any of them, so
    all slowly fill with holes that nothing fits into. Does nothing with other C libraries.
    """
    if os.name == "posix" and "MALLOC_ARENA_MAX" not in os.environ:
        library = ctypes.CDLL(None)
        if hasattr(library, "mallopt"):
            library.mallopt(ARENA_MAX, count)
