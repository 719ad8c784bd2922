"""A contestant's text, NAME[:ARGUMENT][@setting=value,...], as a value; `contestants.py` says what the names mean.

The settings begin at the last `@` that is followed by a word and `=`, with no quotation mark after it: so a path or a
command may hold an `@`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from alphazero.errors import InvalidSetting, UnknownName, quote
from alphazero.storage.schema import MOST_TEXT

NAMES = ("random", "greedy", "minimax", "mcts", "human", "python", "gtp")
"""Contestants that every game has."""
_TYPES = {int: "a whole number", float: "a number", bool: "true or false"}
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class ContestantText:
    """A contestant as somebody typed it, in its parts; it is read once, by `parse`."""

    text: str
    head: str
    """All but the settings."""
    name: str = field(compare=False)
    """The head up to its first colon."""
    argument: str = field(compare=False)
    settings: Mapping[str, str] = field(compare=False)

    @staticmethod
    def parse(text: str) -> ContestantText:
        """Raises InvalidSetting for a text that no contestant can have."""
        if len(text) > MOST_TEXT:  # else it could not be read again from the files of its games
            raise InvalidSetting(
                f"{quote(text)} has {len(text):,} characters, and a contestant has {MOST_TEXT:,} at most: put a long "
                "command into a script"
            )
        match = re.fullmatch(r"(.*)@(\w+=[^\"]*)", text, re.DOTALL)
        head, settings_text = match.groups() if match else (text, "")
        settings: dict[str, str] = {}
        for item in filter(None, settings_text.split(",")):
            name, equals, value = item.partition("=")
            if not equals or name in settings:
                raise InvalidSetting(f"{quote(text)} must give each setting once, in the form setting=value")
            settings[name] = value
        name, _, argument = head.partition(":")
        return ContestantText(text, head, name, argument, settings)

    def __str__(self) -> str:
        return self.text

    @property
    def is_path(self) -> bool:
        """The head looks like the path of a net, or there is one."""
        path = re.sub(r":\d+$", "", self.head)
        return "/" in path or os.sep in path or path.endswith(".safetensors") or (path != "" and os.path.exists(path))

    @property
    def runs_code(self) -> bool:
        """The contestant runs code that its text names; such texts are never taken from a file."""
        return self.name in ("python", "gtp")

    @property
    def plays_alone(self) -> bool:
        """The contestant plays one game at a time."""
        return self.name in ("human", "gtp")

    def at(self, path: str | Path) -> ContestantText:
        """The same contestant with its net in this file."""
        path = os.path.join(os.curdir, path)
        return replace(self, head=path, name=path, argument="")

    def refuse_argument(self) -> None:
        """Raises InvalidSetting if there is an argument."""
        if self.head != self.name:
            raise InvalidSetting(f"{self.name} takes no argument, so {quote(self.head)} means nothing")

    def whole_argument(self, what: str, example: str) -> int:
        """The argument as a whole number; raises InvalidSetting."""
        try:
            return _parse_value(self.argument, int)
        except ValueError:
            given = quote(self.argument)
            raise InvalidSetting(f"{self.name} takes {what}, a whole number, not {given}: write {example}") from None

    def settings_as(self, types: Mapping[str, type]) -> dict[str, Any]:
        """The settings, converted to these types; raises InputError."""
        values: dict[str, Any] = {}
        for name, text in self.settings.items():
            if not types:
                raise InvalidSetting(f"{self.name} takes no settings, so {quote(self.text)} means nothing")
            if name not in types:
                raise UnknownName("setting", name, types)
            try:
                values[name] = _parse_value(text, types[name])
            except (KeyError, ValueError):
                raise InvalidSetting(f"setting {name} takes {_TYPES[types[name]]}, not {quote(text)}") from None
        return values


def parse_all(texts: Iterable[str]) -> list[ContestantText]:
    """As `ContestantText.parse`, for each of the texts."""
    return [ContestantText.parse(text) for text in texts]


def _parse_value(text: str, kind: type) -> Any:
    """Raises KeyError or ValueError, also for a whole number that is very long."""
    if kind is bool:
        return _TRUTHS[text.lower()]
    if kind is int and len(text) > 18:
        raise ValueError
    return kind(text)
