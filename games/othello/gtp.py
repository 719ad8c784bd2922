"""Othello in the Go Text Protocol, on boards of any size."""

from alphazero.game import Game
from alphazero.gtp_words import GtpWords


def gtp_words(game: Game) -> GtpWords:
    _, rows, columns = game.observation_shape
    return GtpWords("Othello", rows, columns)
