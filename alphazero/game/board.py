"""Describes boards as data: the cells, the pieces on them, and the clicks that play each action.

A `Board` is the fixed part of a game's board, a `View` shows one position. Pictures and web pages need nothing else,
and `dataclasses.asdict` turns both into JSON. Lengths are in cells; x grows to the right, y downwards.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alphazero.errors import GameError, IllegalAction

if TYPE_CHECKING:
    from alphazero.game.game import Game, Position

Point = tuple[float, float]
Clicks = Mapping[tuple[int, ...], int]
"""Maps the cells clicked, one after another, to the action that they play."""


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
    """The owner, 0 or 1; None if it has no owner."""
    shape: str = ""
    """`stone`, `cross`, `ring`, `pawn`, `fill` (colours the cell) or `line` (fills a thin cell). Empty: the shape that
    the board has for this player."""
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
    neutral: str = "#1c2430"
    """Pieces without an owner."""
    mark: str = "#c026d3"
    """Shading, hints, and the mark of the last move. It is the same in all shipped games, and is seen on each board."""


@dataclass(frozen=True)
class Board:
    """The fixed part of a game's board. If there are no cells, pictures show the text of `Game.render`."""

    cells: tuple[Cell, ...] = ()
    labels: tuple[Label, ...] = ()
    strokes: tuple[Stroke, ...] = ()
    shapes: tuple[str, str] = ("stone", "stone")
    """The shape of the first and of the second player's pieces."""
    colors: Colors = Colors()


@dataclass(frozen=True)
class Click:
    """A way to play one legal action."""

    action: int
    name: str
    """The action in the notation of the game."""
    cells: tuple[int, ...]
    """The cells to click, one after another. Empty: a button with the name of the action plays it."""


@dataclass(frozen=True)
class View:
    """One position as people see it."""

    to_play: int
    outcome: int | None
    """+1 if the first player has won, -1 if the second, 0 for a draw; None if the game goes on."""
    pieces: tuple[Piece, ...]
    clicks: tuple[Click, ...]
    """Every legal action has at least one, and pictures mark it at the first. No click is the beginning of another."""
    last: tuple[int, ...]
    """The cells of the last action. Empty if a button played it, or if the position does not know its history."""
    winning: tuple[int, ...]
    """The cells that decided the game. Empty if the game does not name them."""
    text: str
    """The text of `Game.render`."""


def view_of(position: Position) -> View:
    """The view of a position. Raises GameError if the clicks that the game describes are wrong."""
    game = position.game
    return View(
        position.to_play,
        position.outcome if position.terminal else None,
        tuple(game.pieces(position)),
        _checked_clicks(position),
        _last_cells(position),
        tuple(game.winning_cells(position)) if position.terminal else (),
        str(position),
    )


def _last_cells(position: Position) -> tuple[int, ...]:
    """The cells of the last action; none if the position does not know its history."""
    if not position.actions:
        return ()
    try:
        *_, before, reached = position.history
    except IllegalAction:
        return ()
    if (reached.state != position.state).any():
        return ()
    clicks = position.game.clicks(before)
    return next((tuple(path) for path, action in clicks.items() if action == position.actions[-1]), ())


def _checked_clicks(position: Position) -> tuple[Click, ...]:
    """The clicks and buttons of all legal actions."""
    game, legal = position.game, set(position.legal_actions)
    num_cells = len(game.board.cells)
    found = {} if position.terminal else game.clicks(position)
    for path, action in found.items():
        if action not in legal:
            raise GameError(f"{game.name}: clicks must lead to legal actions, and {list(path)} leads to {action}")
        if not path or not all(0 <= cell < num_cells for cell in path):
            raise GameError(f"{game.name}: clicks must name cells 0 to {num_cells - 1}, not {list(path)}")
        if any(path[:length] in found for length in range(1, len(path))):
            raise GameError(f"{game.name}: the clicks {list(path)} begin with the clicks of another action")
    clicks = [Click(action, position.format(action), tuple(path)) for path, action in found.items()]
    buttons = [Click(action, position.format(action), ()) for action in sorted(legal - set(found.values()))]
    return (*clicks, *buttons)


# --- boards of squares ---


def square(row: int, column: int, size: float = 1) -> tuple[Point, ...]:
    """The outline of one square of a grid."""
    left, top = size * column, size * row
    return (left, top), (left + size, top), (left + size, top + size), (left, top + size)


def grid_cells(rows: int, columns: int, names: Sequence[str], look: str = "plain") -> tuple[Cell, ...]:
    """Squares, row by row from the top. With the look `checkered` they alternate; the bottom left one is shaded."""

    def look_at(row: int, column: int) -> str:
        return look if look != "checkered" else "plain" if (rows - 1 - row + column) % 2 else "shaded"

    places = [(row, column) for row in range(rows) for column in range(columns)]
    return tuple(Cell(name, square(*at), look_at(*at)) for name, at in zip(names, places, strict=True))


def edge_labels(rows: Sequence[str], columns: Sequence[str]) -> tuple[Label, ...]:
    """Coordinates to the left of the rows and below the columns of a grid. An empty text makes no label."""
    labels = [Label((-0.3, row + 0.5), text) for row, text in enumerate(rows)]
    labels += [Label((column + 0.5, len(rows) + 0.3), text) for column, text in enumerate(columns)]
    return tuple(label for label in labels if label.text)


def grid_board(game: Game) -> Board:
    """The squares of the observation as a board. It has no cells if there is only one plane, row or column."""
    planes, rows, columns = game.observation_shape
    if planes < 2 or rows < 2 or columns < 2:
        return Board()
    start, size = game.start(), rows * columns
    if game.num_actions in (size, size + 1):
        with contextlib.suppress(Exception):  # a notation may know legal actions alone
            names = [start.format(action) for action in range(size)]
            return Board(grid_cells(rows, columns, names), _coordinates(names, columns))
    names = [f"row {row + 1}, column {column + 1}" for row in range(rows) for column in range(columns)]
    if game.num_actions == columns:
        with contextlib.suppress(Exception):
            below = [start.format(action) for action in range(columns)]
            return Board(grid_cells(rows, columns, names), edge_labels([""] * rows, below))
    return Board(grid_cells(rows, columns, names))


def _coordinates(names: Sequence[str], columns: int) -> tuple[Label, ...]:
    """Labels for a grid if its cells are named by column letter and row number; else none."""
    words = [match.groups() for name in names if (match := re.fullmatch(r"([A-Za-z]+)(\d+)", name))]
    if len(words) < len(names):
        return ()
    letters = [letter for letter, _ in words[:columns]]
    numbers = [number for _, number in words[::columns]]
    if words != [(letter, number) for number in numbers for letter in letters]:
        return ()
    return edge_labels(numbers, letters)


def shows_stones(position: Position) -> bool:
    """Planes 0 and 1 of the observation hold 0 and 1 alone, and in no cell two 1."""
    own, opponent = position.observation[:2]
    numbers = {*own.ravel().tolist(), *opponent.ravel().tolist()}
    return numbers <= {0.0, 1.0} and not (own * opponent).any()


def pieces_of_planes(position: Position) -> list[Piece]:
    """A stone for every 1 in planes 0 (the mover's) and 1 (the opponent's) of the observation.

    No pieces if these planes hold other numbers, or if both have a 1 in the same cell: they show no stones then.
    """
    if not position.game.board.cells or not shows_stones(position):
        return []
    own, opponent = (plane.ravel() for plane in position.observation[:2])
    owners = {cell: position.to_play for cell in own.nonzero()[0].tolist()}
    owners |= {cell: 1 - position.to_play for cell in opponent.nonzero()[0].tolist()}
    return [Piece(cell, owner) for cell, owner in sorted(owners.items())]


def clicks_of_cells(position: Position) -> dict[tuple[int, ...], int]:
    """Cell i plays action i. Actions beyond the cells are buttons."""
    return {(action,): action for action in position.legal_actions if action < len(position.game.board.cells)}


def clicks_by_difference(position: Position) -> dict[tuple[int, ...], int]:
    """Plays every legal action and reads its clicks from the pieces that change.

    An action that puts a piece of the mover on an empty cell is a click there. An action that moves one of the mover's
    pieces is two clicks, from and to. All other actions are buttons. If two actions need the same clicks, the one that
    changes more becomes a button. If the actions are the columns of a grid, every cell of a column plays the column.
    """
    before = {piece.cell: piece.player for piece in position.game.pieces(position)}
    mover = position.to_play
    found: list[tuple[int, int, tuple[int, ...]]] = []
    for action in position.legal_actions:
        after = {piece.cell: piece.player for piece in position.game.pieces(position.play(action))}
        changed = [cell for cell in sorted(before | after) if before.get(cell, -1) != after.get(cell, -1)]
        left = [cell for cell in changed if before.get(cell, -1) == mover]
        reached = [cell for cell in changed if after.get(cell, -1) == mover]
        placed = [cell for cell in reached if cell not in before]
        if len(left) == 1 and len(reached) == 1:
            found.append((len(changed), action, (left[0], reached[0])))
        elif not left and len(placed) == 1:
            found.append((len(changed), action, (placed[0],)))
    clicks: dict[tuple[int, ...], int] = {}
    for _, action, path in sorted(found):
        clicks.setdefault(path, action)
    return _widened_to_columns(position.game, clicks)


def _widened_to_columns(game: Game, clicks: dict[tuple[int, ...], int]) -> dict[tuple[int, ...], int]:
    """The clicks, with every cell of a column added if the actions are columns."""
    _, rows, columns = game.observation_shape
    cells = game.board.cells
    if game.num_actions != columns or len(cells) != rows * columns:
        return clicks
    if any(len(path) != 1 or path[0] % columns != action for path, action in clicks.items()):
        return clicks
    return clicks | {(cell,): cell % columns for cell in range(len(cells)) if cell % columns in clicks.values()}


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


# --- boards of hexagons ---


def hexagon(row: int, column: int) -> tuple[Point, ...]:
    """The outline of a cell in a rhombus of hexagons; they are one unit wide, and a corner points up."""
    x, y, side = column + row / 2 + 0.5, row * math.sqrt(3) / 2 + 1 / math.sqrt(3), 1 / math.sqrt(3)
    corners = (math.radians(60 * corner - 90) for corner in range(6))
    return tuple((round(x + side * math.cos(angle), 4), round(y + side * math.sin(angle), 4)) for angle in corners)


def center(outline: Sequence[Point]) -> Point:
    """The mean of the corners of a polygon."""
    return sum(x for x, _ in outline) / len(outline), sum(y for _, y in outline) / len(outline)
