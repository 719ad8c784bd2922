"""Pig, the dice game to 100 points, with its exact player."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(
    games={"pig": ".game:Pig"},
    presets=".preset:presets",
    make_benchmark=".benchmark:make_benchmark",
    make_oracle=".solver:make_oracle",
    contestants={"solver": ".solver:make_solver"},
)
