"""The messages between the page and an engine.

The page asks, the engine answers, all in JSON. A question has a number, and its answers carry the same number:

    {"id": 7, "ask": "analyse", "game": "tictactoe", "actions": [4], ...}
    {"id": 7, "simulations": 96, "lines": [...], "more": true}      more answers follow
    {"id": 7, "simulations": 400, "lines": [...]}                   the last answer
    {"id": 7, "error": "the game is over: no action can be played"}
    {"cancel": 7}                                                   the page needs no more answers

`Question` checks every field when it is read. Whoever answers them needs no browser and no server: the page talks to
any engine that keeps to this.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from alphazero.errors import InputError

MOST_BYTES = 1 << 16
"""Size of the largest message that an engine takes."""
MOST_ACTIONS = 4096
"""Actions of the longest game that the page may ask about."""
MOST_NAME = 255
"""Characters in the name of a folder, as file systems have them."""
MOST_NUMBER = 1 << 53
"""Larger numbers are not exact in JavaScript."""


class BadMessage(InputError):
    """A message that the page does not send."""


class Fields:
    """A group of fields, which are checked when they are read."""

    def __init__(self, fields: dict[str, Any]):
        self._fields = fields

    def has(self, name: str) -> bool:
        """The field is there."""
        return self._fields.get(name) is not None

    def text(self, name: str, most: int = 200, printable: bool = True) -> str:
        """The field as text of at most so many characters; raises BadMessage."""
        value = self._fields.get(name)
        if not isinstance(value, str) or len(value) > most or (printable and not value.isprintable()):
            raise BadMessage(f"{name} must be {'printable ' if printable else ''}text of at most {most} characters")
        return value

    def number(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """The field as a whole number from `low` to `high`; raises BadMessage."""
        value = self._fields.get(name, default)
        if type(value) is not int or not low <= value <= high:
            raise BadMessage(f"{name} must be a whole number from {low} to {high}")
        return value

    def flag(self, name: str) -> bool:
        """The field as true or false; a missing one is false."""
        value = self._fields.get(name, False)
        if not isinstance(value, bool):
            raise BadMessage(f"{name} must be true or false")
        return value

    def actions(self, name: str = "actions") -> tuple[int, ...]:
        """The field as a list of actions; raises BadMessage."""
        value = self._fields.get(name)
        if (
            not isinstance(value, list)
            or len(value) > MOST_ACTIONS
            or not all(type(action) is int and 0 <= action < MOST_NUMBER for action in value)
        ):
            raise BadMessage(f"{name} must be a list of at most {MOST_ACTIONS} actions")
        return tuple(value)

    def group(self, name: str) -> Fields:
        """The field as a group of fields; raises BadMessage."""
        value = self._fields.get(name)
        if not isinstance(value, dict):
            raise BadMessage(f"{name} must be a group of fields")
        return Fields(value)


class Question(Fields):
    """A message of the page that wants an answer."""

    def __init__(self, fields: dict[str, Any]):
        super().__init__(fields)
        self.id = self.number("id", 0, MOST_NUMBER)
        """The number that its answers carry."""
        self.ask = self.text("ask", 40)
        """The kind of the question."""


def plain_number(value: Any) -> Any:
    """A number of numpy's as Python's, for JSON: a game may tell cells or players by such. Raises TypeError."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no part of a message")


def parse_message(text: str) -> Question | int:
    """A question, or the number of the one that is cancelled; raises BadMessage."""
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise BadMessage(f"a message has at most {MOST_BYTES} bytes")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise BadMessage("a message must be JSON") from None
    if not isinstance(fields, dict):
        raise BadMessage("a message must be a group of fields")
    cancelled = fields.get("cancel")
    if cancelled is not None:
        if type(cancelled) is not int:
            raise BadMessage("cancel must be the number of a question")
        return cancelled
    return Question(fields)
