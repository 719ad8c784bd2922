"""Positions whose exact scores are known, and files of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from alphazero.errors import InputError
from alphazero.game import Game, Position
from alphazero.storage.files import read_bytes

MAX_FILE_BYTES = 1 << 28
LINE = re.compile(r"(.*?)(?:\s+([+-]?\d{1,6}))?\s*(?:;(.*))?")
MOVE_SCORE = re.compile(r"([^\s:;]+)[: ]\s*([+-]?\d{1,6})\b")


@dataclass(frozen=True)
class Labelled:
    """Positions with their truth; row i of everything belongs together."""

    names: list[str]
    """The name of each of the n positions; empty if they have none."""
    states: np.ndarray
    """`uint64[n, K]`."""
    scores: np.ndarray
    """`int8[n, A]`, for the player to move; NO_SCORE where an action is not legal."""
    value_states: np.ndarray
    """`uint64[m, K]`: the positions whose value is asked for."""
    value_scores: np.ndarray
    """`int8[m]`, for the player to move."""


class Known(NamedTuple):
    """A position of a file, at a place for messages, with the scores that the file gives: its own, and of actions."""

    where: str
    position: Position
    score: int | None
    move_scores: dict[int, int]


def read_positions(path: Path, game: Game) -> list[Known]:
    """The positions of a file, one a line: moves or a board, then perhaps a score, then perhaps the scores of moves.

    As in `4453 -2` and `--XO... X; G8:+18; H1:+12`. Lines that begin with % are remarks. Raises InputError, which names
    the line, for what is no position and for one that is over.
    """
    found = []
    for number, line in enumerate(read_bytes(path, MAX_FILE_BYTES).decode("utf-8-sig", "replace").split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("%"):
            continue
        where, parts = f"{path}, line {number}", LINE.fullmatch(line.strip())
        text, score, more = parts.groups() if parts else (line, None, None)
        try:
            position = game.position(text)
            moves = {position.parse(move): int(its) for move, its in MOVE_SCORE.findall(more or "")}
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if position.terminal:
            raise InputError(f"{where}: the game is over here, so there is nothing to solve; leave the line out")
        found.append(Known(where, position, None if score is None else int(score), moves))
    if not found:
        raise InputError(f"{path} holds no positions; a line is a position as moves or a board, and perhaps its score")
    return found


def load_file(
    path: Path,
    game: Game,
    solve: Callable[[np.ndarray], np.ndarray],
    wanted: Callable[[Position], bool] = lambda position: True,
) -> Labelled:
    """The `wanted` positions of a file, whose scores `solve(states)` finds and whose values are asked for as well.

    Raises InputError, also where a score of the file is not the true one.
    """
    known = [one for one in read_positions(path, game) if wanted(one.position)]
    if not known:
        raise InputError(f"{path}: all positions are too far from the end to be solved")
    states = np.array([one.position.state for one in known])
    scores = solve(states)
    best = scores.max(axis=1)  # NO_SCORE is lower than any score
    for one, row, score in zip(known, scores, best.tolist(), strict=True):
        given = [("", one.score, score)]
        given += [(f" of {one.position.format(move)}", said, int(row[move])) for move, said in one.move_scores.items()]
        for which, said, right in given:
            if said not in (None, right):
                raise InputError(f"{one.where}: the score{which} is {right}, not {said}; correct it or leave it out")
    return Labelled([one.where.rpartition(", ")[2] for one in known], states, scores, states, best)
