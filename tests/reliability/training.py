"""A tiny training in a process of its own, for tests that harm it while it runs."""

import os
import subprocess
import sys
import time
from pathlib import Path

from alphazero.storage.run_log import LOG

ROOT = Path(__file__).resolve().parents[2]
TINY = [
    "--game", "tictactoe", "--net.blocks", "1", "--net.channels", "8", "--threads", "1", "--search.num-simulations",
    "4", "--self-play.games-per-generation", "8", "--self-play.num-slots", "4", "--gate.games", "4",
    "--gate.simulations", "2", "--evaluation.games", "4", "--evaluation.opponents", "random",
]  # fmt: skip
ALL = ["--generations", "100000"]


def start(folder: Path, *flags: str, **options) -> subprocess.Popen[str]:
    """Trains in the folder; `options` are those of Popen."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "main.py"), *TINY, "--run", str(folder), *flags],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **options,
    )  # fmt: skip


def wait_for(process: subprocess.Popen[str], folder: Path, words: str, seconds: float = 300) -> None:
    """Waits until the log of the run has a line with these words."""
    end = time.monotonic() + seconds
    while not ((folder / LOG).exists() and words in (folder / LOG).read_text()):
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.01)


def end_of(process: subprocess.Popen[str], seconds: float = 300) -> tuple[int, str]:
    """The exit code, and the one sentence that says why; fails if there is a traceback or another number of them."""
    _, said = process.communicate(timeout=seconds)
    assert "Traceback" not in said, said
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, said
    return process.returncode, errors[0]
