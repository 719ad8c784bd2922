"""Checks a file of scores by the Connect Four solver, and measures it: `python -m benchmarks.connect4_solver FILE`."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from alphazero.commands.options import Threads, check_options
from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError
from alphazero.machine import count_cores
from alphazero.matches.judge import read_positions
from games.connect4.solver import GAME, Solver


@dataclass(frozen=True)
class SolverConfig:
    """Solves every position of a file, and names the lines whose scores are wrong.

    A score is positive if the player to move wins, negative if the opponent does; its size says how early.
    """

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """One position a line, as `moves score`: another solver's answers, for example."""
    book: bool = True
    """Use the opening book; with --no-book the solver searches alone."""
    threads: Threads = field(default_factory=count_cores)

    def __post_init__(self) -> None:
        check_options(self)


def main(argv: list[str]) -> None:
    config = parse(SolverConfig, argv)
    solver, known = Solver(config.threads, config.book), read_positions(config.file, GAME)
    states, count = np.array([one.position.state for one in known]), len(known)
    solver.solve(GAME.position("112233"))  # loads what is compiled
    nodes, begin = solver.num_nodes, time.perf_counter()
    scores = solver.solve_all(states).tolist()
    seconds, nodes = time.perf_counter() - begin, solver.num_nodes - nodes
    answers = [(one, score) for one, score in zip(known, scores, strict=True) if one.score not in (None, score)]
    wrong = [f"{one.where}: the score is {score}, not {one.score}\n" for one, score in answers]
    mean = f"mean {1e3 * seconds / count:.4f} ms, {nodes / count:,.0f} nodes"
    print(f"{''.join(wrong)}{count - len(wrong)} of {count} right; {mean}; {nodes / seconds / 1e6:.2f} million nodes/s")
    if wrong:
        raise InputError(f"wrong scores in {config.file}: {len(wrong)} of {count}; correct the lines named above")


if __name__ == "__main__":
    sys.exit(run_command(main))
