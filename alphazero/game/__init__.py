"""All that the author of a game fills in."""

from alphazero.errors import IllegalAction
from alphazero.game.bits import count_bits, flip_rows, lowest_bit, reverse_bits
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
    edge_labels,
    enclosed,
    grid_cells,
    hexagon,
    images_of_square,
    square,
)
from alphazero.game.game import Game, Position
from alphazero.game.reading.boards import Grid, check_turns, in_turn, placed_in_turn, reached, read_grid
from alphazero.game.rules import Rules, Score
from alphazero.game.views import clicks_by_difference, grid_board

__all__ = [
    "Board", "Cell", "Click", "Clicks", "Colors", "Game", "Grid", "IllegalAction", "Label", "Piece", "Position",
    "Rules", "Score", "Stroke", "View", "cells_in_line", "check_turns", "clicks_by_difference", "count_bits",
    "edge_labels", "enclosed", "flip_rows", "grid_board", "grid_cells", "hexagon", "images_of_square", "in_turn",
    "lowest_bit", "placed_in_turn", "reached", "read_grid", "reverse_bits", "square",
]  # fmt: skip
