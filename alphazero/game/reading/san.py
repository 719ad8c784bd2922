"""Standard algebraic notation (SAN) of chess and games like it: e4, Nf3, O-O, exd8=Q+.

Such a game writes its moves from square to square, as the Universal Chess Interface (UCI) does: e2e4, e1g1, e7e8q. A
`position` is a Position, which is made of what is here.
"""

from __future__ import annotations

import re
from string import ascii_lowercase
from typing import Any, Protocol, runtime_checkable

from alphazero.errors import InvalidSetting

CHESS = "chess"
"""The variant of programs and files that name none."""
UCI = re.compile(r"([a-z])(\d+)([a-z]\d+)([a-z]?)")
SAN = re.compile(r"([KQRBNP]?)([a-wyz]?)(\d*)[-x:]?([a-z]\d+)[=(]?([QRBNqrbn]?)\)?")


@runtime_checkable
class WithFen(Protocol):
    """A game that engines for chess and its variants understand by UCI. Its name is that of the variant."""

    name: str

    def fen_of(self, position: Any) -> str:
        """The position in Forsyth-Edwards notation, with all six fields, as `read_board` reads it."""


@runtime_checkable
class ChessLike(WithFen, Protocol):
    """Chess on a board of any size, whose moves have names in SAN; PGN files name it as the variant."""

    def in_check(self, position: Any) -> bool:
        """The player to move is in check."""


def with_fen(game: Any) -> WithFen:
    """The same game; raises InvalidSetting if engines that speak UCI have no words for it."""
    if not isinstance(game, WithFen):
        raise no_words("UCI", game)
    return game


def no_words(what: str, game: Any) -> InvalidSetting:
    return InvalidSetting(f"{what} knows chess and games like it, and has no words for {game.name}")


def san(position: Any, action: int) -> str:
    """A legal move, as section 8.2.3 of the PGN standard has it: https://www.thechessdrum.net/PGN_Reference.txt."""
    words, after = _words(position), position.play(action)
    man, column, row, takes, end, piece = words[action]
    rivals = [(x, y) for other, x, y, _, there, _ in words.values() if (other, there) == (man, end)]
    same_column, same_row = (sum(own in each for each in rivals) for own in (column, row))
    if man == "P":
        text = (column + takes) * bool(takes) + end + (piece and f"={piece.upper()}")
    elif man in ("O-O", "O-O-O"):
        text = man
    else:
        tells_column = len(rivals) > 1 and (same_column == 1 or same_row > 1)
        text = man + column * tells_column + row * (same_column > 1) + takes + end
    ends = after.terminal and after.outcome
    return text + ("#" if ends else "+") * position.game.in_check(after)


def meant_by_san(position: Any, text: str) -> int | None:
    """The legal action that the text names, with or without what SAN asks for beside it; None if not one does."""
    text = re.sub(r"(e\.?p\.?)?[+#!?]*$", "", text)
    castles, found = text.replace("0", "O"), SAN.fullmatch(text)
    if not isinstance(position.game, ChessLike) or not (found or castles in ("O-O", "O-O-O")):
        return None
    man, column, row, end, piece = found.groups() if found else (castles, "", "", "", "")
    fits = [
        legal
        for legal, (its_man, x, y, _, there, becomes) in _words(position).items()
        if its_man == (man or "P") and column in ("", x) and row in ("", y) and end in ("", there)
        and becomes == piece.lower()
    ]  # fmt: skip
    return fits[0] if len(fits) == 1 else None


def _words(position: Any) -> dict[int, tuple[str, str, str, str, str, str]]:
    """By legal action the piece (or O-O), its column and row, x if it takes, its end, and what a pawn becomes."""
    rows = position.game.fen_of(position).split()[0].split("/")
    cells = [re.sub(r"\d+", lambda run: " " * int(run[0]), row) for row in rows]
    men = {
        f"{x}{len(rows) - y}": man for y, row in enumerate(cells) for x, man in zip(ascii_lowercase, row, strict=False)
    }
    found = {}
    for legal in position.legal_actions:
        column, row, end, piece = UCI.fullmatch(position.format(legal)).groups()  # type: ignore[union-attr]
        man, way = men[column + row].upper(), ord(end[0]) - ord(column)
        takes = "x" * (men[end] != " " or (man == "P" and way != 0))
        man = "O-O" + "-O" * (way < 0) if man == "K" and abs(way) == 2 else man
        found[legal] = (man, column, row, takes, end, piece)
    return found
