"""Boards, pieces and clicks for games that do not describe them, and the view of a position."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np

from alphazero.errors import GameError, IllegalAction
from alphazero.game.board import Board, Click, Clicks, Label, Piece, View, edge_labels, grid_cells


class AnyGame(Protocol):
    """A `Game`, as the modules below it see it."""

    num_actions: int
    observation_shape: tuple[int, int, int]

    @property
    def name(self) -> str: ...
    @property
    def board(self) -> Board: ...
    def start(self) -> AnyPosition: ...
    def pieces(self, position: Any) -> Sequence[Piece]: ...
    def clicks(self, position: Any) -> Clicks: ...
    def winning_cells(self, position: Any) -> Sequence[int]: ...
    def split_moves(self, text: str) -> list[str]: ...


class AnyPosition(Protocol):
    """A `Position`, as the modules below it see it."""

    state: np.ndarray
    to_play: int
    actions: tuple[int, ...]

    @property
    def game(self) -> AnyGame: ...
    @property
    def history(self) -> Sequence[AnyPosition]: ...
    @property
    def terminal(self) -> bool: ...
    @property
    def outcome(self) -> int: ...
    @property
    def observation(self) -> np.ndarray: ...
    @property
    def legal_actions(self) -> list[int]: ...
    def play(self, action: int) -> Self: ...
    def parse(self, text: str) -> int: ...
    def format(self, action: int) -> str: ...


def view_of(position: AnyPosition) -> View:
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


def _last_cells(position: AnyPosition) -> tuple[int, ...]:
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


def _checked_clicks(position: AnyPosition) -> tuple[Click, ...]:
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


def grid_board(game: AnyGame) -> Board:
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


def shows_stones(position: AnyPosition) -> bool:
    """Planes 0 and 1 of the observation hold 0 and 1 alone, and in no cell two 1."""
    own, opponent = position.observation[:2]
    numbers = {*own.ravel().tolist(), *opponent.ravel().tolist()}
    return numbers <= {0.0, 1.0} and not (own * opponent).any()


def pieces_of_planes(position: AnyPosition) -> list[Piece]:
    """A stone for every 1 in planes 0 (the mover's) and 1 (the opponent's) of the observation.

    No pieces if these planes hold other numbers, or if both have a 1 in the same cell: they show no stones then.
    """
    if not position.game.board.cells or not shows_stones(position):
        return []
    own, opponent = (plane.ravel() for plane in position.observation[:2])
    owners = {cell: position.to_play for cell in own.nonzero()[0].tolist()}
    owners |= {cell: 1 - position.to_play for cell in opponent.nonzero()[0].tolist()}
    return [Piece(cell, owner) for cell, owner in sorted(owners.items())]


def clicks_of_cells(position: AnyPosition) -> dict[tuple[int, ...], int]:
    """Cell i plays action i. Actions beyond the cells are buttons."""
    return {(action,): action for action in position.legal_actions if action < len(position.game.board.cells)}


def clicks_by_difference(position: AnyPosition) -> dict[tuple[int, ...], int]:
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


def _widened_to_columns(game: AnyGame, clicks: dict[tuple[int, ...], int]) -> dict[tuple[int, ...], int]:
    """The clicks, with every cell of a column added if the actions are columns."""
    _, rows, columns = game.observation_shape
    cells = game.board.cells
    if game.num_actions != columns or len(cells) != rows * columns:
        return clicks
    if any(len(path) != 1 or path[0] % columns != action for path, action in clicks.items()):
        return clicks
    return clicks | {(cell,): cell % columns for cell in range(len(cells)) if cell % columns in clicks.values()}
