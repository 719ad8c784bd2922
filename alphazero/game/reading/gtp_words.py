"""Names in the Go Text Protocol: of a game, of its board's size, and of its actions.

https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html. The first player is black. A vertex is the
game's own notation in capitals, as D4, unless the game's SPEC says otherwise (`gtp_vertex`, `gtp_words`).
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from alphazero.errors import IllegalAction, InvalidSetting, quote
from alphazero.game import Game, Position
from alphazero.game.reading.moves import meant_by

COLOURS = ("black", "white")
"""The first player's and the second player's."""
COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
"""The letters of a Go board's columns."""


@dataclass(frozen=True)
class GtpWords:
    """The words for one game."""

    name: str
    """The name for `set_game`, as engines write it; capitals do not matter."""
    rows: int
    columns: int
    komi: float | None = None
    """The points that white gets for moving second, in games that have a komi."""
    vertex_of: Callable[[str], str] = str
    """From an action in the game's notation to its vertex; capitals do not matter."""

    def vertex(self, position: Position, action: int) -> str:
        """The vertex of a legal action at `position`: D4, or pass in small letters, on which some engines insist.

        Where two actions would be called alike, each is called by its whole notation: bxc3 and Bxc3 in chess.
        """
        return _vertices(self.vertex_of, position)[action]

    def action(self, position: Position, vertex: str) -> int:
        """The legal action that is called so, if only one is; raises IllegalAction."""
        vertices = _vertices(self.vertex_of, position)
        exact = [action for action, word in vertices.items() if word == vertex]
        found = exact or [action for action, word in vertices.items() if word.lower() == vertex.lower()]
        action = found[0] if len(found) == 1 else meant_by(vertex, vertices)
        if len(found) > 1 or action is None:
            raise IllegalAction(f"{quote(vertex)} is not the name of a legal move here, or of more than one")
        return action


def check_spoken(game: Game) -> None:
    """Raises InvalidSetting for a game that the protocol has no words for."""
    if game.num_outcomes or game.num_players != 2:
        raise InvalidSetting(f"the Go Text Protocol knows two players and no dice, so it cannot play {game.name}")


def points_of(game: Game, words: GtpWords) -> dict[int, str]:
    """Each cell's point on a Go board, A1 to Z25, for a game whose moves put stones on the cells of a square.

    Empty for all other games: programs for Go cannot show them.
    """
    names = [cell.name for cell in game.board.cells]
    points = [words.vertex_of(name).upper() if re.fullmatch("[A-Za-z][0-9]+", name) else "" for name in names]
    board = [f"{letter}{row}" for letter in COLUMNS[: words.rows] for row in range(1, words.rows + 1)]
    alike = game.num_actions - len(names) in (0, 1) and words.columns == words.rows  # or a pass or a swap as well
    return dict(enumerate(points)) if alike and sorted(points) == sorted(board) else {}


@functools.lru_cache(maxsize=64)  # an analysis asks for the words of its position again and again
def _vertices(vertex_of: Callable[[str], str], position: Position) -> dict[int, str]:
    """The vertices of the legal actions; a # would begin a comment, as in chess's Qh4#."""
    notation = {action: position.format(action).replace("#", "") for action in position.legal_actions}
    words = {action: vertex_of(text).upper() for action, text in notation.items()}
    counts = Counter(words.values())
    return {
        action: notation[action] if counts[word] > 1 else "pass" if word == "PASS" else word
        for action, word in words.items()
    }


def default_words(game: Game) -> GtpWords:
    """The words for a game that declares none: its board is as large as the network's planes."""
    _, rows, columns = game.observation_shape
    return GtpWords(game.name, rows, columns)


def without_i(word: str) -> str:
    """A cell as Go players name it, who have no column i: i9 is J9."""
    letter = word[:1].lower()
    return word if letter < "i" or not word[1:].isdigit() else chr(ord(letter) + 1) + word[1:]
