"""Go on boards of 5x5 to 19x19."""

from typing import Any

from alphazero.game.gtp_words import GtpWords
from alphazero.game.spec import GameSpec


def gtp_words(game: Any) -> GtpWords:
    """The protocol's own game, with the komi of the board."""
    return GtpWords("Go", game.size, game.size, game.komi)


SPEC = GameSpec(
    games={f"go{size}": f".game:Go{size}" for size in (5, 6, 7, 9, 13, 19)},
    presets=".preset:presets",
    gtp_words=gtp_words,
)
