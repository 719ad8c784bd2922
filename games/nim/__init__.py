"""Nim with piles of 1, 3, 5 and 7."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(games={"nim": ".game:Nim"})
