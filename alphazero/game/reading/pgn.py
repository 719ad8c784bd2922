"""Games of chess as PGN files, https://www.thechessdrum.net/PGN_Reference.txt, which keep no seed and no seconds."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise

from alphazero.errors import StorageError
from alphazero.game.game import Game, Position
from alphazero.game.reading.san import CHESS, ChessLike, no_words, san
from alphazero.game.reading.sgf import decoded
from alphazero.game.record import GameRecord, foreign_record

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
"""The board of a game whose tags tell none."""
TOKENS = re.compile(
    r"""\{[^}]*\}? | ;.* | ^%.* | \$\d+ | \d+\.+ | \d+(?!\S)
    | ^\s*\[\s*(?P<tag>\w+)\s*"(?P<value>(?:\\.|[^"\\])*|.*)"\s*\]
    | (?P<bracket>[()]) | (?P<result>1-0|0-1|1/2-1/2|\*)(?![^\s{(;]) | (?P<word>[^\s(){};$]+)""",
    re.MULTILINE | re.VERBOSE,
)


def write(game: Game, records: Sequence[GameRecord]) -> bytes:
    """Raises InvalidSetting for a game that is not ChessLike."""
    if not isinstance(game, ChessLike):
        raise no_words("PGN", game)
    games = ((record, record.positions(game)) for record in records)
    return "\n".join(_text_of(game, *each, game.fen_of(each[1][0])) for each in games).encode()


def _text_of(game: Game, record: GameRecord, positions: Sequence[Position], board: str) -> str:
    """`board`: the first position as a FEN, which the record may have shorter."""
    tags = {
        "Event": f"{record.game} by alphazero", "Site": "?", "Date": "????.??.??", "Round": str(record.number + 1),
        "White": record.contestants[0], "Black": record.contestants[1], "Result": record.result,
        "Variant": game.name * (game.name != CHESS), "SetUp": "1" * (board != START), "FEN": board * (board != START),
        "Termination": record.forfeit,
    }  # fmt: skip
    lines = [f'[{tag} "{_escaped(value)}"]' for tag, value in tags.items() if value]
    words = list[str]()
    first = 2 * int(board.split()[-1]) - 2 + positions[0].to_play
    for ply, (before, after) in enumerate(pairwise(positions), first):
        words += [f"{ply // 2 + 1}{'...' if ply % 2 else '.'}"] * (ply % 2 == 0 or ply == first)
        words.append(san(before, after.actions[-1]))
    text = textwrap.fill(" ".join([*words, record.result]), 79, break_long_words=False, break_on_hyphens=False)
    return "\n".join([*lines, "", text, ""])


def _escaped(value: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", " ".join(value.split()))


def read(data: bytes) -> list[GameRecord]:
    """The games, with their moves as they are written there; raises StorageError for one that no record can hold."""
    found = []
    for number, (tags, words, result) in enumerate(_games_in(decoded(data))):
        names = tags.get("White", "?"), tags.get("Black", "?")
        game = _game_of(tags.get("Variant", CHESS))
        found.append(foreign_record(game, number, names, words, result, tags.get("FEN", "")))
    if data.strip() and not found:
        raise StorageError("it holds no game of PGN: one has moves or a result")
    return found


def _game_of(variant: str) -> str:
    """The name of our game; the words for chess itself are those of Lichess and python-chess."""
    name = variant.strip().lower()
    return CHESS if name in ("", "standard", "classical", "normal", "from position") else name


def _games_in(text: str) -> Iterator[tuple[dict[str, str], list[str], str]]:
    """The tags, the moves of the main line, and the result of each game."""
    tags, words, depth = dict[str, str](), list[str](), 0
    for token in TOKENS.finditer(text):
        tag, result, bracket, word = token["tag"], token["result"], token["bracket"], token["word"]
        if bracket:
            depth = max(0, depth + (1 if bracket == "(" else -1))
        elif word and depth == 0 and re.match(r"[A-Za-z0]|--", word) and word != "e.p.":
            words.append(word)
        elif (tag and (words or tag in tags)) or (result and depth == 0):  # a game may lack its result, and its moves
            yield tags, words, result or _result_of(tags)
            tags, words, depth = {}, [], 0
        if tag:
            tags[tag] = re.sub(r"\\(.)", r"\1", token["value"])
    if words:
        yield tags, words, _result_of(tags)


def _result_of(tags: dict[str, str]) -> str:
    """The result as the tags have it, or `*`."""
    return tags["Result"] if tags.get("Result") in ("1-0", "0-1", "1/2-1/2") else "*"
