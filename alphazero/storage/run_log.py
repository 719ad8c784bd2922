"""The log of a run: a line for each thing that began or ended, so that a run that died can say what it was doing."""

from __future__ import annotations

import contextlib
import logging
import os
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from alphazero.errors import InputError, StorageError, printable
from alphazero.storage.files import open_own, write_all
from alphazero.storage.systems import patiently

LOG, OLDER_LOG = "run.log", "run.log.1"
MAX_BYTES = 1 << 20
"""A log of this size takes the place of the older one, and a new one is begun."""

logger = logging.getLogger(__name__)


class RunLog(logging.Handler):
    """Adds lines to `run.log` in a folder, as long as `is_ours()` says that the folder is the run's.

    Each line is in the file when `add` returns. Nothing reads it but people. A log that cannot be written is said once,
    and stops no run.
    """

    def __init__(self, folder: Path, is_ours: Callable[[], bool]):
        super().__init__(logging.WARNING)
        self._folder, self._is_ours, self._failed = folder, is_ours, False

    def emit(self, record: logging.LogRecord) -> None:
        """Adds a warning of the library."""
        if record.name != __name__:
            self.add(f"warning: {record.getMessage()}")

    def add(self, text: str) -> None:
        """Adds a line with the time; further lines of the text are indented, and control characters escaped."""
        first, *rest = [printable(line) for line in text.splitlines() or [""]]
        lines = [f"{time.strftime('%Y-%m-%d %H:%M:%S %z')}  {first}", *(f"    {line}" for line in rest)]
        content = "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace")
        try:
            if self._is_ours():
                self._write(content)
        except (OSError, StorageError) as error:
            if not self._failed:
                self._failed = True
                logger.warning("%s cannot be written, and is left as it is: %s", self._folder / LOG, error)

    def _write(self, content: bytes) -> None:
        path = self._folder / LOG
        while True:
            with open_own(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
                if os.fstat(file.fileno()).st_size < MAX_BYTES:
                    write_all(file, content)
                    return
            patiently(os.replace, path, self._folder / OLDER_LOG)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Adds the warnings of the library, and the error that ends this block: a bug of ours with its traceback."""
        library = logging.getLogger("alphazero")
        library.addHandler(self)
        try:
            yield
        except BaseException as error:
            self.add(f"error: {error}" if isinstance(error, InputError) else f"error\n{traceback.format_exc()}")
            raise
        finally:
            library.removeHandler(self)
