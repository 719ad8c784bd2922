"""Reads moves as people and other programs write them: with numbers, hyphens, and passes spelled or left out.

A game's own notation comes first: what it reads means that. Only a text that it does not read is taken for another
spelling, so no text has two meanings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from alphazero.errors import IllegalAction

SPELLINGS = {word: "pass" for word in ("pass", "pa", "ps", "--", "@@")} | {"swap": "swap", "swap-pieces": "swap"}
"""Words of other programs, in small letters, and ours for the same. Edax writes pa and ps, programs for Hex
swap-pieces; their swap-sides is another move: the stone stays, and the players change their sides."""
SQUARES = re.compile(r"([a-z]\d+)[-x:]?([a-z]\d+)")
OTHER_MOVES = ("swap-sides",)
"""Moves of other programs, which no game has; a hyphen in them joins no moves."""
JOINED = re.compile(r"([a-z]\d{1,2})-?([a-z].*)", re.IGNORECASE)
RESULT = re.compile(r"(?<=\S)\s+(1-0|0-1|1/2-1/2|\*)\s*$")
"""Results that may stand behind the moves."""
NUMBER = re.compile(r"(?<![^\s,])(\d{1,4})(\.\.\.|\.)(?!\.)[\s,]*(?=\S)")


def read_moves(position: Any, text: str) -> Any:
    """The position after the moves of a text; raises IllegalAction.

    A forced pass or roll may be left out. Moves may be numbered from 1, and joined, also by hyphens. The game's result
    may stand behind them.
    """
    try:
        return _read(position, text)
    except IllegalAction:
        without = _without_numbers(RESULT.sub("", text))
        if without == text:
            raise
    return _read(position, without)


def meant_by(text: str, words: Mapping[int, str]) -> int | None:
    """The action whose word another program spells as `text`; None if that is no action, or several."""
    found = [action for action, word in words.items() if _plain(word) == _plain(text)]
    return found[0] if len(found) == 1 else None


def _plain(word: str) -> str:
    """The common form of the spellings of a move: `pass` of PA, `a2b3` of a2-b3 and a2xb3."""
    squares = SQUARES.fullmatch(word.lower())
    return squares[1] + squares[2] if squares else SPELLINGS.get(word.lower(), word)


def _read(position: Any, text: str) -> Any:
    for word in position.game.split_moves(text):
        while word:
            position, word = _read_first(position, word)
    return position


def _read_first(position: Any, word: str) -> tuple[Any, str]:
    """The position after the first move of a word, and what is left of the word behind it."""
    try:
        return position.play(position.parse(word)), ""
    except IllegalAction:
        legal = position.legal_actions
        if len(legal) == 1 and position.format(legal[0]).lower() in ("pass", "roll"):
            with suppress(IllegalAction):
                return _read_first(position.play(legal[0]), word)
        joined = JOINED.fullmatch(word)
        first, rest = joined.groups() if joined else word.partition("-")[::2]
        if first and rest and word.lower() not in OTHER_MOVES:
            with suppress(IllegalAction):
                return _read_first(position, first)[0], rest
        raise


def _without_numbers(text: str) -> str:
    """The moves without the numbers before them, as in `1. f5 d6 2. c3`; raises IllegalAction unless they count up."""
    count = 0
    for number, dots in NUMBER.findall(text):
        # 1... stands before the second player's move; the first player's may be a pass that is left out
        if int(number) not in ((count + 1,) if dots == "." else (count, count + 1)):
            raise IllegalAction(f"move numbers count 1., 2., 3. and so on: {number}{dots} is out of place")
        count = int(number)
    return NUMBER.sub(" ", text)
