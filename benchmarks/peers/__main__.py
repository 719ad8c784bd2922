"""Measures other people's search beside ours, alternating on one core: `python -m benchmarks.peers`.

It makes an environment of its own in `build/peers`, with pgx, mctx and OpenSpiel from PyPI, and uses them by their
public interfaces. Games for more than two have a plain search in numpy beside them instead, whose network is answered
by our inference or by torch itself. Positions, sizes of the network and numbers of simulations are the same for all.
"""

from __future__ import annotations

import json
import logging
import os
import re
import statistics
import subprocess
import sys
import venv
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alphazero.catalogue import registry
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InvalidSetting
from alphazero.settings import check_ranges
from alphazero.storage.files import write_json

logger = logging.getLogger(__name__)

HERE = Path(__file__).parent
PACKAGES = ("pgx==2.6.0", "mctx==0.0.71", "jax[cpu]==0.10.2", "open_spiel==2.0.2")
GAMES = {
    "connect4": ("5x64", 64), "othello": ("5x64", 64), "go9": ("3x32", 32), "gardner": ("4x32", 32),
    "2048": ("2x32", 16), "backgammon": ("256x128", 16), "pig": ("2x32", 16),
    "tictacmo": ("5x32", 90), "cantstop3": ("128x64", 16), "cantstop4": ("128x64", 16),
}  # fmt: skip
"""Sizes of the network and simulations; with dice or more than two players, those that the shipped nets learned by."""
CONSIDERED = {"2048": 4, "backgammon": 16, "pig": 2, "tictacmo": 15, "cantstop3": 16, "cantstop4": 16}
"""Actions that sequential halving considers in these games, as in their presets; the others have PUCT."""
FOR_MANY = "tictacmo", "cantstop3", "cantstop4"
"""No other program has these games."""
NOT_IN_PGX, NOT_IN_OPENSPIEL = ("pig", *FOR_MANY), ("2048", "go9", "gardner", *FOR_MANY)
"""OpenSpiel's search wants all points at the end. Its Go calls a repeated position a draw, and its chess is 8x8."""
OTHER_NUMBERS = ("gardner",)
"""Games whose actions have other numbers in pgx: the searched positions are of games at all stages there."""
FIGURES = ("network", "search", "self-play")
HEADINGS = ("network alone, evaluations/s", "free network, simulations/s", "self-play, positions/s with a choice")
OPENING_PLIES = 6
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}


@dataclass(frozen=True)
class PeersBenchmark:
    """Simulations and self-play positions per second of this framework, pgx with mctx, and OpenSpiel, on one core."""

    games: tuple[str, ...] = tuple(GAMES)
    """Games: connect4, othello, go9, gardner, 2048, backgammon, pig, tictacmo, cantstop3, cantstop4."""
    net: str = ""
    """Blocks x channels of the network; of Backgammon's and Can't Stop's, units for value x policy. Empty: as in the
    tables."""
    batch: int = 256
    """Positions that are searched at once, by those who can."""
    simulations: int = 0
    """Simulations per ply. 0: as in the tables."""
    rounds: int = 5
    """Turns of each program; the figures are medians."""
    seconds: float = 5.0
    """Seconds of each figure in each turn, about."""
    environment: Path = Path("build/peers")
    """The peers' environment; it is made if it is not there."""
    json: Path | None = None
    """Write the figures into this file as well."""

    def __post_init__(self) -> None:
        check_ranges(self, batch=(1, 4096), simulations=(0, 4096), rounds=(1, 1000), seconds=(0.01, 600))
        if unknown := set(self.games) - set(GAMES):
            raise InvalidSetting(f"--games takes {', '.join(GAMES)}, not {', '.join(sorted(unknown))}")
        if self.net and not re.fullmatch(r"\d{1,3}x\d{1,4}", self.net):
            raise InvalidSetting(f"--net takes two sizes, such as 5x64, not {self.net!r}")

    def sizes(self, game: str) -> tuple[str, int]:
        """The network's sizes and the number of simulations for a game."""
        return self.net or GAMES[game][0], self.simulations or GAMES[game][1]


class Worker:
    """A program that measures its figures when asked."""

    def __init__(self, command: list[str], task: dict[str, Any], folder: Path):
        environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(folder)}
        self._process = subprocess.Popen(
            [*command, json.dumps(task)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self._answer()

    def measure(self, figure: str, seconds: float) -> float:
        """Units per second."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{figure} {seconds}\n")
        self._process.stdin.flush()
        return float(self._answer()["rate"])

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise InvalidSetting(f"a worker ended with exit status {self._process.wait()}; its error is above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def main(argv: list[str]) -> None:
    options = parse(PeersBenchmark, argv)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # children inherit it
    python = make_environment(options.environment) if set(options.games) - set(FOR_MANY) else ""
    figures = {}
    for game in options.games:
        figures[game] = measure(options, game, python)
        print(table(game, options, figures[game]), flush=True)
    if options.json:
        write_json(options.json, figures)


def make_environment(folder: Path) -> str:
    """The Python of an environment with the peers' packages, which is made if it is not there."""
    python = folder.resolve() / ("Scripts" if os.name == "nt" else "bin") / "python"
    mark = folder / "packages.json"
    if not mark.exists() or json.loads(mark.read_text()) != list(PACKAGES):
        logger.info("installing %s in %s", ", ".join(PACKAGES), folder)
        venv.create(folder, with_pip=True, clear=True)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True, env=environment)
        write_json(mark, list(PACKAGES))
    return str(python)


def measure(options: PeersBenchmark, game: str, python: str) -> dict[str, dict[str, float]]:
    """Medians by program and figure."""
    net, simulations = options.sizes(game)
    dice = game in CONSIDERED
    task = {
        "game": game, "net": [*map(int, net.split("x"))], "batch": options.batch, "simulations": simulations,
        "considered": CONSIDERED.get(game, 0),
        "openings": [] if dice or game in OTHER_NUMBERS else openings(game, options.batch),
    }  # fmt: skip
    pgx_mctx, root = [python, str(HERE / "pgx_mctx.py")], HERE.parent.parent
    programs: dict[str, tuple[list[str], dict[str, Any]]] = {
        "this framework": ([sys.executable, "-m", "benchmarks.peers.ours"], {})
    }
    if game not in NOT_IN_PGX:
        for policy in ("stochastic" if dice else "PUCT", "Gumbel", "Gumbel, bf16"):
            kind, *bf16 = policy.lower().split(", ")
            programs[f"pgx + mctx, {policy}"] = pgx_mctx, {"policy": kind, "dtype": "bfloat16" if bf16 else "float32"}
    if game not in NOT_IN_OPENSPIEL:
        programs["OpenSpiel, PUCT"] = [python, str(HERE / "openspiel_tree.py")], {}
    if game in FOR_MANY:
        command = [sys.executable, "-m", "benchmarks.peers.plain_numpy"]
        programs |= {"plain numpy, PUCT": (command, {}), "plain numpy, PUCT, torch": (command, {"inference": "torch"})}
    found: dict[str, dict[str, list[float]]] = {name: {figure: [] for figure in FIGURES} for name in programs}
    with ExitStack() as stack:
        workers = {}
        for name, (command, more) in programs.items():
            logger.info("%s: starting %s", game, name)
            workers[name] = Worker(command, {**task, **more}, root)
            stack.callback(workers[name].end)
        for number in range(options.rounds):
            logger.info("%s: round %d of %d", game, number + 1, options.rounds)
            for figure in FIGURES:
                for name, worker in workers.items():
                    found[name][figure].append(worker.measure(figure, options.seconds))
    return {
        name: {figure: statistics.median(rates) for figure, rates in figures.items()} for name, figures in found.items()
    }


def openings(game: str, count: int) -> list[list[int]]:
    """Lists of random actions, none of which ends the game. All programs number the actions alike."""
    rng, start, drawn = np.random.default_rng(0), registry.load(game).game.start(), list[list[int]]()
    while len(drawn) < count:
        position, actions = start, list[int]()
        while len(actions) < OPENING_PLIES and not position.terminal:
            actions.append(int(rng.choice(position.legal_actions)))
            position = position.play(actions[-1])
        if not position.terminal:
            drawn.append(actions)
    return drawn


def table(game: str, options: PeersBenchmark, figures: dict[str, dict[str, float]]) -> str:
    """A table in Markdown, with ratios to ours in brackets."""
    ours, (net, simulations) = figures["this framework"], options.sizes(game)
    lines = [
        f"{game}, {net} net, {simulations} simulations, {options.batch} positions at once, one core, "
        f"medians of {options.rounds} alternating rounds",
        "",
        "| program | " + " | ".join(HEADINGS) + " |",
        "|---|" + "---|" * len(FIGURES),
    ]
    for name, rates in figures.items():
        cells = [
            f"{rates[figure]:,.0f}" + (f" (1/{ours[figure] / rates[figure]:.1f})" if rates is not ours else "")
            for figure in FIGURES
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(run_command(main))
