"""Compiles the shipped games ahead, so that they start at once: `alphazero compile`, for a wheel or an image."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated

import tyro

from alphazero.catalogue import registry
from alphazero.commands import program
from alphazero.commands.options import argument
from alphazero.commands.shared import parse
from alphazero.doctor.findings import show_bytes
from alphazero.errors import InputError, UnknownName
from alphazero.machine import count_cores
from alphazero.progress import Progress
from alphazero.storage import kernel_cache

WORDS = (
    "check {game} --games 2",
    "pit mcts:4 greedy --game {game} --games 2",
    "pit minimax:1 random --game {game} --games 2",
    "train --game {game} --run run --generations 2 --minutes 0 --threads 1 --inference winograd {few}",
    "train --game {game} --run other --generations 1 --minutes 0 --threads 1 --inference openvino --device cpu {few} "
    "--search.gumbel-actions 0 --search.leaves-per-step {leaves} --self-play.epsilon 0.2 --self-play.random-plies 2",
    "pit run mcts:4 --game {game} --games 2 --simulations 4",
)
"""Small games that need all kernels that commands do, each for the arguments that they give it."""
FEW = (
    "--net.blocks 1 --net.channels 8 --self-play.games-per-generation 4 --self-play.num-slots 4 "
    "--search.num-simulations 4 --gate.games 4 --gate.simulations 2 --evaluation.opponents random --evaluation.games 2"
)
"""The smallest run: the sizes of a net and the number of games change no kernel."""
CHILD = """
import sys
from alphazero.storage import kernel_cache
kernel_cache.make_ready(sys.argv[1])
from alphazero.commands import compile
compile.play(sys.argv[2])
"""


@dataclass(frozen=True)
class CompileConfig:
    """Compiles the shipped games ahead, for all processors of a level; what is compiled lies beside the sources.

    Wheels and container images made afterwards start at once. A checkout does not need it: it keeps what it compiles.
    """

    games: Annotated[tuple[str, ...], tyro.conf.Positional, argument("[GAME ...]", "all shipped games")] = ()
    """The names of shipped games."""
    level: str = ""
    """x86-64-v3 (nearly all since 2013), x86-64-v4 (with AVX-512) or generic (all of this machine's architecture).
    Empty: the highest of them that this machine is."""

    def __post_init__(self) -> None:
        for name in self.games:
            if name not in registry.NAMES:
                raise UnknownName("shipped game", name, registry.NAMES)
        if self.level and self.level not in kernel_cache.LEVELS:
            raise UnknownName("level", self.level, kernel_cache.LEVELS)


def main(argv: list[str]) -> None:
    config = parse(CompileConfig, argv, command="compile")
    level = config.level or kernel_cache.levels_here()[0]
    first, *others = games = config.games or registry.NAMES
    with Progress("compiling") as progress, ThreadPoolExecutor(count_cores()) as pool:
        progress.show(0.0, first)
        _compile(first, level)  # with all kernels that know no game, which the others then find
        for i, game in enumerate(pool.map(lambda game: _compile(game, level), others), 1):
            progress.show(i / len(games), f"{game} is ready")
    folder = kernel_cache.READY / level
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{show_bytes(size)} of compiled code for {level} are in {folder}")


def _compile(game: str, level: str) -> str:
    """In a process of its own, whose numba compiles for that level; returns the game."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join((str(kernel_cache.READY.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])))
        environment = os.environ | {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "PYTHONPATH": path}
        command = [sys.executable, "-c", CHILD, level, game]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"{game} cannot be compiled for {level}: {done.stderr[-2000:]}")
    return game


def play(game: str) -> None:
    """Runs all of WORDS for the game."""
    leaves = 1 if registry.load(game).game.num_outcomes else 2  # a search with dice takes one at a time
    for line in WORDS:
        if code := program.main(line.format(game=game, few=FEW, leaves=leaves).split()):
            raise SystemExit(code)
