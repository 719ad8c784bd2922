"""Describes boards as data: the cells, the pieces on them, and the clicks that play each action.

A `Board` is the fixed part of a game's board, a `View` shows one position. Pictures and web pages need nothing else,
and `dataclasses.asdict` turns both into JSON. Lengths are in cells; x grows to the right, y downwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from alphazero.game.glyphs import GLYPHS

Point = tuple[float, float]
Clicks = Mapping[tuple[Any, ...], int]
"""Maps the cells clicked, one after another, to the action that they play. If the same clicks may play several, as in a
promotion, a word stands behind the cells: people choose among these words, or among the shapes of that name."""


@dataclass(frozen=True)
class Cell:
    """One place of a board."""

    name: str
    """The name in the notation of the game. Screen readers say it."""
    outline: tuple[Point, ...]
    """The corners of a polygon. A click inside is a click on the cell."""
    look: str = "plain"
    """`plain`, `shaded` (the second colour of a chessboard), `hole` (a round hole), or `open` (nothing is drawn)."""


@dataclass(frozen=True)
class Piece:
    """A piece on a cell."""

    cell: int
    player: int | None
    """The owner, from 0; None if it has no owner."""
    shape: str = ""
    """`stone`, `cross`, `ring`, `triangle`, `fill` (colours the cell), `line` (fills a thin cell), `dot` (an empty cell
    that belongs to the player) or one of the board's `glyphs`. Empty: the shape that the board has for this player."""
    text: str = ""
    """A letter or number on the piece."""


@dataclass(frozen=True)
class Label:
    """A text next to the cells, such as a coordinate."""

    at: Point
    text: str


@dataclass(frozen=True)
class Stroke:
    """A line on the board, such as a grid line or a goal line; two equal points make a dot."""

    points: tuple[Point, ...]
    width: float = 0.04
    color: str = "line"
    """The name of a field of `Colors`."""


@dataclass(frozen=True)
class Colors:
    """The colours of a board, as `#rrggbb`. The board has its own background, so it suits light and dark pages."""

    panel: str = "#34435a"
    """The background behind and around the cells."""
    text: str = "#e8edf4"
    """Labels, and all text on the panel."""
    cell: str = "#dde4ec"
    shaded: str = "#c3cedb"
    line: str = "#8fa0b5"
    first: str = "#d64550"
    second: str = "#2f7fc1"
    others: tuple[str, ...] = ("#e0a526", "#35936a", "#8d5bc9", "#d977ab", "#7a5340", "#35a9b8")
    """The colours of the third player and of all after it."""
    neutral: str = "#1c2430"
    """Pieces without an owner."""
    mark: str = "#c026d3"
    """Shading, and the mark of the last move. It is the same in all shipped games, and is seen on each board."""

    @property
    def of_players(self) -> tuple[str, ...]:
        """The colour of each player's pieces."""
        return self.first, self.second, *self.others


@dataclass(frozen=True)
class Board:
    """The fixed part of a game's board. If there are no cells, pictures show the text of `Game.render`."""

    cells: tuple[Cell, ...] = ()
    labels: tuple[Label, ...] = ()
    strokes: tuple[Stroke, ...] = ()
    shapes: tuple[str, ...] = ("stone", "stone")
    """The shape of each player's pieces, the first player's first; then they come again."""
    colors: Colors = Colors()
    glyphs: Mapping[str, str] = field(default_factory=lambda: GLYPHS, repr=False, hash=False)
    """Further shapes by their names: `pawn`, `knight`, `bishop`, `rook`, `queen`, `king` and `crowned`, a stone with a
    crown; `alphazero.game.glyphs` says how more are drawn."""
    worth: Mapping[str, float] = field(default_factory=dict, hash=False)
    """The worth of a piece by its shape. The page shows who has more of which piece, and how much that is."""
    bottom: int | None = None
    """The player who sits below this board: the page turns it for the other one. None: nobody sits there."""


@dataclass(frozen=True)
class Click:
    """A way to play one legal action."""

    action: int
    name: str
    """The action in the notation of the game."""
    cells: tuple[int, ...]
    """The cells to click, one after another. Empty: a button with the name of the action plays it."""
    choice: str = ""
    """The word to choose behind these clicks, if they play several actions."""


@dataclass(frozen=True)
class View:
    """One position as people see it."""

    to_play: int
    outcome: int | None
    """+1 if the first player has won, -1 if the second, 0 for a draw; None if the game goes on."""
    winners: tuple[int, ...]
    """The players with the best result, when the game is over."""
    pieces: tuple[Piece, ...]
    clicks: tuple[Click, ...]
    """Every legal action has at least one, and pictures mark it at the first. No click is the beginning of another."""
    last: tuple[int, ...]
    """The cells of the last action. Empty if a button played it, or if the position does not know its history."""
    winning: tuple[int, ...]
    """The cells that decided the game. Empty if the game does not name them."""
    text: str
    """The text of `Game.render`."""
    remark: str = ""
    """A few words besides, as `check`."""


# --- boards of squares ---


def square(row: float, column: float, size: float = 1) -> tuple[Point, ...]:
    """The outline of one square of a grid."""
    left, top = size * column, size * row
    return (left, top), (left + size, top), (left + size, top + size), (left, top + size)


def grid_cells(rows: int, columns: int, names: Sequence[str], look: str = "plain") -> tuple[Cell, ...]:
    """Squares, row by row from the top. With the look `checkered` they alternate; the bottom left one is shaded."""

    def look_at(row: int, column: int) -> str:
        return look if look != "checkered" else "plain" if (rows - 1 - row + column) % 2 else "shaded"

    places = [(row, column) for row in range(rows) for column in range(columns)]
    return tuple(Cell(name, square(*at), look_at(*at)) for name, at in zip(names, places, strict=True))


def images_of_square(size: int) -> np.ndarray:
    """The cells `int64[8, size * size]` of a square grid in its eight images, in the order of their numbers' bits.

    Bit 0: rows and columns change places; bit 1: then the first row becomes the last; bit 2: then so do the columns.
    """
    grid = np.arange(size * size).reshape(size, size)
    turned = [image[::step] for step in (1, -1) for image in (grid, grid.T)]
    return np.stack([image[:, ::step].ravel() for step in (1, -1) for image in turned])


def edge_labels(rows: Sequence[str], columns: Sequence[str]) -> tuple[Label, ...]:
    """Coordinates to the left of the rows and below the columns of a grid. An empty text makes no label."""
    labels = [Label((-0.3, row + 0.5), text) for row, text in enumerate(rows)]
    labels += [Label((column + 0.5, len(rows) + 0.3), text) for column, text in enumerate(columns)]
    return tuple(label for label in labels if label.text)


def cells_in_line(pieces: Sequence[Piece], columns: int, length: int) -> list[int]:
    """The cells of all straight lines of at least `length` pieces of one player, on a grid of so many columns."""
    owners = {divmod(piece.cell, columns): piece.player for piece in pieces}
    found: set[int] = set()
    for (row, column), owner in owners.items():
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            line = [(row + step * down, column + step * right) for step in range(length)]
            if all(owners.get(place, -1) == owner for place in line):
                found.update(columns * row + column for row, column in line)
    return sorted(found)


def enclosed(pieces: Sequence[Piece], rows: int, columns: int) -> list[Piece]:
    """A `dot` for each empty cell of a grid whose region only one player's pieces touch, as territory in Go."""
    owners, found = {piece.cell: piece.player for piece in pieces}, list[Piece]()
    left = {*range(rows * columns)} - owners.keys()
    while left:
        region, touched = [left.pop()], set[int | None]()
        for cell in region:  # those that are added come later
            row, column = divmod(cell, columns)
            sides = ((row, cell - columns), (rows - 1 - row, cell + columns))
            beside = {other for room, other in (*sides, (column, cell - 1), (columns - 1 - column, cell + 1)) if room}
            region += left & beside
            left -= beside
            touched |= {owners[other] for other in beside & owners.keys()}
        if len(touched) == 1:
            (owner,) = touched
            found += [Piece(cell, owner, "dot") for cell in region]
    return found


# --- boards of hexagons ---


def hexagon(row: int, column: int) -> tuple[Point, ...]:
    """The outline of a cell in a rhombus of hexagons; they are one unit wide, and a corner points up."""
    x, y, side = column + row / 2 + 0.5, row * math.sqrt(3) / 2 + 1 / math.sqrt(3), 1 / math.sqrt(3)
    corners = (math.radians(60 * corner - 90) for corner in range(6))
    return tuple((round(x + side * math.cos(angle), 4), round(y + side * math.sin(angle), 4)) for angle in corners)


def center(outline: Sequence[Point]) -> Point:
    """The mean of the corners of a polygon."""
    return sum(x for x, _ in outline) / len(outline), sum(y for _, y in outline) / len(outline)
