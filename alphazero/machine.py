"""The machine as this process has it: cores and memory, also of a container, and the C library's free memory.

And what the process shares: warnings and random numbers, which one thread at a time may change; the signals that its
child programs get; its text streams. And a second process for what leaves files.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import io
import math
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

CGROUP, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
"""Files that tell the limits of control groups, as containers and jobs have them, and the groups of this process, on
Linux."""

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
_FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO
"""The output has no room, or its terminal was closed."""
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


@contextlib.contextmanager
def variables_set(variables: dict[str, str]) -> Iterator[None]:
    """Programs begun in here have these in their environment, and programs that this process begins later do not."""
    before = {name: os.environ[name] for name in variables.keys() & os.environ.keys()}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)
        os.environ.update(before)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Programs begun in here do not get Ctrl-C, which reaches all of a terminal; this process gets it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def take_any_text() -> None:
    """Lets the process print and read what its streams' encodings do not have, such as pictures of boards."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # bytes that are no text are no word of ours either
            stream.reconfigure(errors="replace" if stream is sys.stdin else "backslashreplace")


class Threads(ThreadPoolExecutor):
    """Threads that a child made by fork begins anew: its parent's are not there, and would be waited for."""

    def __init__(self, count: int, initializer: Callable[[], object] | None = None):
        super().__init__(count, initializer=initializer)
        self._settings, self._process = (count, initializer), os.getpid()

    def submit(self, /, *work: Any, **settings: Any) -> Future[Any]:
        if self._process != os.getpid():
            Threads.__init__(self, *self._settings)
        return super().submit(*work, **settings)

    def run(self, work: Callable[[Any], Any], pieces: Iterable[Any], stop: Callable[[], object]) -> list[Any]:
        """The results of `work` for all pieces, as `map`. After an error, or Ctrl-C, it calls `stop` and waits for all:
        Ctrl-C reaches this thread alone."""
        tasks = [self.submit(work, piece) for piece in pieces]
        try:
            return [task.result() for task in tasks]
        except BaseException:
            stop()
            raise
        finally:
            wait(tasks)


def count_cores() -> int:
    """Processor cores that this process may use; a container may have the time of fewer than its machine has."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    return usable if quota is None else max(1, min(usable, math.ceil(quota)))


@contextlib.contextmanager
def done_beside(works: Sequence[Callable[[], object]]) -> Iterator[Callable[[], None]]:
    """While the block runs, another process does the works, of which files are left: the code that numba keeps.

    The block calls what it gets when it needs the works. Then it does those that the other has not begun, and waits for
    the others.
    """
    alone = {thread.name for thread in threading.enumerate()} <= {"MainThread", "signals"}
    if sys.platform != "linux" or not alone or count_cores() == 1:  # a fork takes over what threads have locked
        yield lambda: None
        return
    numbers, write = os.pipe()  # who reads the number of a work does it
    os.write(write, bytes(range(len(works))))
    os.close(write)

    def work_off() -> None:
        while number := os.read(numbers, 1):
            works[number[0]]()

    child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what is to be said, this process will say
            work_off()
        finally:
            os._exit(0)

    def finish() -> None:
        work_off()
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)

    try:
        yield finish
    finally:
        os.close(numbers)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def cpu_quota() -> float | None:
    """Cores whose time the control groups (version 2) allow, on Linux; None without a limit.

    Each group around that of this process can have one, and a container may see its own as the root of the tree.
    """
    folders, quotas = [CGROUP], list[float]()
    with contextlib.suppress(OSError, ValueError):
        for line in OWN_GROUPS.read_text(encoding="utf-8").splitlines():
            own = Path(line.removeprefix("0::").lstrip("/"))
            folders += [CGROUP / group for group in (own, *own.parents) if line.startswith("0::")]
    for folder in folders:
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):  # the second for "max", which is no limit
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def free_memory() -> int | None:
    """Bytes that programs can still get, on Linux; None elsewhere."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next((1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), None)
    return None


def refusal(error: BaseException | None) -> str:
    """The sentence for an error that the system caused: no memory, no thread, no room for output; else empty."""
    if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
        return f"the output cannot be written: {error.strerror}"
    while error is not None:
        if _REFUSED.search(f"{type(error).__name__} {error}"):
            return "the system gives no more memory or threads: raise this process's limits, or end others"
        error = error.__cause__ or error.__context__
    return ""


def limit_arenas(count: int) -> None:
    """Lets the C library keep at most `count` pools of free memory (arenas), unless MALLOC_ARENA_MAX says how many.

    By default glibc has eight for each core. Every generation begins new threads, each of which gets any of them, so
    all slowly fill with holes that nothing fits into. Does nothing with other C libraries.
    """
    if "MALLOC_ARENA_MAX" not in os.environ and hasattr(_library(), "mallopt"):
        _library().mallopt(-8, count)  # M_ARENA_MAX


def keep_free_memory() -> None:
    """Lets the C library keep free memory until `return_free_memory`.

    By default glibc returns it at once, and each layer of a network that learns writes to new pages. The system clears
    every new page first: a twelfth of the time of learning. Does nothing if MALLOC_TRIM_THRESHOLD_ or
    MALLOC_MMAP_THRESHOLD_ is set, nor with other C libraries.
    """
    chosen = {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"} & os.environ.keys()
    if not chosen and hasattr(_library(), "mallopt"):
        _library().mallopt(-1, MOST_FREE)  # M_TRIM_THRESHOLD
        _library().mallopt(-3, LARGEST_BLOCK)  # M_MMAP_THRESHOLD, which glibc no longer raises once the other is set


def return_free_memory() -> None:
    """Gives the system the pages that are free, after work that took many for a moment; some milliseconds.

    Does nothing with other C libraries than glibc.
    """
    if hasattr(_library(), "malloc_trim"):
        _library().malloc_trim(ctypes.c_size_t(0))


@functools.cache
def _library() -> Any:
    return ctypes.CDLL(None) if os.name == "posix" else None
