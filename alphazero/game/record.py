"""Finished games as lines of JSON, in the notation of their game: to keep, to read, to play through again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from alphazero.errors import InputError, StorageError
from alphazero.game import Game, Position
from alphazero.storage.files import append, atomic_write, parse_json, read_bytes, to_json

MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class GameRecord:
    """One game of a match.

    >>> import alphazero as az
    >>> record = az.match("random", "greedy", "tictactoe", games=2).games[0]
    >>> record.contestants
    ('random', 'greedy')
    >>> record.positions(az.load_game("tictactoe"))[-1].terminal
    True
    """

    game: str
    """The name by which the game is loaded."""
    number: int
    """The game's number in the match, from 0; games 2i and 2i + 1 begin with the same opening."""
    contestants: tuple[str, str]
    """The first player's and the second player's, with their settings."""
    opening: tuple[str, ...]
    """The moves before the contestants took over."""
    moves: tuple[str, ...]
    """The moves that the contestants chose."""
    result: str
    """`1-0`, `0-1` or `1/2-1/2`, seen by the first player; `*` for a game that goes on."""
    seconds: tuple[float, float]
    """Time that each player took, its share of the time for all games that were searched at once."""
    seed: int
    """The seed of the match."""
    forfeit: str = ""
    """The player who gave the game up before its end, and the reason; "" if nobody did."""

    def positions(self, game: Game) -> list[Position]:
        """All positions from the start to the end; raises IllegalAction."""
        found = [game.start()]
        for word in (*self.opening, *self.moves):
            found.append(found[-1].play(found[-1].parse(word)))
        return found


def words_of(game: Game, actions: Sequence[int]) -> list[str]:
    """A game's actions in its notation."""
    words, position = [], game.start()
    for action in actions:
        words.append(position.format(action))
        position = position.play(action)
    return words


def write_records(path: Path, records: Sequence[GameRecord]) -> None:
    """One game a line."""
    atomic_write(path, _lines(records))


def append_records(path: Path, records: Sequence[GameRecord]) -> None:
    """Adds the games to those in the file, durably; after a kill meanwhile, `drop_torn_line` comes before reading."""
    append(path, _lines(records))


def _lines(records: Sequence[GameRecord]) -> bytes:
    lines = [to_json({**asdict(record), "seconds": [round(s, 6) for s in record.seconds]}, None) for record in records]
    return b"".join(line.strip() + b"\n" for line in lines)


def read_records(path: Path) -> list[GameRecord]:
    """The games that `write_records` wrote; raises InputError that names the wrong line."""
    try:
        lines = read_bytes(path, MAX_BYTES).splitlines()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}") from error
    return [_record(parse_json(line, f"{path}, line {i}"), f"{path}, line {i}") for i, line in enumerate(lines, 1)]


def _record(value: Any, where: str) -> GameRecord:
    kinds = {
        "game": str, "number": int, "contestants": list, "opening": list, "moves": list, "result": str,
        "seconds": list, "seed": int, "forfeit": str,
    }  # fmt: skip
    if isinstance(value, dict):
        value = {"forfeit": "", **value}  # older files do not have it
    if not isinstance(value, dict) or {name: type(part) for name, part in value.items()} != kinds:
        raise InputError(f"{where} is not a game written by --save-games: it must hold {', '.join(kinds)}")
    words = [*value["contestants"], *value["opening"], *value["moves"]]
    if not all(isinstance(word, str) for word in words) or len(value["contestants"]) != 2 or len(value["seconds"]) != 2:
        raise InputError(f"{where} is not a game written by --save-games: contestants and moves must be words")
    parts: dict[str, Any] = {name: tuple(part) if isinstance(part, list) else part for name, part in value.items()}
    return GameRecord(**parts)
