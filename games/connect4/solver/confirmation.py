"""Checks labels by another solver program, which speaks the line protocol of Pascal Pons' solver.

The program reads positions from its standard input, one a line, as the columns played ("4453"), and answers each, in
order, with a line that begins with the position and its score.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import tempfile
import threading
from collections.abc import Iterator

import numpy as np

from alphazero.errors import InputError, quote
from alphazero.invocation import split_command
from alphazero.players.child_processes import end_program, start_program
from alphazero.progress import Progress
from games.connect4.solver import NO_SCORE
from games.connect4.solver.labelled import Labelled
from games.connect4.solver.notation import parse_score, score_limits

PATIENCE = 300.0
"""Seconds to wait for one answer."""
MAX_LINE = 1 << 16
"""The longest line, in characters, that is taken in one piece."""


def confirm(labelled: Labelled, command: str) -> int:
    """Asks the program about every position that one action leads to; returns how many it was asked.

    Raises InputError when it fails, answers something else than a score, or another score.
    """
    questions = list(_questions(labelled))
    with Progress("asking the solver program") as progress:
        for i, ((moves, score), answer) in enumerate(
            zip(questions, _ask(command, [moves for moves, _ in questions]), strict=True)
        ):
            _check_answer(command, moves, score, answer)
            progress.show((i + 1) / len(questions), f"{i + 1} of {len(questions)} positions")
    return len(questions)


def _questions(labelled: Labelled) -> Iterator[tuple[str, int]]:
    """`(moves, score)` of every child that is not the end of the game, each once."""
    asked: dict[str, int] = {}
    if not all(moves or not state.any() for moves, state in zip(labelled.moves, labelled.states, strict=True)):
        raise InputError(
            "a solver program reads moves, and this file has boards: write their moves, or leave the program out"
        )
    for moves, scores in zip(labelled.moves, labelled.column_scores, strict=True):
        wins_now, last = score_limits(len(moves))[1], len(moves) == 41
        for action in np.flatnonzero((scores != NO_SCORE) & (scores != wins_now)):
            if not last:
                asked.setdefault(f"{moves}{action + 1}", -int(scores[action]))
    yield from asked.items()


def _check_answer(command: str, moves: str, score: int, answer: str) -> None:
    words = answer.split()
    said = parse_score(words[1]) if len(words) > 1 and words[0] == moves else None
    if said is None:
        raise InputError(
            f"{command} answered {quote(answer.strip())} to {moves}; it should begin with {moves} and the score"
        )
    low, high = score_limits(len(moves))
    if not low <= said <= high:
        raise InputError(f"{command} gives {moves} the score {words[1]:.20}, but it must lie between {low} and {high}")
    if said != score:
        raise InputError(f"{command} gives {moves} the score {said}, but its label is {score}")


def _ask(command: str, questions: list[str]) -> Iterator[str]:
    """The program's answers, one line for each question."""
    if not command.strip():
        raise InputError(f"cannot start the solver program {quote(command)}: it is empty; give a command line")
    with tempfile.TemporaryFile() as complaints:
        try:
            program = start_program(split_command(command), complaints)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"cannot start the solver program {quote(command)}: {reason}; give a command line"
            ) from None
        answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threads = [
            threading.Thread(target=_write, args=(program, questions), daemon=True),
            threading.Thread(target=_read, args=(program, answers), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            for question in questions:
                try:
                    answer = answers.get(timeout=PATIENCE)
                except queue.Empty:
                    raise InputError(f"{command} has not answered to {question} for {PATIENCE:g} s") from None
                if answer is None:
                    try:
                        code = program.wait(PATIENCE)
                    except subprocess.TimeoutExpired:
                        raise InputError(f"{command} closed its output without an answer to {question}") from None
                    complaints.seek(0)
                    said = complaints.read().decode(errors="replace").strip().splitlines()
                    what = f", saying {quote(said[-1], 200)}" if said else ""
                    raise InputError(f"{command} ended (exit code {code}{what}) without an answer to {question}")
                yield answer
        finally:
            end_program(program)
            for thread in threads:
                # each closes its pipe; not for ever: a child that left the program's group may hold it open
                thread.join(1.0)


def _write(program: subprocess.Popen[str], questions: list[str]) -> None:
    assert program.stdin is not None
    try:
        with program.stdin as pipe:
            for question in questions:
                pipe.write(f"{question}\n")
    except (OSError, ValueError):
        pass  # the program is gone; who reads its answers will see that


def _read(program: subprocess.Popen[str], answers: queue.SimpleQueue[str | None]) -> None:
    assert program.stdout is not None
    with program.stdout, contextlib.suppress(OSError, ValueError):
        while line := program.stdout.readline(MAX_LINE):
            if line.strip():
                answers.put(line)
    answers.put(None)
