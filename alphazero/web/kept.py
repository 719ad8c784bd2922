"""Contents of files that the page asks for again and again: each is read anew when its file has changed."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """The contents of at most so many files, as `read` gives them; the least recently used are forgotten."""

    def __init__(self, read: Callable[[Path], T], most: int):
        self._read, self._most = read, most
        self._found: OrderedDict[Path, tuple[tuple[int, ...], T]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: Path) -> T:
        """The content of that file; raises as `read` does. One file is read at a time."""
        with self._lock:
            stamp = _stamp_of(path)  # before it is read: a change meanwhile is seen by the next call
            if path not in self._found or self._found[path][0] != stamp:
                self._found.pop(path, None)
                self._found[path] = stamp, self._read(path)
            self._found.move_to_end(path)
            while len(self._found) > self._most:
                self._found.popitem(last=False)
            return self._found[path][1]


def _stamp_of(path: Path) -> tuple[int, ...]:
    """Changes with the file; empty for one that is not there."""
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
