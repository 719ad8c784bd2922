"""The solver's command, `python -m games.connect4.solver`: shows a position's scores, or checks a file of scores."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from alphazero.commands.shared import parse, run_command
from alphazero.errors import InputError, InvalidSetting, count_of
from alphazero.game import Position
from alphazero.machine import count_cores
from alphazero.progress import Progress
from alphazero.settings import check_ranges
from games.connect4.oracle import ORACLE, result_of
from games.connect4.solver import Solver
from games.connect4.solver.notation import parse_moves, parse_scored_line, read_lines


@dataclass(frozen=True)
class SolverConfig:
    """Solves a Connect Four position exactly: the result of every column when both sides play perfectly.

    A score is positive if the player to move wins, negative if the opponent does; its size says how early.
    """

    moves: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="[MOVES]")] = ""
    """The columns played so far, 1-7, as in 4453; nothing = the empty board."""
    file: Path | None = None
    """Check this file instead: one position a line, as `moves score`."""
    book: bool = True
    """Use the opening book; with --no-book the solver searches alone."""
    threads: int = field(default_factory=count_cores)
    """Processor threads."""

    def __post_init__(self) -> None:
        check_ranges(self, threads=(1, 1024))
        if self.file is not None and self.moves:
            raise InvalidSetting("MOVES and --file exclude each other: give one of them")


def main(argv: list[str]) -> None:
    config = parse(SolverConfig, argv)
    if config.file is not None:
        check_file(config.file, Solver(config.threads, config.book))
    else:
        show_position(parse_moves(config.moves), Solver(config.threads, config.book))


def show_position(position: Position, solver: Solver) -> None:
    """Prints the board and the result of each column."""
    print(f"{position}\n")
    if position.terminal:
        print(
            {1: "X has won", -1: "O has won", 0: "a draw"}[position.outcome]
            + f" after {count_of(position.ply, 'move')}"
        )
        return
    scores = solver.column_scores(position)
    best = max(score for score in scores if score is not None)
    words = {score: ORACLE.words(result_of(score, position)) for score in scores if score is not None}
    outcome = words[best] if best else "it is a draw"
    print(f"{'XO'[position.to_play]} to move after {count_of(position.ply, 'move')}; with perfect play {outcome}\n")
    print("column  score")
    for action, score in enumerate(scores):
        if score is None:
            print(f"{action + 1:>6}      -  full")
        else:
            print(f"{action + 1:>6}  {score:>5}  {words[score]}")
    columns = [str(action + 1) for action, score in enumerate(scores) if score == best]
    print(f"\nbest: {', '.join(columns)}")


def check_file(path: Path, solver: Solver) -> None:
    """Solves every line of a file, prints the wrong ones and how long it took; raises InputError if any is wrong."""
    lines = [(place, *parse_scored_line(line, place)) for place, line in read_lines(path)]
    states = np.array([position.state for _, position, _ in lines])
    solver.solve(parse_moves("112233"))  # loads what is compiled
    before, num_done, num_wrong = solver.num_nodes, 0, 0
    seconds: list[float] = []
    with Progress(f"solving {path}") as progress:
        for scores, times in solver.solve_timed(states):
            for (place, _, given), score in zip(lines[num_done:], scores, strict=False):
                if given is not None and score != given:
                    num_wrong += 1
                    print(f"{place}: the score is {score}, not {given}")
            num_done += len(scores)
            seconds += times.tolist()
            progress.show(num_done / len(lines), f"{num_done} of {len(lines)} positions, {num_wrong} wrong")
    num_nodes = solver.num_nodes - before
    print(
        f"{len(lines) - num_wrong} of {len(lines)} right; mean {1e3 * sum(seconds) / len(lines):.4f} ms, "
        f"worst {1e3 * max(seconds):.3f} ms; mean {num_nodes / len(lines):,.0f} nodes, "
        f"{num_nodes / sum(seconds) / 1e6:.2f} million nodes/s"
    )
    if num_wrong:
        raise InputError(f"wrong scores in {path}: {num_wrong} of {len(lines)}; correct the lines named above")


if __name__ == "__main__":
    sys.exit(run_command(main))
