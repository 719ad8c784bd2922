"""Tic-tac-toe, small enough to be solved."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(
    games={"tictactoe": ".game:TicTacToe"},
    presets=".preset:presets",
)
