"""Commands of the Go Text Protocol for Go alone: handicap stones, points, dead stones; and files of games."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from alphazero.game import Game, Piece, Position
from alphazero.game.board import enclosed
from alphazero.game.reading import sgf
from alphazero.game.reading.gtp_words import COLUMNS, GtpWords
from alphazero.game.reading.record_files import MOST_BYTES
from alphazero.storage.files import read_bytes

Command = Callable[[list[str]], str]
"""From the words behind a command to the text of its answer; raises Refused or InputError."""


class Refused(Exception):
    """A command cannot be carried out; `str(error)` is the answer after the question mark."""


def number_of(word: str, kind: Callable[[str], float], what: str) -> float:
    try:
        return kind(word[:18])
    except ValueError:
        raise Refused(f"{what} takes a number") from None


def commands(game: Game, words: GtpWords, points: Mapping[int, str], positions: list[Position]) -> dict[str, Command]:
    """These commands, as far as the game can have them. They change `positions`, whose last is on the board."""

    def set_up(vertices: list[str]) -> str:
        if len(positions) > 1:
            raise Refused("board not empty")
        positions[:] = [with_handicap(positions[0], points, vertices)]
        return " ".join(vertices)

    def load(file: list[str]) -> str:
        positions[:] = positions_in_file(game, file)
        return ""

    found: dict[str, Command] = {"loadsgf": load}
    if points and words.komi is not None:
        found["final_score"] = lambda _: score(positions[-1], words)
        found["final_status_list"] = lambda status: stones_of_status(positions[-1], points, status)
        if game.read_board("." * len(points)) is not None:
            found["set_free_handicap"] = set_up
            for name in ("fixed_handicap", "place_free_handicap"):
                found[name] = lambda number: set_up(fixed_handicap(words.rows, number))
    return found


def before_passes(position: Position, words: GtpWords) -> Position:
    """The position itself; in Go, if the game is over by two passes, the one before them."""
    if words.komi is None or not position.terminal or len(position.actions) < 2:
        return position
    *_, earlier, later, _ = position.history
    first, second = position.actions[-2:]
    over = words.vertex(earlier, first) == words.vertex(later, second) == "pass"
    return earlier if over else position


def stones(position: Position) -> list[Piece]:
    """All pieces but the marks of territory."""
    return [piece for piece in position.game.pieces(position) if piece.shape != "dot"]


def score(position: Position, words: GtpWords) -> str:
    """Who has won by how many points; all stones on the board are alive, and area counts. Raises Refused."""
    if not position.terminal:
        raise Refused("cannot score: the game is not over")
    on_board = stones(position)
    area = [*on_board, *enclosed(on_board, words.rows, words.columns)]
    lead = sum(-1 if piece.player else 1 for piece in area) - (words.komi or 0)
    return f"{'B' if lead > 0 else 'W'}+{abs(lead):g}" if lead else "0"


def stones_of_status(position: Position, points: Mapping[int, str], words: Sequence[str]) -> str:
    """The vertices of all stones that are alive, which are all, or dead, or in seki."""
    if words not in (["alive"], ["seki"], ["dead"]):
        raise Refused("final_status_list takes alive, seki or dead")
    return " ".join(points[piece.cell] for piece in stones(position)) if words == ["alive"] else ""


def fixed_handicap(size: int, words: Sequence[str]) -> list[str]:
    """The vertices for that number of stones, as section 4.1.1 of the protocol has them; raises Refused."""
    number = int(number_of(" ".join(words), int, "a handicap"))
    most = 0 if size < 7 else 9 if size % 2 and size > 7 else 4
    if not 2 <= number <= most:
        raise Refused(f"invalid number of stones: this board has handicaps of 2 to {most}" if most else "no handicap")
    low, middle = (3 if size > 11 else 2), size // 2
    high, center = size - 1 - low, [(middle, middle)] * (number > 4 and number % 2)
    places = [(low, low), (high, high), (low, high), (high, low), (low, middle), (high, middle)]
    places += [(middle, low), (middle, high)]
    return [f"{COLUMNS[column]}{row + 1}" for column, row in places[: number - len(center)] + center]


def with_handicap(start: Position, points: Mapping[int, str], vertices: Sequence[str]) -> Position:
    """The position with these stones of black's, and white to move; raises Refused."""
    chosen = {vertex.upper() for vertex in vertices}
    if start.game.pieces(start):
        raise Refused("board not empty")
    if not 2 <= len(chosen) == len(vertices) or not chosen <= {*points.values()}:
        raise Refused("bad vertex list")
    return start.game.position("".join("X" if points[cell] in chosen else "." for cell in sorted(points)) + "O")


def positions_in_file(game: Game, words: list[str]) -> list[Position]:
    """All positions of the game in a file of SGF, the words of whose name these are, up to before a move's number."""
    if not words:
        raise Refused("loadsgf takes a file")
    number = int(words[-1][:9]) if len(words) > 1 and words[-1].isdecimal() else None
    found = sgf.read_numbered(read_bytes(" ".join(words if number is None else words[:-1]), MOST_BYTES))
    if not found or found[0][0].game != game.name:
        raise Refused(f"cannot load file: it holds no game of {game.name}")
    if found[0][0].number:
        raise Refused("cannot load file: no record can hold its first game")
    record, plies = found[0]
    positions = record.positions(game)
    return [positions[ply] for ply in plies][: None if number is None else max(1, number)]
