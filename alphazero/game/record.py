"""Finished games as lines of JSON, in the notation of their game: to keep, to read, to play through again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from alphazero.errors import IllegalAction, InputError, count_of, shorten
from alphazero.game import Game, Position
from alphazero.storage.files import append, atomic_write, parse_line, read_lines, sealed_line, to_json
from alphazero.storage.schema import Count, Seconds, Text, Texts, check

Result = Literal["1-0", "0-1", "1/2-1/2", "*"]
RESULTS: dict[int, Result] = {1: "1-0", 0: "1/2-1/2", -1: "0-1"}
"""By outcome for the first player."""


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

    game: Text
    """The name by which the game is loaded."""
    number: Count
    """The game's number in the match, from 0; games 2i and 2i + 1 begin with the same opening."""
    contestants: Annotated[
        tuple[Text, ...], Meta(min_length=2, max_length=8, description="the names of two players, or of two to eight")
    ]
    """The first player's and the second player's, with their settings. In a game for n > 2 there are n names, one for
    each seat; or two: the first is alone in seat `number` // 2 mod n, counted from 0, and the second has all others."""
    opening: Texts
    """The moves before the contestants took over."""
    moves: Texts
    """The moves that the contestants chose."""
    result: Annotated[Result, Meta(description="1-0, 0-1, 1/2-1/2 or *")]
    """`1-0`, `0-1` or `1/2-1/2`, which is a shared win, seen by the first contestant; `*` for a game that goes on."""
    seconds: Annotated[tuple[Seconds, Seconds], Meta(description="two numbers of seconds")]
    """Time that each player took, its share of the time for all games that were searched at once."""
    seed: Annotated[int, Meta(description="a whole number")]
    """The seed of the match."""
    forfeit: Text = ""
    """The player who gave the game up before its end, and the reason; "" if nobody did."""
    others: Texts = ()
    """In a game for one, all moves of the second contestant, who had the same dice; the other moves are the first's."""
    board: Text = ""
    """The board with which the game began, as `Game.read_board` reads it; "" for the start of the game."""

    def __repr__(self) -> str:
        names, plies = " - ".join(map(shorten, self.contestants)), count_of(len(self.opening) + len(self.moves), "ply")
        return f"<GameRecord {shorten(self.game)} game {self.number}: {names} {self.result} in {plies}>"

    def player_at(self, seat: int, game: Game) -> str:
        """The name of who has the seat, counted from 0."""
        one_each = len(self.contestants) >= game.num_players
        return self.contestants[seat if one_each else seat != lone_seat(game, self.number)]

    def positions(self, game: Game, second: bool = False) -> list[Position]:
        """All positions from the start to the end. `second`: those of `others`.

        A forced pass may be left out, as some programs do. Raises IllegalAction, or InputError for a number of
        contestants that the game cannot have.
        """
        if len(self.contestants) not in (2, game.num_players):
            players = count_of(game.num_players, "player")
            raise InputError(f"{shorten(self.game)} is for {players}, and a record of it names {len(self.contestants)}")
        found = [game.position(self.board)]
        for word in self.others if second else (*self.opening, *self.moves):
            try:
                action = found[-1].parse(word)
            except IllegalAction:
                legal = found[-1].legal_actions
                if len(legal) != 1 or found[-1].format(legal[0]) != "pass":
                    raise
                found.append(found[-1].play(legal[0]))
                action = found[-1].parse(word)
            found.append(found[-1].play(action))
        return found


def lone_seat(game: Game, number: int) -> int:
    """The seat of the contestant that is alone in a match's game of that number: the first one in even games.

    All n seats come in turn, in 2n games with the same opening and the same dice.
    """
    return number // 2 % game.num_players if game.num_players > 2 else 0


def words_of(position: Position, actions: Sequence[int]) -> list[str]:
    """The actions after a position, in the notation of its game."""
    words = list[str]()
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


def line_of(record: GameRecord) -> str:
    """The game as a line of JSON, without the seal that `write_records` gives it."""
    return to_json(asdict(record), None).decode().strip()


def _lines(records: Sequence[GameRecord]) -> bytes:
    return b"".join(sealed_line(asdict(record)) for record in records)


def read_records(path: Path, whole: bool = True) -> list[GameRecord]:
    """The games that `write_records` wrote; raises StorageError that names a wrong or damaged line.

    Each line is sealed by its SHA-256; those of older versions and of other programs are not. Without `whole`, a last
    line without its end is left out: somebody may be writing it.
    """
    return [parse_record(line, f"{path}, line {number}") for number, line in enumerate(read_lines(path, whole), 1)]


def parse_record(line: bytes, where: str) -> GameRecord:
    """The game in a line; raises StorageError that names `where` it was found."""
    return record_of(parse_line(line, where), where)


def record_of(value: Any, where: str) -> GameRecord:
    """The game in a line's JSON value; raises StorageError that names `where` it was found."""
    return check(GameRecord, value, where, advice="; --save-games writes such lines")


def foreign_record(
    game: str, number: int, names: tuple[str, str], moves: Sequence[str], result: Any, board: str = ""
) -> GameRecord:
    """A game of another program's file, which tells no seed and no seconds; StorageError if no record can hold it."""
    record = GameRecord(game, number, names, (), tuple(moves), result, (0.0, 0.0), 0, board=board)
    return record_of(asdict(record), f"game {number}")
