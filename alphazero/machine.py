"""The machine as this process has it: cores and memory, also of a container, and the C library's free memory.

And what all threads of the process share: warnings and random numbers, which one thread at a time may change.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

CGROUP, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
"""Files that tell the limits of control groups, as containers and jobs have them, and the groups of this process, on
Linux."""

_MEMORY_FILES = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat", "total_inactive_file"),  # version 1 of them
)
"""The limit, the use, the statistics, and the entry of files that leave the memory when it is needed."""

ARENA_MAX = -8
"""M_ARENA_MAX of mallopt(3)."""
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)."""
MOST_FREE = 1 << 30
"""Free bytes at the end of a pool that the process keeps."""
LARGEST_BLOCK = 32 << 20
"""Bytes of the largest block that a pool gives. glibc itself raises its threshold so far."""

_REFUSED = re.compile(
    "MemoryError|bad_alloc|can('|no)t allocate memory|failed to map segment|can't start new thread|"
    "resource temporarily unavailable",
    re.IGNORECASE,
)
"""Words in messages of Python, torch, OpenVINO and the system's loader, whose types of exceptions differ."""
_REFUSED_UNDER_LIMIT = re.compile("load shared object|could not create a primitive")
"""Words of llvmlite and torch that say so where the process has a limit; else they may mean something else."""

_turn = threading.RLock()
"""Held by the thread that has changed what all threads share, until it is as before."""


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Inside, no warning is shown; one thread at a time is inside.

    The filters are the whole process's. If the blocks of two threads overlapped, the one that ends last would bring
    back what it has found: the filter of the other, which would silence the program for good.
    """
    with _turn, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def without_draws() -> Iterator[None]:
    """Inside, draws leave torch's random numbers as they were; one thread at a time is inside, as above."""
    import torch

    with _turn, torch.random.fork_rng(devices=[]):
        yield


class Threads(ThreadPoolExecutor):
    """Threads that a child made by fork begins anew: its parent's are not there, and would be waited for."""

    def __init__(self, count: int, initializer: Callable[[], object] | None = None):
        super().__init__(count, initializer=initializer)
        self._settings, self._process = (count, initializer), os.getpid()

    def submit(self, /, *work: Any, **settings: Any) -> Future[Any]:
        if self._process != os.getpid():
            Threads.__init__(self, *self._settings)
        return super().submit(*work, **settings)


def count_cores() -> int:
    """Processor cores that this process may use; a container may have the time of fewer than its machine has."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    return usable if quota is None else max(1, min(usable, math.ceil(quota)))


def cpu_quota() -> float | None:
    """Cores whose time the control groups allow, on Linux; None without a limit."""
    return min((quota for group in _groups("cpu") if (quota := _quota(group)) is not None), default=None)


def _quota(group: Path) -> float | None:
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        quota, period = (group / "cpu.max").read_text(encoding="ascii").split()
        return None if quota == "max" else int(quota) / int(period)
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):  # version 1 of control groups
        quota, period = ((group / f"cpu.cfs_{x}_us").read_text(encoding="ascii") for x in ("quota", "period"))
        return None if int(quota) < 0 else int(quota) / int(period)
    return None


def _groups(kind: str) -> list[Path]:
    """The folders of this process's control groups and of all around them, each of which can have a limit.

    With version 1 there is a tree for each kind of limit. A container may see its own group as the root of the tree.
    """
    folders = [CGROUP, CGROUP / kind]
    with contextlib.suppress(OSError, ValueError):
        for line in OWN_GROUPS.read_text(encoding="utf-8").splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds == "" or kind in kinds.split(","):
                own = Path(path.lstrip("/"))
                folders += [CGROUP / (kind if kinds else "") / group for group in (own, *own.parents)]
    return folders


def free_memory() -> int | None:
    """Bytes that this process can still get, on Linux; the limits of its control groups count. None elsewhere."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
        limits = (_memory_left(group, *files) for group in _groups("memory") for files in _MEMORY_FILES)
        return min(free + [left for left in limits if left is not None], default=None)
    return None


def _memory_left(group: Path, limit: str, usage: str, statistics: str, key: str) -> int | None:
    """Bytes below a control group's limit, by its files; None without a limit."""
    with contextlib.suppress(OSError, ValueError):
        most, used = (int((group / name).read_text(encoding="ascii")) for name in (limit, usage))
        kinds = dict(line.split() for line in (group / statistics).read_text(encoding="ascii").splitlines())
        return most - used + int(kinds.get(key, 0))  # files that nobody has read for a while leave when it is needed
    return None


def refusal(error: BaseException | None) -> str:
    """The sentence for an error that the system caused as it gave no memory or no thread; empty for other errors."""
    limit = _limit_of_addresses()
    while error is not None:
        words = f"{type(error).__name__} {error}"
        if _REFUSED.search(words) or (limit is not None and _REFUSED_UNDER_LIMIT.search(words)):
            which = "" if limit is None else f" (`ulimit -v` allows {limit >> 20:,} MiB of addresses)"
            return f"the system gives no more memory or threads: raise this process's limits{which}, or end others"
        error = error.__cause__ or error.__context__
    return ""


def _limit_of_addresses() -> int | None:
    """Bytes of addresses that this process may have; None without a limit."""
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


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
