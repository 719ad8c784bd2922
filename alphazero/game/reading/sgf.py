"""Games of Go, Othello, Gomoku and Hex as SGF files, and those of Othello as GGF files, which are written alike.

https://www.red-bean.com/sgf/ (FF[4]) and https://skatgame.net/mburo/ggsa/ggf. Variations and comments are skipped.
"""

from __future__ import annotations

import contextlib
import logging
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from string import ascii_letters

from alphazero._version import __version__
from alphazero.errors import InputError, InvalidSetting, quote
from alphazero.game.game import Game
from alphazero.game.reading.gtp_words import COLUMNS
from alphazero.game.reading.moves import SPELLINGS
from alphazero.game.record import GameRecord, foreign_record

logger = logging.getLogger(__name__)

GO, OTHELLO, GOMOKU, HEX = 1, 2, 4, 11
KINDS = {"go": GO, "othello": OTHELLO, "gomoku": GOMOKU, "hex": HEX, "hex_swap": HEX}
"""SGF's numbers of our games. Their actions are the cells row by row from the top, and a pass or a swap."""
SIZES = {GO: 19, OTHELLO: 8, GOMOKU: 15, HEX: 11}
"""The rows of a board whose size a file does not tell."""
MOST_SIZE = len(ascii_letters)
NAMED = {("othello", 8): "othello", ("gomoku", 9): "gomoku", ("hex", 7): "hex", ("hex_swap", 7): "hex_swap"}
"""Games whose names do not tell their size."""
PASSES = ["pass", "pass"]
# a value is one token even without its end, so that no part of a file is read twice
TOKENS = re.compile(r"(\((?=\s*;))|(\))|([A-Za-z]+)|\[([^\]\\]*+(?:\\.[^\]\\]*+)*+)(\]?)", re.DOTALL)


# --- writing ---


def write_sgf(game: Game, records: Sequence[GameRecord]) -> bytes:
    """Raises InvalidSetting for a game that is none of KINDS."""
    kind, size = _kind_of(game, "SGF", KINDS)
    return "".join(_sgf_of(game, record, kind, size) for record in records).encode()


def write_ggf(game: Game, records: Sequence[GameRecord]) -> bytes:
    """Raises InvalidSetting for another game than Othello."""
    _, size = _kind_of(game, "GGF", ["othello"])
    return "".join(_ggf_of(game, record, size) for record in records).encode()


def _kind_of(game: Game, words: str, names: Iterable[str]) -> tuple[int, int]:
    """The number and the size of the game."""
    name = game.name.rstrip("0123456789")
    if name not in names:
        raise InvalidSetting(f"{words} files hold games of {', '.join(names)}, and not of {game.name}")
    return KINDS[name], game.observation_shape[1]


def _sgf_of(game: Game, record: GameRecord, kind: int, size: int) -> str:
    positions = record.positions(game)
    start, end, komi = positions[0], positions[-1], getattr(game, "komi", 0)
    how = ("R" if "resign" in record.forfeit else "F") if record.forfeit else ""
    if kind == GO and end.terminal:  # its pieces are the stones and the territory then
        how = f"{abs(sum(-1 if piece.player else 1 for piece in game.pieces(end)) - komi):g}"
    result = {"1-0": f"B+{how}", "0-1": f"W+{how}", "1/2-1/2": "0"}.get(record.result, "?")
    tags: dict[str, object] = {"FF": 4, "CA": "UTF-8", "AP": f"alphazero:{__version__}", "GM": kind, "SZ": size}
    tags |= {"PB": record.contestants[0], "PW": record.contestants[1], "RE": result}
    if kind == GO:
        tags |= {"RU": "Chinese", "KM": f"{komi:g}"}
    setup = ""
    if start.is_set_up:
        black, white = (
            "".join(f"[{_point(piece.cell, size, kind)}]" for piece in game.pieces(start) if piece.player == of)
            for of in (0, 1)
        )
        if kind == GO and start.to_play and not white:
            tags["HA"] = black.count("[")
        setup = f"{'AB' * bool(black)}{black}{'AW' * bool(white)}{white}PL[{'BW'[start.to_play == 1]}]"
    moves = [
        f";{'BW'[before.to_play]}[{_point(after.actions[-1], size, kind)}]" for before, after in pairwise(positions)
    ]
    lines = ["".join(moves[at : at + 12]) for at in range(0, len(moves), 12)]
    return "\n".join([f"(;{_joined(tags)}{setup}", *lines]) + ")\n"


def _ggf_of(game: Game, record: GameRecord, size: int) -> str:
    positions = record.positions(game)
    start, end = positions[0], positions[-1]
    signs = ["-"] * size**2
    for piece in game.pieces(start):
        signs[piece.cell] = "*O"[piece.player == 1]
    rows = " ".join("".join(signs[at : at + size]) for at in range(0, size**2, size))
    discs = [sum(piece.player == of for piece in game.pieces(end)) for of in (0, 1)]
    lead = discs[0] - discs[1]
    lead += (size**2 - sum(discs)) * ((lead > 0) - (lead < 0))  # empty squares go to the winner
    given_up = {"1-0": f"+{size**2}:r", "0-1": f"-{size**2}:r"}.get(record.result, "?")
    tags: dict[str, object] = {"GM": "Othello", "PC": "alphazero", "PB": record.contestants[0]}
    tags |= {"PW": record.contestants[1], "RE": f"{lead:+d}" if end.terminal else given_up, "TY": size}
    tags["BO"] = f"{size} {rows} {'*O'[start.to_play]}"
    moves = [
        f"{'BW'[before.to_play]}[{before.format(after.actions[-1]).replace('pass', 'PA')}]"
        for before, after in pairwise(positions)
    ]
    return f"(;{_joined(tags)}{''.join(moves)};)\n"


def _joined(tags: dict[str, object]) -> str:
    texts = {name: re.sub(r"([\]\\])", r"\\\1", " ".join(str(value).split())) for name, value in tags.items()}
    return "".join(f"{name}[{text}]" for name, text in texts.items())


def _point(action: int, size: int, kind: int) -> str:
    """A cell, a pass or a swap in the words of SGF."""
    row, column = divmod(action, size)
    if row == size:
        return "swap-pieces" if kind == HEX else ""
    return f"{ascii_letters[column]}{row + 1 if kind in (HEX, OTHELLO) else ascii_letters[row]}"


# --- reading ---


@dataclass
class _Tree:
    """The main line of one game."""

    tags: dict[str, str] = field(default_factory=dict)
    setup: list[tuple[str, str]] = field(default_factory=list)
    """AB, AW or AE, and points."""
    moves: list[tuple[str, str]] = field(default_factory=list)
    """B or W, and a point."""
    fault: str = ""
    """Why no record can hold the game."""


def read(data: bytes) -> list[GameRecord]:
    """The games of a file of SGF or GGF. A game that no record can hold is left out, and a warning names it.

    Raises InputError where no game is left.
    """
    return [record for record, _ in read_numbered(data)]


def read_numbered(data: bytes) -> list[tuple[GameRecord, list[int]]]:
    """The same, each with the number of the record's moves that are played before and after each move of the file.

    They differ where the file leaves a pass out, or goes on after two passes.
    """
    text, found, faults = decoded(data), list[tuple[GameRecord, list[int]]](), list[str]()
    if "\0" in text:
        raise InputError("it is no text")
    for number, tree in enumerate(_trees_in(text)):
        try:
            found.append(_record_of(tree, number))
        except InputError as error:
            faults.append(f"game {number} of the file, from 0: {error}")
    if not found and (faults or text.strip()):
        raise InputError(faults[0] if faults else "it holds no game: each begins with (;")
    for fault in faults:
        logger.warning("%s; it is left out", fault)
    return found


def decoded(data: bytes) -> str:
    """The text in UTF-8, or in the encoding that a file of SGF names, or else in Latin-1, as SGF and PGN mean it."""
    named = re.search(rb"CA\[\s*((?:big5|cp|euc|gb|hz|iso|koi8|ks|shift|win)[\w-]{0,20})\s*\]", data, re.IGNORECASE)
    for encoding in ("utf-8-sig", named[1].decode() if named else "latin-1"):
        with contextlib.suppress(UnicodeDecodeError, LookupError):
            return data.decode(encoding)
    return data.decode("latin-1")


def _trees_in(text: str) -> Iterator[_Tree]:
    tree, depth, in_main_line, name = _Tree(), 0, False, ""
    first = re.search(r"\(\s*;", text)
    for token in TOKENS.finditer(text, first.start()) if first else ():
        opens, closes, word, value, end = token.groups()
        if opens:
            if depth == 0:
                tree, in_main_line = _Tree(), True
            depth += 1
        elif closes:
            in_main_line = False  # what follows in this game are variations
            if depth == 1:
                yield tree
            depth = max(0, depth - 1)
        elif word:
            name = re.sub("[a-z]", "", word)  # FF[3] has Black[dd]
        elif depth and not end:
            raise InputError("it ends within a property")
        elif in_main_line:
            _take(tree, name, re.sub(r"\\\r?\n|\\(.)", r"\1", value, flags=re.DOTALL).strip())
    if depth:
        raise InputError("it ends within a game")


def _take(tree: _Tree, name: str, value: str) -> None:
    if name in ("B", "W"):
        tree.moves.append((name, value))
    elif name in ("AB", "AW", "AE"):
        if tree.moves:
            tree.fault = "stones are set up after a move, which no record can hold"
        elif len(tree.setup) == MOST_SIZE**2:
            tree.fault = "more stones are set up than a board has points"
        else:
            tree.setup.append((name, value))
    else:
        tree.tags.setdefault(name, " ".join(value.split()))


def _record_of(tree: _Tree, number: int) -> tuple[GameRecord, list[int]]:
    if tree.fault:
        raise InputError(tree.fault)
    game = tree.tags.get("GM", "1").lower()
    is_ggf = game in KINDS
    kind = KINDS[game] if is_ggf else int(game) if re.fullmatch("[0-9]{1,2}", game) else 0
    if kind not in SIZES:
        raise InputError(f"it is GM[{quote(game)}], and read are {', '.join(KINDS)}")
    told = tree.tags.get("BO" if is_ggf else "SZ", str(SIZES[kind]))
    side = re.match(r"([0-9]{1,2})(:\1)?(?![0-9:])", told)
    size = int(side[1]) if side else 0
    if not 2 <= size <= MOST_SIZE:
        raise InputError(f"it has no square board of at most {MOST_SIZE} rows")
    board, turn = _board(tree, kind, size)
    words, numbers = list[str](), [0]
    for colour, value in tree.moves:
        if (word := _word(value, kind, size, is_ggf)) in ("resign", "forfeit"):
            break
        is_more = word == "pass" and kind == GO  # some servers want a third pass
        if "BW"[turn] != colour and kind != HEX and not (is_more and words[-2:] == PASSES):
            words.append("pass")  # it is left out: some programs let White begin
            turn = 1 - turn
        if kind == GO and words[-2:] == PASSES:  # our games end here
            if is_more:
                numbers.append(len(words))
                continue
            del words[-2:]  # some games go on after the players have looked at the dead stones
            kept = bisect_right(numbers, len(words))
            numbers[kept:] = [len(words)] * (len(numbers) - kept)
        words.append(word)
        numbers.append(len(words))
        turn = 1 - turn
    name = "hex_swap" if kind == HEX and "swap" in words[:2] else next(name for name in KINDS if KINDS[name] == kind)
    names = tree.tags.get("PB", "?"), tree.tags.get("PW", "?")
    result = _result(tree.tags.get("RE", ""))
    return foreign_record(NAMED.get((name, size), f"{name}{size}"), number, names, words, result, board), numbers


def _board(tree: _Tree, kind: int, size: int) -> tuple[str, int]:
    """The board that was set up, as `Game.read_board` reads it, "" for the start; and who is to move."""
    text = re.sub(r"^\d+|\s", "", tree.tags.get("BO", "")).replace("*", "X")
    if tree.setup:
        text = "".join(_signs(tree, kind, size))
        first = tree.moves[0][0] if tree.moves else "BW"[tree.tags.get("HA", "0") not in ("0", "1")]
        text += "O" if tree.tags.get("PL", first)[:1].upper() == "W" else "X"
    edge = "-" * ((size + 1) * (size // 2 - 1))
    is_start = kind == OTHELLO and text == f"{edge}OX{'-' * (size - 2)}XO{edge}X"
    return "" if is_start else text, int(text[-1:] == "O")


def _signs(tree: _Tree, kind: int, size: int) -> list[str]:
    signs = ["-"] * size**2
    for name, points in tree.setup:
        corners = [_place(point, kind, size) for point in points.split(":")[:2]]  # a point, or those of a rectangle
        (top, left), (bottom, right) = corners[0], corners[-1]
        for row, column in product(range(top, bottom + 1), range(left, right + 1)):
            signs[size * row + column] = {"AB": "X", "AW": "O", "AE": "-"}[name]
    return signs


def _word(value: str, kind: int, size: int, is_ggf: bool) -> str:
    """A move in the words of our games."""
    word = value.partition("/")[0].strip()  # behind it GGF has an evaluation and a time
    spelled = SPELLINGS.get(word.lower(), word.lower())
    if spelled in ("swap", "resign", "forfeit") or (spelled == "pass" and is_ggf):
        return spelled
    if not word or (word == "tt" and kind == GO and size <= 19):
        return "pass"
    row, column = _place(word, kind, size)
    return f"{COLUMNS[column]}{size - row}" if kind == GO else f"{ascii_letters[column]}{row + 1}"


def _place(point: str, kind: int, size: int) -> tuple[int, int]:
    """The row and the column of a point such as dc or, in Othello and Hex, d3; raises InputError."""
    row = column = size
    if re.fullmatch("[A-Za-z]{2}", point):
        column, row = map(ascii_letters.index, point)
    elif re.fullmatch("[A-Za-z][0-9]{1,2}", point) and kind in (OTHELLO, HEX):
        column, row = ascii_letters.index(point[0].lower()), int(point[1:]) - 1
    if not 0 <= row < size > column:
        raise InputError(f"{quote(point)} is no point of a board of {size} rows")
    return row, column


def _result(text: str) -> str:
    """The result of `B+3.5` or `W+R`, as SGF has it, or of the first player's points, as GGF has it: `-64:r`."""
    match = re.match(r"([bw])(?:\+|$)|([+-]?[0-9]{1,6}(?:\.[0-9]{1,6})?)|draw", text, re.IGNORECASE)
    if match is None:
        return "*"
    lead = {"b": 1.0, "w": -1.0}[match[1].lower()] if match[1] else float(match[2] or 0)
    return "1-0" if lead > 0 else "0-1" if lead < 0 else "1/2-1/2"
