"""All that the author of a game fills in."""

from alphazero.errors import IllegalAction
from alphazero.game.game import Game, Position, Rules

__all__ = ["Game", "IllegalAction", "Position", "Rules"]
