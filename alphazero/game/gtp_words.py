"""Names in the Go Text Protocol: of a game, of its board's size, and of its actions.

https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html. The first player is black. A vertex is the
game's own notation in capitals, as D4, unless the game's SPEC says otherwise (`gtp_vertex`, `gtp_words`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from alphazero.errors import IllegalAction, quote
from alphazero.game import Game, Position

COLOURS = ("black", "white")
"""The first player's and the second player's."""


def _same(word: str) -> str:
    return word


@dataclass(frozen=True)
class GtpWords:
    """The words for one game."""

    name: str
    """The name for `set_game`, as engines write it; capitals do not matter."""
    rows: int
    columns: int
    komi: float | None = None
    """The points that white gets for moving second, in games that have a komi."""
    vertex_of: Callable[[str], str] = _same
    """From an action in the game's notation to its vertex; capitals do not matter."""

    def vertex(self, position: Position, action: int) -> str:
        """The vertex of an action at `position`: D4, or pass in small letters, on which some engines insist."""
        word = self.vertex_of(position.format(action))
        return "pass" if word.lower() == "pass" else word.upper()

    def action(self, position: Position, vertex: str) -> int:
        """The legal action that is called so; raises IllegalAction."""
        for action in position.legal_actions:
            if self.vertex(position, action).lower() == vertex.lower():
                return action
        raise IllegalAction(f"{quote(vertex)} is not a legal move here")


def default_words(game: Game) -> GtpWords:
    """The words for a game that declares none: its board is as large as the network's planes."""
    _, rows, columns = game.observation_shape
    return GtpWords(game.name, rows, columns)


def without_i(word: str) -> str:
    """A cell as Go players name it, who have no column i: i9 is J9."""
    letter = word[:1].lower()
    return word if letter < "i" or not word[1:].isdigit() else chr(ord(letter) + 1) + word[1:]
