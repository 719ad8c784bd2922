"""The solver's command, `python -m games.connect4.solver`: shows a position's scores, or checks a file of scores."""

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
from alphazero.errors import InputError, InvalidSetting
from alphazero.machine import count_cores
from alphazero.matches.judge import read_positions
from games.connect4.oracle import ORACLE, result_of
from games.connect4.solver import GAME, Solver


@dataclass(frozen=True)
class SolverConfig:
    """Solves a Connect Four position exactly: the score of every column when both sides play perfectly.

    A score is positive if the player to move wins, negative if the opponent does; its size says how early.
    """

    moves: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[MOVES]")] = ""
    """The columns played so far, 1-7, as in 4453; nothing = the empty board."""
    file: Path | None = None
    """Check this file instead: one position a line, as `moves score`."""
    book: bool = True
    """Use the opening book; with --no-book the solver searches alone."""
    threads: Threads = field(default_factory=count_cores)

    def __post_init__(self) -> None:
        check_options(self)
        if self.file is not None and self.moves:
            raise InvalidSetting("MOVES and --file exclude each other: give one of them")


def main(argv: list[str]) -> None:
    config = parse(SolverConfig, argv)
    solver = Solver(config.threads, config.book)
    if config.file is not None:
        check_file(config.file, solver)
        return
    position = GAME.position(config.moves)
    print(f"{position}\n\ncolumn  score")
    for action, score in enumerate(solver.column_scores(position)):
        if score is not None:
            print(f"{action + 1:>6}  {score:>5}  {ORACLE.words(result_of(score, position))}")


def check_file(path: Path, solver: Solver) -> None:
    """Solves every line of a file, prints the wrong ones and how long it took; raises InputError if any is wrong."""
    known = read_positions(path, GAME)
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
        raise InputError(f"wrong scores in {path}: {len(wrong)} of {count}; correct the lines named above")


if __name__ == "__main__":
    sys.exit(run_command(main))
