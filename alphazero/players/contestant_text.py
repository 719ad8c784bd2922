"""A contestant's text in its parts, NAME[:ARGUMENT][@setting=value,...], and the values of its settings."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from alphazero.errors import InvalidSetting, UnknownName, quote

_TYPES = {int: "a whole number", float: "a number", bool: "true or false"}
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True)
class ContestantText:
    """A contestant's text in its parts."""

    whole: str
    head: str
    """All but the settings."""
    name: str
    """The head up to its first colon."""
    argument: str
    settings: Mapping[str, str]


def split_text(text: str) -> ContestantText:
    match = re.fullmatch(r"(.*)@(\w+=[^\"]*)", text, re.DOTALL)
    head, settings_text = match.groups() if match else (text, "")
    settings: dict[str, str] = {}
    for item in filter(None, settings_text.split(",")):
        name, equals, value = item.partition("=")
        if not equals:
            raise InvalidSetting(f"{quote(text)}: {quote(item)} is not of the form setting=value")
        if name in settings:
            raise InvalidSetting(f"{quote(text)} gives {name} twice")
        settings[name] = value
    name, _, argument = head.partition(":")
    return ContestantText(text, head, name, argument, settings)


def is_path(parts: ContestantText) -> bool:
    path = re.sub(r":\d+$", "", parts.head)
    return "/" in path or os.sep in path or path.endswith(".safetensors") or (path != "" and os.path.exists(path))


def refuse_settings(parts: ContestantText) -> None:
    if parts.settings:
        raise InvalidSetting(f"{parts.name} takes no settings, so {quote(parts.whole)} means nothing")


def refuse_argument(parts: ContestantText) -> None:
    if parts.argument or parts.head != parts.name:
        raise InvalidSetting(f"{parts.name} takes no argument, so {quote(parts.head)} means nothing")


def whole_argument(parts: ContestantText, what: str, example: str) -> int:
    try:
        return _parse_whole(parts.argument)
    except ValueError:
        given = f"not {quote(parts.argument)}" if parts.argument else "which is missing"
        raise InvalidSetting(f"{parts.name} takes {what} as a whole number, {given}: write {example}") from None


def parse_settings(parts: ContestantText, types: Mapping[str, type]) -> dict[str, Any]:
    """The settings of a contestant, converted to their types."""
    values: dict[str, Any] = {}
    for name, text in parts.settings.items():
        if name not in types:
            raise UnknownName("setting", name, types)
        values[name] = _parse_setting(name, text, types[name])
    return values


def _parse_setting(name: str, text: str, kind: type) -> int | float | bool:
    try:
        if kind is bool:
            return _TRUTHS[text.lower()]
        return _parse_whole(text) if kind is int else float(text)
    except (KeyError, ValueError):
        raise InvalidSetting(f"setting {name} takes {_TYPES[kind]}, not {quote(text)}") from None


def _parse_whole(text: str) -> int:
    """The whole number in `text`; raises ValueError, also if it is very long."""
    if len(text) > 18:
        raise ValueError
    return int(text)
