"""Reads moves as people and other programs write them: with numbers, hyphens, and passes spelled or left out.

A game's own notation comes first: what it reads means that. Only a text that it does not read is taken for another
spelling, so no text has two meanings.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, SupportsIndex

from alphazero.errors import IllegalAction, InputError, listed, quote
from alphazero.game.reading.san import meant_by_san

SPELLINGS = {word: "pass" for word in ("pass", "pa", "ps", "--", "@@")} | {"swap": "swap", "swap-pieces": "swap"}
"""Words of other programs, in small letters, and ours for the same. Edax writes pa and ps, programs for Hex
swap-pieces; their swap-sides is another move: the stone stays, and the players change their sides."""
SQUARES = re.compile(r"([a-z]\d+)[-x:]?([a-z]\d+)")
OTHER_MOVES = ("swap-sides",)
"""Moves of other programs, which no game has; a hyphen in them joins no moves."""
JOINED = re.compile(r"([a-z]\d{1,2})-?([a-z].*)", re.IGNORECASE)
RESULT = re.compile(r"(?<=\S)\s+(1-0|0-1|1/2-1/2|\*)\s*$")
"""Results that may stand behind the moves."""
NOTES = re.compile(r'\{[^{}]*\}|\$\d+|(?<=\s)e\. ?p\.|\[(?!FEN|SetUp)\w+\s+"(?:[^"\\]|\\.)*"\]')
"""Comments, marks, tags and the e.p. of PGN, which stand beside the moves; but no tag of another board."""
JUMP = re.compile(r"(\w+)x(\w+)")
MOVES = re.compile(r"\smoves(?:\s|$)")
NUMBER = re.compile(r"(?<![^\s,])(\d{1,4})(\.\.\.|\.)(?!\.)[\s,]*(?=\S)")


def read_position(game: Any, text: str) -> Any:
    """The position of a board, or after moves; raises IllegalAction, or InputError for a board.

    Behind a board and the word `moves` may stand moves, as programs for chess write them; not in a remark behind `;`.
    """
    before, *behind = MOVES.split(text.partition(";")[0], maxsplit=1)
    try:
        board = game.read_board(before if behind else text)
    except ValueError as error:
        raise InputError(f"this is no board of {game.name}: {error}") from None
    return read_moves(game.start(), text) if board is None else read_moves(board, "".join(behind))


def read_moves(position: Any, text: str) -> Any:
    """The position after the moves of a text; raises IllegalAction.

    A forced pass or roll may be left out. Moves may be numbered from 1, and joined, also by hyphens. The game's result
    may stand behind them, and comments and tags as of PGN around them.
    """
    try:
        return _read(position, text)
    except IllegalAction:
        without = _without_numbers(RESULT.sub("", NOTES.sub(" ", text)))
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
        if (jumped := _jumped(position, word)) is not None:
            return jumped, ""
        joined = JOINED.fullmatch(word)
        first, rest = joined.groups() if joined else word.partition("-")[::2]
        if first and rest and word.lower() not in OTHER_MOVES:
            with suppress(IllegalAction):
                return _read_first(position, first)[0], rest
        raise


def _jumped(position: Any, word: str) -> Any:
    """The position after the jumps of one player from the first to the last square of a word such as 14x30.

    None if there are none, or several ways.
    """
    ends, found = JUMP.fullmatch(word), []

    def follow(at: Any, square: str) -> None:
        for action in at.legal_actions:
            step = JUMP.fullmatch(at.format(action))
            if step and step[1] == square:
                after = at.play(action)
                if after.to_play == at.to_play and not after.terminal:
                    follow(after, step[2])
                elif ends and step[2] == ends[2]:
                    found.append(after)

    if ends:
        follow(position, ends[1])
    return found[0] if len(found) == 1 else None


def _without_numbers(text: str) -> str:
    """The moves without the numbers before them, as in `1. f5 d6 2. c3`; raises IllegalAction unless they count up."""
    count = 0
    for number, dots in NUMBER.findall(text):
        # 1... stands before the second player's move; the first player's may be a pass that is left out
        if int(number) not in ((count + 1,) if dots == "." else (count, count + 1)):
            raise IllegalAction(f"move numbers count 1., 2., 3. and so on: {number}{dots} is out of place")
        count = int(number)
    return NUMBER.sub(" ", text)


def parse_action(position: Any, text: str) -> int:
    """The action that `Position.parse` finds."""
    if not isinstance(text, str):
        raise IllegalAction(f"position.parse takes a text, not {quote(text)}: an action needs no parsing")
    text = text.strip()
    # a notation may be a dict, or `re.match(...)`
    with suppress(ValueError, LookupError, TypeError, AttributeError):
        action = position.game.parse_action(text, position.state)
        if not position.chances and action in position.legal_actions:
            return int(action)
    words = {legal: position.format(legal) for legal in position.legal_actions}
    if (found := meant_by(text, words)) is not None or (found := meant_by_san(position, text)) is not None:
        return found
    legal = listed(words.values()) or "none, the game is over"
    raise IllegalAction(f"{quote(text)} is not a legal action here (legal: {legal})")


def whole(action: SupportsIndex) -> int:
    """The action as a number; raises IllegalAction."""
    try:
        return operator.index(action)
    except TypeError:
        law = f"an action is a whole number, not {quote(action)}: `position.parse` makes one of a text"
        raise IllegalAction(law) from None
