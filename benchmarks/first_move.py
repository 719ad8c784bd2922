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
from dataclasses import dataclass, field
from pathlib import Path

from alphazero.commands.shared import parse, run_command
from alphazero.errors import InvalidSetting
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
        for text in self.programs:
            if not Path(text.partition("=")[2]).exists():
                raise InvalidSetting(f"--programs takes NAME=FOLDER or NAME=PYTHON, not {text!r}")
        for row in self.rows:
            if row not in ROWS:
                raise InvalidSetting(f"--rows takes {', '.join(ROWS)}, not {row!r}")


@dataclass
class Program:
    """One of those that are compared."""

    text: str
    python: str = field(init=False)
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.name, _, place = self.text.partition("=")
        clone = Path(place).is_dir()
        self.python = sys.executable if clone else place
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.environment = kept | ({"PYTHONPATH": str(Path(place).resolve())} if clone else {})

    def start(self, *words: str, folder: str) -> subprocess.Popen[bytes]:
        """`alphazero WORDS` in this folder, with compiled code kept beneath it."""
        return subprocess.Popen(
            [self.python, "-m", "alphazero", *words], cwd=folder,
            env=self.environment | {"NUMBA_CACHE_DIR": str(Path(folder, "code"))},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip


Figures = dict[str, float]


def main(argv: list[str]) -> None:
    config = parse(FirstMove, argv)
    programs = [Program(text) for text in config.programs]
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
    """Two short games without a network, to their end, and the most memory that a process of them has used."""
    begin = time.perf_counter()
    child = program.start("pit", "mcts:50", "greedy", "--game", "connect4", "--games", "2", folder=folder)
    megabytes = os.wait4(child.pid, 0)[2].ru_maxrss / 1000
    return {"two games, s": time.perf_counter() - begin, "two games, MB": megabytes}


def train(program: Program, folder: str, start: str) -> Figures:
    """When the first generation of a run begins, and when it is over."""
    run, begin = Path(folder, start), time.perf_counter()
    child = program.start("train", "--game", "connect4", "--run", str(run), folder=folder)
    lines = run / "metrics.jsonl"
    while child.poll() is None and not (lines.exists() and lines.stat().st_size):
        time.sleep(0.02)
    over = time.perf_counter() - begin
    child.kill()
    child.wait()
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
    program.start("new", start, folder=folder).wait()
    begin = time.perf_counter()
    program.start("check", f"{start}.py", folder=folder).wait()
    return {"check of a game of one's own, s": time.perf_counter() - begin}


ROWS: dict[str, Callable[[Program, str, str], Figures]] = {"pit": pit, "train": train, "serve": serve, "check": check}


if __name__ == "__main__":
    sys.exit(run_command(main))
