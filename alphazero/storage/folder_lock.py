"""A lock on a run folder, so that one process at a time trains there; the kernel frees it even on kill -9."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

from filelock import FileLock, Timeout

from alphazero.errors import RunFolderError, StorageError
from alphazero.storage.files import atomic_write, open_regular, read_bytes
from alphazero.storage.systems import is_locked

LOCK, HOLDER = "lock", "lock_holder"
MAX_HOLDER_BYTES = 1000
PATIENCE = 1.0
"""Seconds to wait for a process that is about to end."""


class FolderLock:
    """Locks a folder until `release`; raises RunFolderError with process and host if another process holds it."""

    def __init__(self, folder: Path):
        path = folder / LOCK
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise RunFolderError(f"cannot lock {folder}: {path} is not a plain file; choose another folder")
        self._path, self._holder = path, folder / HOLDER
        self._lock = FileLock(path, thread_local=False)  # every thread of ours holds it
        try:
            self._lock.acquire(timeout=PATIENCE, poll_interval=0.02)
        except Timeout as error:
            raise RunFolderError(
                f"{folder} is in use by {_read_holder(self._holder)}; stop that run or choose another folder"
            ) from error
        except OSError as error:
            raise RunFolderError(f"cannot lock {path}: {error.strerror}; choose another folder") from error
        host = socket.gethostname().encode("ascii", "backslashreplace").decode()
        self._name = f"{os.getpid()} {host}\n"
        try:
            # takes the place of a link or a pipe that lies there
            atomic_write(self._holder, self._name.encode("ascii"))
        except StorageError as error:
            self._lock.release()
            raise RunFolderError(str(error)) from error

    def is_held(self) -> bool:
        """The lock is still ours, and the folder is still the one that was locked."""
        try:
            there = os.stat(self._path, follow_symlinks=False)
            descriptor = self._lock._context.lock_file_fd  # 0 is one, too, where stdin is closed
            same = os.fstat(-1 if descriptor is None else descriptor)  # the one that we hold
            return (there.st_dev, there.st_ino) == (same.st_dev, same.st_ino) and _read(self._holder) == self._name
        except (OSError, StorageError):
            return False

    def release(self) -> None:
        """Unlocks the folder; a second call does nothing."""
        if self.is_held():  # else the holder's file, if there is one, is somebody else's
            with contextlib.suppress(OSError):  # of a process that is gone, it does no harm
                self._holder.unlink(missing_ok=True)
        self._lock.release()


def holder_of(folder: Path) -> str | None:
    """The process that trains in a folder, as `process 42 on host`; None if nobody does. Changes nothing there."""
    with contextlib.suppress(StorageError, OSError), open_regular(folder / LOCK) as file:  # there may be no lock
        if is_locked(file.fileno()):  # for an instant it may be our own: a run that begins now tries again
            return _read_holder(folder / HOLDER)
    return None


def _read(path: Path) -> str:
    return read_bytes(path, MAX_HOLDER_BYTES).decode("ascii", errors="replace")


def _read_holder(path: Path) -> str:
    try:
        pid, host = _read(path).split()
    except (StorageError, ValueError):  # it has the lock, and has not written its name yet
        return "another process"
    return f"process {pid} on {host}"
