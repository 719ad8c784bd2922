"""Measures how long a user waits at first: `python -m benchmarks.first_move --programs here=. before=../before`.

Each program is a clone's folder, which runs by this Python, or the Python of an environment where a wheel is installed.
They take turns; each round begins with an empty folder of compiled code (cold), and goes on with what that holds then
(warm). All is of the wall clock, so measure on a quiet machine.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError, InvalidSetting
from alphazero.progress import Progress
from alphazero.settings import check_ranges
from benchmarks.page_speed import PageSpeedConfig, ask_move, connection_to, free_port


@dataclass(frozen=True)
class FirstMove:
    """Seconds until the first move, the first generation, the page's first answer, and the check of a new game."""

    programs: tuple[str, ...] = ("here=.",)
    """What is compared, as NAME=FOLDER of a clone, or NAME=PYTHON of an environment with a wheel."""
    rows: tuple[str, ...] = ("pit", "train", "serve", "check")
    """What is measured."""
    rounds: int = 5
    """How often; the medians count."""

    def __post_init__(self) -> None:
        check_ranges(self, rounds=(1, 100))
        names = [text.partition("=")[0] for text in self.programs]
        for text in self.programs:
            name, _, place = text.partition("=")
            if not name or not place or not Path(place).exists() or names.count(name) > 1:
                raise InvalidSetting(f"--programs takes NAME=FOLDER or NAME=PYTHON, each name once, not {text!r}")
        for row in self.rows:
            if row not in ROWS:
                raise InvalidSetting(f"--rows takes {', '.join(ROWS)}, not {row!r}")


class Program(NamedTuple):
    """One of those that are compared."""

    name: str
    python: str
    clone: str
    """The folder of a clone that `python` runs; empty: it has a wheel."""

    @staticmethod
    def of(text: str) -> Program:
        """The program that `NAME=FOLDER` or `NAME=PYTHON` means."""
        name, _, place = text.partition("=")
        path = os.path.abspath(place)  # a symbolic link stays: it leads Python to its environment
        return Program(name, sys.executable, path) if os.path.isdir(path) else Program(name, path, "")

    def start(self, *words: str, folder: str) -> subprocess.Popen[bytes]:
        """`alphazero WORDS` in this folder, with compiled code kept beneath it."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        own = {"NUMBA_CACHE_DIR": str(Path(folder, "code"))} | ({"PYTHONPATH": self.clone} if self.clone else {})
        return subprocess.Popen(
            [self.python, "-m", "alphazero", *words], cwd=folder, env=kept | own,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def run(self, *words: str, folder: str) -> tuple[float, float]:
        """The seconds of a command, and the most megabytes of one of its processes; raises InputError if it fails."""
        begin, child = time.perf_counter(), self.start(*words, folder=folder)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise InputError(f"{self.name}: alphazero {' '.join(words)} ended with exit code {child.returncode}")
        return time.perf_counter() - begin, used.ru_maxrss / 1000


Figures = dict[str, float]


def main(argv: list[str]) -> None:
    config = parse(FirstMove, argv)
    programs = [Program.of(text) for text in config.programs]
    found: dict[str, dict[str, list[float]]] = {}
    with Progress("rounds") as progress:
        for number in range(config.rounds):
            for row in config.rows:
                for program in programs:
                    progress.show(number / config.rounds, f"{row} of {program.name}")
                    with tempfile.TemporaryDirectory() as folder:
                        for start in ("cold", "warm"):
                            for name, seconds in ROWS[row](program, folder, start).items():
                                found.setdefault(f"{name}, {start}", {}).setdefault(program.name, []).append(seconds)
    print(f"| | {' | '.join(program.name for program in programs)} |\n|---|{'---|' * len(programs)}")
    for name, figures in found.items():
        cells = [
            f"{statistics.median(values):.1f} ({min(values):.1f}-{max(values):.1f})" for values in figures.values()
        ]
        print(f"| {name} | {' | '.join(cells)} |")


def pit(program: Program, folder: str, start: str) -> Figures:
    """Two short games without a network, to their end."""
    seconds, megabytes = program.run(
        "pit", "mcts:50", "greedy", "--game", "connect4", "--games", "2", folder=folder
    )  # fmt: skip
    return {"two games, s": seconds, "two games, MB": megabytes}


def train(program: Program, folder: str, start: str) -> Figures:
    """When the first generation of a run begins, and when it is over."""
    run, begin = Path(folder, start), time.perf_counter()
    child = program.start("train", "--game", "connect4", "--run", str(run), folder=folder)
    lines = run / "metrics.jsonl"
    while child.poll() is None and not (lines.exists() and lines.stat().st_size):
        time.sleep(0.02)
    over, ended = time.perf_counter() - begin, child.poll()
    child.kill()
    child.wait()
    if ended is not None:
        raise InputError(f"{program.name}: alphazero train ended with exit code {ended}")
    first = json.loads(lines.read_text().splitlines()[0])
    spent = sum(first[f"{what}_seconds"] for what in ("self_play", "learning", "gate"))
    return {"first generation begins, s": over - spent, "first generation is over, s": over}


def serve(program: Program, folder: str, start: str) -> Figures:
    """When the page's best net has made its first move."""
    port, begin = free_port(), time.perf_counter()
    words = "serve", "best", "--game", "connect4", "--no-browser", "--port", str(port)
    child = program.start(*words, folder=folder)
    try:
        with connection_to(port) as connection:
            ask_move(PageSpeedConfig(net="best"), connection, ())
        return {"the page's first move, s": time.perf_counter() - begin}
    finally:
        child.terminate()
        child.wait()


def check(program: Program, folder: str, start: str) -> Figures:
    """The check of a game that `alphazero new` wrote; warm: of another one, of which nothing is compiled."""
    program.run("new", start, folder=folder)
    return {"check of a game of one's own, s": program.run("check", f"{start}.py", folder=folder)[0]}


ROWS: dict[str, Callable[[Program, str, str], Figures]] = {"pit": pit, "train": train, "serve": serve, "check": check}


if __name__ == "__main__":
    sys.exit(run_command(main))
