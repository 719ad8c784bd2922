"""Gomoku in the Go Text Protocol: its boards are those of Go, which have no column i."""

from alphazero.game import Game
from alphazero.gtp_words import GtpWords, without_i


def gtp_words(game: Game) -> GtpWords:
    _, rows, columns = game.observation_shape
    return GtpWords("Gomoku", rows, columns, vertex_of=without_i)
