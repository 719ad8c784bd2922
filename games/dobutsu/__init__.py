"""Dobutsu shogi, the game of animals."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(games={"dobutsu": ".game:Dobutsu"}, presets=".preset:presets")
