"""Reads Othello's WTHOR files (.wtb), which hold the games of tournaments since 1977.

https://www.ffothello.org/wthor/Format_WThor.pdf. Names of players are in other files: here are their numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from alphazero.errors import InputError, InvalidSetting
from alphazero.game.game import Game
from alphazero.game.record import RESULTS, GameRecord

HEADER, GAME = struct.Struct("<4BIHHBBBx"), struct.Struct("<HHHBB60s")
MOST_GAMES = 1 << 17
"""As many as all tournaments have, and more than any file."""


def write(game: Game, records: Sequence[GameRecord]) -> bytes:
    """Raises InvalidSetting."""
    raise InvalidSetting(f"WTHOR files are read and not written: write games of {game.name} into .jsonl")


def read(data: bytes) -> list[GameRecord]:
    """The games, without their passes; raises InputError."""
    if len(data) < HEADER.size:
        raise InputError("it is too short for a WTHOR file")
    *_, games, _, _, size, solitaire, _ = HEADER.unpack_from(data)
    if games > MOST_GAMES or len(data) != HEADER.size + GAME.size * games:
        raise InputError(f"a WTHOR file of {games:,} games has {HEADER.size + GAME.size * games:,} bytes")
    if size not in (0, 8) or solitaire:
        raise InputError("it is no WTHOR file of games on 8 x 8 squares")
    return [_record_of(values, number) for number, values in enumerate(GAME.iter_unpack(data[HEADER.size :]))]


def _record_of(values: tuple[int, int, int, int, int, bytes], number: int) -> GameRecord:
    _, black, white, discs, _, squares = values
    moves = list[str]()
    for square in squares.partition(b"\0")[0]:
        row, column = divmod(square, 10)
        if not (1 <= row <= 8 and 1 <= column <= 8):
            raise InputError(f"game {number + 1} has a move on {square}, which is no square")
        moves.append(f"{'abcdefgh'[column - 1]}{row}")
    names = f"WTHOR player {black}", f"WTHOR player {white}"
    result = RESULTS[(discs > 32) - (discs < 32)]
    return GameRecord("othello", number, names, (), tuple(moves), result, (0.0, 0.0), 0)
