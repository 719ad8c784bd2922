"""English draughts (American checkers)."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(games={"draughts": ".game:Draughts"}, presets=".preset:presets")
