"""Breakthrough on 6x6."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(games={"breakthrough": ".game:Breakthrough"})
