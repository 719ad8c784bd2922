"""Hex in the Go Text Protocol, with the swap rule or without."""

from alphazero.game import Game
from alphazero.gtp_words import GtpWords


def gtp_words(game: Game) -> GtpWords:
    _, rows, columns = game.observation_shape
    return GtpWords("Hex", rows, columns)
