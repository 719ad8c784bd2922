"""Tic-tac-mo: three in a row for three players, small enough to be solved."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(
    games={"tictacmo": ".game:TicTacMo"},
    presets=".preset:presets",
    make_benchmark=".benchmark:make_benchmark",
)
