"""Child processes: each runs in a process group of its own, so that it can be ended together with its children."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import IO

from alphazero.invocation import WINDOWS

PATIENCE = 10.0
"""Seconds until a call that ends programs has failed."""


def start_program(command: list[str], stderr: int | IO[bytes]) -> subprocess.Popen[str]:
    """Starts the program with its input and output as lines of text on pipes.

    Raises OSError or ValueError when it cannot be started.
    """
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, errors="replace", bufsize=1,
        start_new_session=True,  # and its counterpart on Windows
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )  # fmt: skip


def end_program(process: subprocess.Popen[str]) -> None:
    """Kills the program and its children at once."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):  # nobody is left
            os.killpg(process.pid, signal.SIGKILL)
    elif WINDOWS:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            tree = ["taskkill", "/T", "/F", "/PID", str(process.pid)]
            subprocess.run(tree, capture_output=True, timeout=PATIENCE, check=False)
    process.kill()
    process.wait()
