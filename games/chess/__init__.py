"""Chess, and Gardner's chess on 5x5 squares."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(games={"chess": ".game:Chess", "gardner": ".game:Gardner"}, presets=".preset:presets")
