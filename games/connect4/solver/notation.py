"""Positions as people and other programs write them: the columns played so far, 1-7, without spaces ("4453").

What is wrong is said with its line and column in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from alphazero.errors import IllegalAction, InputError, count_of, quote
from alphazero.game import Position
from alphazero.storage.files import read_bytes
from games.connect4.game import COLUMNS, ROWS, Connect4

MAX_FILE_BYTES = 1 << 28
GAME = Connect4()


def parse_moves(text: str, where: str = "", offset: int = 0) -> Position:
    """The position after the moves `text`; raises InputError.

    `where` (such as "file.txt, line 3") and `offset` (characters before the text in that line) go into the message.
    """
    position = GAME.start()
    for i, character in enumerate(text):
        place = f"{where}, column {offset + i + 1}" if where else f"move {i + 1} of {quote(text)}"
        if character not in "1234567":
            raise InputError(
                f"{place}: {quote(character)} is no column of the board; moves are digits from 1 to {COLUMNS}"
            )
        if position.terminal:
            raise InputError(f"{place}: the game was over after {count_of(i, 'move')}; leave out what follows")
        try:
            position = position.play(int(character) - 1)
        except IllegalAction:
            legal = ", ".join(position.format(action) for action in position.legal_actions)
            raise InputError(f"{place}: column {character} is full; choose one of {legal}") from None
    return position


def format_moves(actions: Iterator[int] | tuple[int, ...]) -> str:
    """Actions as `parse_moves` reads them."""
    return "".join(str(action + 1) for action in actions)


def _board(text: str, place: str) -> Position | None:
    """The position of a board that is not over; None if the text is no board; raises InputError."""
    try:
        position = GAME.read_board(text)
    except ValueError as error:
        raise InputError(f"{place}: this is no board: {error}") from None
    if position is not None and position.terminal:
        raise InputError(f"{place}: the game is over here; there is nothing to solve")
    return position


def num_stones(position: Position) -> int:
    """The stones on the board; the ply, unless the position was set up."""
    return int(np.bitwise_count(position.state).sum())


def check_score(score: int, position: Position, place: str) -> int:
    """`score`, if a position of that ply can have it; raises InputError."""
    stones = num_stones(position)
    low, high = score_limits(stones)
    if not low <= score <= high:
        raise InputError(
            f"{place}: {score} is an impossible score; after {count_of(stones, 'move')} it lies between {low} and "
            f"{high}"
        )
    return score


def score_limits(ply: int) -> tuple[int, int]:
    """The lowest and highest score after `ply` moves: the opponent's next stone wins, the mover's wins."""
    return -((COLUMNS * ROWS - ply) // 2), (COLUMNS * ROWS + 1 - ply) // 2


def read_lines(path: str | Path) -> Iterator[tuple[str, str]]:
    """`(place, text)` of every line of a text file that is not blank; the place is "PATH, line N"."""
    content = read_bytes(path, MAX_FILE_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        column = error.start - content.rfind(b"\n", 0, error.start)
        raise InputError(
            f"{path}, line {line}, column {column}: this is not a text file; give one position a line"
        ) from None
    lines = [(f"{path}, line {number}", line) for number, line in enumerate(text.split("\n"), 1)]
    if not text.strip():
        raise InputError(f"{path}, line 1, column 1: the file is empty; give one position a line")
    return iter([(place, line) for place, line in lines if line.strip()])


def parse_scored_line(line: str, place: str) -> tuple[Position, int | None]:
    """A line of Pascal Pons' test files, `moves score`, or a board with or without a score; raises InputError."""
    words = line.split()
    last = parse_score(words[-1])
    text = line if last is None else line[: line.rindex(words[-1])]
    if not words[0].isdigit() and (board := _board(text, place)) is not None:
        return board, None if last is None else check_score(last, board, f"{place}, column {len(text) + 1}")
    start = line.index(words[0])
    if len(words) != 2:
        raise InputError(
            f"{place}, column {start + 1}: a line holds moves and a score, as in '4453 -2', not {quote(line.strip())}"
        )
    position = parse_moves(words[0], place, start)
    if position.terminal:
        raise InputError(f"{place}, column {start + len(words[0])}: this move ends the game; there is nothing to solve")
    place = f"{place}, column {line.index(words[1], start + len(words[0])) + 1}"
    score = parse_score(words[1])
    if score is None:
        raise InputError(f"{place}: a score is a whole number, not {quote(words[1])}")
    return position, check_score(score, position, place)


def parse_score(text: str) -> int | None:
    """The whole number that `text` is; None if it is none. More than six digits count as a million."""
    match = re.fullmatch(r"(-?)0*([0-9]+)", text)
    if match is None:
        return None
    size = int(match[2]) if len(match[2]) <= 6 else 1_000_000
    return -size if match[1] else size
