"""Go on boards of 5x5 to 19x19."""

from alphazero.game.reading.gtp_words import GtpWords
from alphazero.game.spec import GameSpec

SPEC = GameSpec(
    games={f"go{size}": f".game:Go{size}" for size in (5, 6, 7, 9, 13, 19)},
    presets=".preset:presets",
    gtp_words=lambda game: GtpWords("Go", game.size, game.size, game.komi),
)
