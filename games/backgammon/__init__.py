"""Backgammon without the doubling cube."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(
    games={"backgammon": ".game:Backgammon"},
    presets=".preset:presets",
    make_net="alphazero.nets.towers:make_net",
)
