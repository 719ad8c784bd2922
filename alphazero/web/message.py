"""The messages between the page and an engine.

The page asks, the engine answers, all in JSON. A question has a number, and its answers carry the same number:

    {"id": 7, "ask": "analyse", "game": "tictactoe", "actions": [4], ...}
    {"id": 7, "simulations": 96, "lines": [...], "more": true}      more answers follow
    {"id": 7, "simulations": 400, "lines": [...]}                   the last answer
    {"id": 7, "error": "the game is over: no action can be played"}
    {"cancel": 7}                                                   the page needs no more answers

Whoever answers them needs no browser and no server: the page talks to any engine that keeps to this.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from alphazero.errors import InputError
from alphazero.storage.schema import MOST_TEXT

MOST_BYTES = 1 << 20
"""Size of the largest message that an engine takes."""
MOST_ACTIONS = 4096
"""Actions of the longest game that the page may ask about."""
MOST_SIMULATIONS = 200_000
MOST_NAME = 255
"""Characters in the name of a folder, as file systems have them."""
SIDES = 2
"""Analyses of a viewer side by side."""

Number = Annotated[int, Meta(ge=0, le=1 << 53)]
"""Larger ones are not exact in JavaScript."""
Actions = Annotated[tuple[Number, ...], Meta(max_length=MOST_ACTIONS)]
Name = Annotated[str, Meta(max_length=MOST_NAME + len("run:"))]
Title = Annotated[str, Meta(max_length=MOST_TEXT)]
Generation = Annotated[int, Meta(ge=0, le=10**9)]


class BadMessage(InputError):
    """A message that the page does not send."""


class Chosen(msgspec.Struct, frozen=True):
    """A contestant that was chosen, its simulations or depth, and the generation of a run."""

    id: Name
    step: Number | None = None
    generation: Generation | None = None


class Question(msgspec.Struct, frozen=True):
    """A message of the page that wants an answer; each kind of question has some of the fields."""

    id: Number
    """The number that its answers carry."""
    ask: Annotated[str, Meta(max_length=40)]
    """The kind of the question."""
    game: Name = ""
    actions: Actions = ()
    board: Annotated[str, Meta(max_length=2000)] | None = None
    """The text of a board that takes the place of the start."""
    moves: Annotated[str, Meta(max_length=20_000)] | None = None
    """Moves, or without `board` such a text, in place of the actions."""
    player: Chosen | None = None
    seed: Annotated[int, Meta(ge=0, le=1 << 31)] = 0
    side: Annotated[int, Meta(ge=0, lt=SIDES)] = 0
    limit: Annotated[int, Meta(ge=1, le=MOST_SIMULATIONS)] = 1
    fresh: bool = False
    """The analysis begins with an empty tree."""
    path: Actions = ()
    simulations: Annotated[int, Meta(ge=1, le=2000)] = 100
    text: str = ""
    first: Title = ""
    second: Title = ""
    others: Annotated[tuple[Title, ...], Meta(max_length=6)] = ()
    """The names of the players; more than two in a game for more."""
    resigned: Annotated[int, Meta(ge=0, le=7)] | None = None
    """The player who has lost the game by giving up, and why."""
    reason: Title | None = None
    name: Name = ""
    generation: Generation = 0
    after: Annotated[int, Meta(ge=-1, le=10**9)] = -1
    number: Number = 0


def question_of(fields: Any) -> Question:
    """The question with these fields, each of its type and within its bounds; raises BadMessage."""
    try:
        return msgspec.convert(fields, Question)
    except msgspec.ValidationError as error:
        raise BadMessage(f"this is no question of the page: {error}") from None


def parse_message(text: str) -> Question | int:
    """A question, or the number of the one that is cancelled; raises BadMessage."""
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise BadMessage(f"a message has at most {MOST_BYTES} bytes")
    try:
        fields = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise BadMessage("a message must be JSON") from None
    cancelled = fields.get("cancel") if isinstance(fields, dict) else None
    return cancelled if type(cancelled) is int else question_of(fields)
