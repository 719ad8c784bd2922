"""Child processes, which end with this one: workers of ours, and programs of others."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from multiprocessing import spawn
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import IO, Any

from alphazero import interruption
from alphazero.invocation import WINDOWS
from alphazero.machine import held_back, variables_set

PATIENCE = 10.0
"""Seconds until a call that ends programs has failed."""

_starting = threading.Lock()
_programs: weakref.WeakSet[subprocess.Popen[str]] = weakref.WeakSet()

# --- workers ---


def start_worker(work: Callable[..., object], ours: Connection, theirs: Connection, *shared: Any) -> SpawnProcess:
    """A process that runs the file of this program and calls `work(theirs, *shared)`; `ours` is its other end."""
    context = multiprocessing.get_context("spawn")  # a fork would take over locks of torch's and numba's threads
    process = context.Process(target=_begin, args=(main_of_workers(), theirs, *shared), daemon=True)
    # it gets our path later, current folder or not
    with _starting, held_back(), variables_set({"PYTHONSAFEPATH": "1"}), _without_main():
        process.start()
    ours.send(work)
    theirs.close()
    return process


def main_of_workers() -> dict[str, Any]:
    """The file or module of this program, as `spawn.prepare` takes it; empty for one that was typed or piped in."""
    found = {key: value for key, value in spawn.get_preparation_data("").items() if key.startswith("init_main")}
    path, name = found.get("init_main_from_path"), found.get("init_main_from_name", "")
    return {} if (path and not os.path.isfile(path)) or name.split(".")[-1] == "__main__" else found


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Inside, multiprocessing finds no file of this program: it would run that before a worker watches its parent."""
    main: dict[str, Any] = vars(sys.modules["__main__"])
    before: dict[str, Any] = {name: main[name] for name in ("__file__", "__spec__") if name in main}
    main.update(dict.fromkeys(before))
    try:
        yield
    finally:
        main.update(before)


def _begin(main: dict[str, Any], theirs: Connection, *shared: Any) -> None:
    """Runs in a worker. `main` and the work take long to import, so the parent is watched first."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    process: Any = multiprocessing.current_process()
    process._inheriting = True  # as multiprocessing has it while it runs that file itself
    spawn.prepare(main)
    del process._inheriting
    theirs.recv()(theirs, *shared)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # nobody is left to work for


# --- programs of others ---


def start_program(command: list[str], stderr: int | IO[bytes]) -> subprocess.Popen[str]:
    """Starts the program with lines of text on pipes, in a process group of its own; raises OSError or ValueError."""
    program = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, errors="replace", bufsize=1,
        start_new_session=True,  # and its counterpart on Windows
        creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )  # fmt: skip
    _programs.add(program)
    return program


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


# --- an end without cleaning up ---


def _kill_all() -> None:
    """Also what does not answer, or is stopped and would stay so."""
    for child in multiprocessing.active_children():
        child.kill()
    for program in list(_programs):
        if program.returncode is None:
            end_program(program)


interruption.last_acts.append(_kill_all)
