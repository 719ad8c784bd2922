"""Nim with three piles."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(
    games={"nim": ".game:Nim"},
)
