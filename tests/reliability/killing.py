"""Runs of the real program in processes of their own, which tests kill and let go on.

The processes are forked from one that has imported everything already, so a run of a few generations takes a second
or two instead of six.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from alphazero.commands.shared import run_command
from tests.training.test_coach import FLAGS, checksums, figures

GENERATIONS = 4
PATIENCE = 600.0
"""Seconds to wait for a process on a busy machine."""


def run_program(arguments: list[str], log: str, fault: str, obeys: bool, piped: bool) -> None:
    """The body of a process: `alphazero train` with these arguments; what it says goes to the file `log`.

    If it `obeys`, also a process of root keeps to the permissions of files, as those of other users do. If it is
    `piped`, another program writes the file, which a limit for this process does not stop.
    """
    if fault:
        os.environ["ALPHAZERO_FAULT"] = fault
    if obeys:  # capset, of version 3, with no capability
        assert ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()) == 0
    with open(log, "a", encoding="utf-8") as file:
        writer = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file) if piped else None
        for number in (1, 2):
            os.dup2((writer.stdin if writer and writer.stdin else file).fileno(), number)
    from alphazero.commands.train import main
    from alphazero.training.parts import pace
    from alphazero.training.selfplay import calibration

    pace.LAST_GATE_GAMES, calibration.SECONDS = 20, 0.002  # as in tests/conftest.py
    sys.exit(run_command(main, arguments))


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "alphazero.commands.train", "alphazero.nets.torch_trainer"])
    return context


def log_of(folder: Path) -> Path:
    return folder.with_suffix(".log")


def begin(arguments: list[str], folder: Path, fault: str = "", obeys: bool = False, piped: bool = False) -> BaseProcess:
    """Runs `alphazero train` with these arguments in `folder`; what it says goes to `log_of(folder)`."""
    words = [*arguments, "--game", "tictactoe", "--run", str(folder)]
    process = _context().Process(target=run_program, args=(words, str(log_of(folder)), fault, obeys, piped))
    process.start()
    return process


def start(folder: Path, fault: str = "") -> BaseProcess:
    """Begins the run in `folder`, or goes on with it as a person would; it kills itself at the fault, if there is one
    (see `fault_point` in alphazero/storage/files.py)."""
    begun = (folder / "config.json").exists()
    return begin(["--resume"] if begun else [*FLAGS, "--generations", str(GENERATIONS)], folder, fault)


def finish(folder: Path) -> None:
    """Begins the run or goes on with it, to its end."""
    process = start(folder)
    process.join(PATIENCE)
    assert process.exitcode == 0, log_of(folder).read_text()


def kill(process: BaseProcess) -> bool:
    """Kills with SIGKILL; false if the process had ended before, in good order."""
    process.kill()
    process.join(PATIENCE)
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    return process.exitcode == -signal.SIGKILL


def wait_until(condition: Callable[[], bool], process: BaseProcess) -> None:
    """Waits until the condition holds, or the process has ended."""
    end = time.monotonic() + PATIENCE
    while not condition() and process.is_alive():
        assert time.monotonic() < end, f"it is not so after {PATIENCE} s"
        time.sleep(0.002)


def has_lock(folder: Path, process: BaseProcess) -> bool:
    """The process trains in the folder; a process that was killed leaves its name there."""
    holder = folder / "lock_holder"
    return holder.exists() and holder.read_text().startswith(f"{process.pid} ")


def results(folder: Path) -> tuple[dict[str, str], list[dict], str]:
    """Everything that must not depend on interruptions: SHA-256 of weights, cards, replay and games in progress; the
    figures of every generation; the matches at the end."""
    evaluation = hashlib.sha256((folder / "evaluation.json").read_bytes()).hexdigest()
    return checksums(folder), figures(folder), evaluation


def assert_whole(folder: Path) -> None:
    """No temporary file is left, and the newest manifest is the last generation's."""
    assert not list(folder.glob(".*.tmp"))
    manifests = sorted(folder.glob("manifest_*.json"))
    assert json.loads(manifests[-1].read_text())["generation"] == GENERATIONS
