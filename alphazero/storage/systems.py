"""Where systems differ in their files and processes.

On Windows an open file cannot be replaced or removed. On macOS `fsync` leaves the content in the drive's cache.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from alphazero.invocation import WINDOWS

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:  # only on Windows
    msvcrt = None  # type: ignore[assignment]

Result = TypeVar("Result")
PAUSES = [0.01 * 2**i for i in range(8)]
"""Seconds to wait for a program that has a file open, as virus scanners have for a moment."""


def patiently(act: Callable[..., Result], *arguments: Any) -> Result:
    """`act(*arguments)`. On Windows it is repeated after `PAUSES` while another program has the file open."""
    for pause in PAUSES if WINDOWS else ():
        with contextlib.suppress(PermissionError):
            return act(*arguments)
        time.sleep(pause)
    return act(*arguments)


def sync(descriptor: int) -> None:
    """Returns when the file's content lies on the disk, and not only in the disk's own cache."""
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS has it, whose fsync leaves that cache as it is
    with contextlib.suppress(OSError):  # a file system that does not know it, as some of networks
        if full is not None:
            fcntl.fcntl(descriptor, full)
            return
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Returns when the names of the folder's files lie on the disk."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:  # it may be written, but not read; on Windows no folder can be opened, nor need be
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):  # file systems that sync none, as of networks
            raise
    finally:
        os.close(descriptor)


def is_locked(descriptor: int) -> bool:
    """Another process has locked this open file, as `filelock` does. Leaves it as it is."""
    try:
        if fcntl is not None:
            # shared and for an instant: who wants to lock it now tries again
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        elif msvcrt is not None:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
    except (BlockingIOError, PermissionError):
        return True
    return False


def process_is_alive(pid: int) -> bool:
    """A process of this machine has that number; on Windows the answer is always yes."""
    if WINDOWS:  # where signal 0 is Ctrl-C
        return True
    try:
        with contextlib.suppress(PermissionError):
            os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    return pid > 0
