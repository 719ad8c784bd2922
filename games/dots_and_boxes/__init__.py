"""Dots and Boxes on 3x3 boxes."""

from alphazero.game.spec import GameSpec

SPEC = GameSpec(games={"dots_and_boxes": ".game:DotsAndBoxes"})
