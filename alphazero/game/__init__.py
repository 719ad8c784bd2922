"""All that the author of a game fills in."""

from alphazero.errors import IllegalAction
from alphazero.game.board import (
    Board,
    Cell,
    Click,
    Clicks,
    Colors,
    Label,
    Piece,
    Stroke,
    View,
    cells_in_line,
    clicks_by_difference,
    edge_labels,
    grid_board,
    grid_cells,
    hexagon,
    square,
)
from alphazero.game.game import Game, Position, Rules

__all__ = [
    "Board",
    "Cell",
    "Click",
    "Clicks",
    "Colors",
    "Game",
    "IllegalAction",
    "Label",
    "Piece",
    "Position",
    "Rules",
    "Stroke",
    "View",
    "cells_in_line",
    "clicks_by_difference",
    "edge_labels",
    "grid_board",
    "grid_cells",
    "hexagon",
    "square",
]
