"""A lock on a run folder, so that one process at a time trains there; the kernel frees it even on kill -9."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from filelock import FileLock, Timeout

from alphazero.errors import RunFolderError

LOCK, HOLDER = "lock", "lock_holder"
PATIENCE = 1.0
"""Seconds to wait for a process that is about to end."""


class FolderLock:
    """Locks a folder until `release`; raises RunFolderError with process and host if another process holds it."""

    def __init__(self, folder: Path):
        path = folder / LOCK
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise RunFolderError(f"cannot lock {folder}: {path} is not a plain file; choose another folder")
        self._lock, self._holder = FileLock(path), folder / HOLDER
        try:
            self._lock.acquire(timeout=PATIENCE, poll_interval=0.02)
        except Timeout as error:
            raise RunFolderError(
                f"{folder} is in use by {_read_holder(self._holder)}; stop that run or choose another folder"
            ) from error
        except OSError as error:
            raise RunFolderError(f"cannot lock {path}: {error.strerror}; choose another folder") from error
        self._name = f"{os.getpid()} {socket.gethostname()}\n"
        try:
            self._holder.write_text(self._name)
        except OSError as error:
            self._lock.release()
            raise RunFolderError(f"cannot write {self._holder}: {error.strerror}; choose another folder") from error

    def is_held(self) -> bool:
        """The lock is still ours, and the folder is still the one that was locked."""
        try:
            return self._lock.is_locked and self._holder.read_text() == self._name
        except OSError:
            return False

    def release(self) -> None:
        """Unlocks the folder; a second call does nothing."""
        if self.is_held():  # else the holder's file, if there is one, is somebody else's
            self._holder.unlink(missing_ok=True)
        self._lock.release()


def _read_holder(path: Path) -> str:
    try:
        pid, host = path.read_text().split()
    except (OSError, ValueError):  # it has the lock, and has not written its name yet
        return "another process"
    return f"process {pid} on {host}"
