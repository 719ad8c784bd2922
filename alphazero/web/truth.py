"""Exact results for the page: a game's oracle in numbers, and its judgement of a move."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from alphazero.game import Position
from alphazero.game.spec import Truth

WORDS = (("win", 1), ("draw", 0), ("los", -1))
"""The first words of an oracle's answers, and the results that they mean."""
NAMES = {1: "win", 0: "draw", -1: "loss"}


@dataclass(frozen=True)
class Result:
    """The exact result of one legal action."""

    action: int
    words: str
    """As the oracle says it, "wins in 5"."""
    outcome: int
    """+1, 0 or -1 for the player to move."""
    distance: int | None
    """The number in the words: moves to the end or points; None if there is none."""


def results_of(truth: Truth | None, position: Position) -> list[Result]:
    """The exact results of all legal actions, the best first; empty where nobody knows them in time."""
    if truth is None or position.terminal:
        return []
    found = []
    for action, words in truth(position).items():
        outcome = next((outcome for begin, outcome in WORDS if words.startswith(begin)), None)
        if outcome is None:
            return []
        number = re.search(r"\d+", words)
        found.append(Result(int(action), words, outcome, int(number[0]) if number else None))
    return found


def judge_by_truth(results: Sequence[Result], played: int) -> Mapping[str, Any] | None:
    """The judgement of a move by the exact results at its position; None where they are not known.

    `right`: it keeps the best outcome. `perfect`: no move has a better result. `choice`: there was a worse outcome to
    choose. `sentence` says what a wrong move does.
    """
    mine = next((result for result in results if result.action == played), None)
    if mine is None:
        return None
    best = results[0]
    right = mine.outcome == best.outcome
    sentence = f"{mine.words}; the best move {best.words}"
    if not right:
        sentence = f"turns a {NAMES[best.outcome]} into a {NAMES[mine.outcome]}: {sentence}"
    return {
        "right": right,
        "perfect": mine.words == best.words,
        "choice": any(result.outcome != best.outcome for result in results),
        "outcome": mine.outcome,
        "best": best.action,
        "sentence": "" if mine.words == best.words else sentence,
    }
