"""Files of finished games: lines of JSON (`record.py`), or by their suffix what other programs write and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from alphazero.errors import InputError, StorageError
from alphazero.game.game import Game
from alphazero.game.reading import pgn, sgf, wthor
from alphazero.game.record import GameRecord, read_records, write_records
from alphazero.storage.files import atomic_write, read_bytes

MOST_BYTES = 1 << 28
"""The size of the largest file of another program that is read."""


@dataclass(frozen=True)
class Format:
    """A kind of file in which other programs keep games."""

    write: Callable[[Game, Sequence[GameRecord]], bytes]
    """Raises InvalidSetting for a game that has no words there."""
    read: Callable[[bytes], list[GameRecord]]
    """The moves may stay in the words of the file, if `Position.parse` knows them; raises InputError."""


FORMATS = {
    ".pgn": Format(pgn.write, pgn.read),
    ".sgf": Format(sgf.write_sgf, sgf.read),
    ".ggf": Format(sgf.write_ggf, sgf.read),
    ".wtb": Format(wthor.write, wthor.read),
}
"""By suffix."""


def write_games(path: Path, game: Game, records: Sequence[GameRecord]) -> None:
    """Writes the games as the suffix of the path asks for."""
    if (kind := FORMATS.get(path.suffix.lower())) is None:
        write_records(path, records)
    else:
        atomic_write(path, kind.write(game, records))


def check_format(path: Path, game: Game) -> None:
    """Raises InvalidSetting if no file with the suffix of the path can hold games of this kind."""
    if path.suffix.lower() in FORMATS:
        FORMATS[path.suffix.lower()].write(game, [])


def read_games(path: Path) -> list[GameRecord]:
    """The games in a file of any of these formats; raises StorageError."""
    if (kind := FORMATS.get(path.suffix.lower())) is None:
        return read_records(path)
    try:
        return kind.read(read_bytes(path, MOST_BYTES))
    except InputError as error:
        raise StorageError(f"{path}: {error}") from None
