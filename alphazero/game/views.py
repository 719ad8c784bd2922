"""Boards, pieces and clicks for games that do not describe them, and the view of a position.

A `game` is a Game and a `position` a Position, which are made of what is here.
"""

from __future__ import annotations

import contextlib
from string import ascii_letters
from typing import Any

from alphazero.errors import GameError, IllegalAction
from alphazero.game.board import Board, Click, Label, Piece, View, edge_labels, grid_cells


def view_of(position: Any) -> View:
    """The view of a position. Raises GameError if the clicks that the game describes are wrong."""
    game, over = position.game, position.terminal
    return View(
        position.to_play,
        position.outcome if over else None,
        position.winners if over else (),
        tuple(game.pieces(position)),
        () if over else _checked_clicks(position),
        _last_cells(position),
        tuple(game.winning_cells(position)) if over else (),
        str(position),
        game.remark(position),
    )


def _last_cells(position: Any) -> tuple[int, ...]:
    """The cells of the last action; none if the position does not know its history."""
    with contextlib.suppress(IllegalAction, ValueError):
        *_, before, reached = position.history
        clicks = position.game.clicks(before) if (reached.state == position.state).all() else {}
        return next((_parts(path)[0] for path, action in clicks.items() if action == position.actions[-1]), ())
    return ()


def _parts(path: tuple[Any, ...]) -> tuple[tuple[int, ...], str]:
    """The cells of a path, and the word to choose behind them."""
    choice = path[-1] if path and isinstance(path[-1], str) else ""
    return tuple(path[: len(path) - bool(choice)]), choice


def _checked_clicks(position: Any) -> tuple[Click, ...]:
    """The clicks and buttons of all legal actions."""
    game, legal = position.game, set(position.legal_actions)
    num_cells, found = len(game.board.cells), game.clicks(position)
    for path, action in found.items():
        cells, _ = _parts(path)
        are_cells = cells and all(not isinstance(cell, str) and 0 <= cell < num_cells for cell in cells)
        if action not in legal or not are_cells or any(path[:length] in found for length in range(1, len(path))):
            law = f"clicks must name cells 0 to {num_cells - 1}, lead to legal actions, and not begin with other clicks"
            raise GameError(f"{game.name}: {law}: {list(path)} leads to {action}")
    buttons = [((), action) for action in sorted(legal - set(found.values()))]
    return tuple(Click(action, position.format(action), *_parts(path)) for path, action in (*found.items(), *buttons))


def grid_board(game: Any) -> Board:
    """The squares of the observation as a board. It has no cells if there is only one plane, row or column."""
    planes, rows, columns = game.observation_shape
    if planes < 2 or rows < 2 or columns < 2:
        return Board()
    names = [f"row {row + 1}, column {column + 1}" for row in range(rows) for column in range(columns)]
    labels: tuple[Label, ...] = ()
    actions, written = game.num_actions, list[str]()
    with contextlib.suppress(Exception):  # a notation may know legal actions alone
        if actions in (rows * columns, rows * columns + 1, columns):
            written = [game.start().format(action) for action in range(actions - actions % columns)]
    if len(written) == len(names):
        names, letters = written, [name.rstrip("0123456789") for name in written[:columns]]
        numbers = [name.lstrip(ascii_letters) for name in names[::columns]]
        if all(letters) and all(numbers) and names == [letter + number for number in numbers for letter in letters]:
            labels = edge_labels(numbers, letters)  # cells are named by column letter and row number
    elif written:
        labels = edge_labels([""] * rows, written)
    return Board(grid_cells(rows, columns, names), labels)


def shows_stones(position: Any) -> bool:
    """The first plane of each player in the observation holds 0 and 1 alone, and no cell has two 1."""
    planes = position.observation[: max(2, position.game.num_players)]
    return {*planes.ravel().tolist()} <= {0.0, 1.0} and planes.sum(axis=0).max() <= 1.0


def pieces_of_planes(position: Any) -> list[Piece]:
    """A stone for every 1 in planes 0 (the mover's), 1 (the next player's) and so on of the observation.

    No pieces if these planes hold other numbers, or if both have a 1 in the same cell: they show no stones then.
    """
    if not position.game.board.cells or not shows_stones(position):
        return []
    count = max(2, position.game.num_players)
    planes = enumerate(position.observation[:count])
    owners = {
        cell: (position.to_play + i) % count for i, plane in planes for cell in plane.ravel().nonzero()[0].tolist()
    }
    return [Piece(cell, owner) for cell, owner in sorted(owners.items())]


def clicks_of_cells(position: Any) -> dict[tuple[int, ...], int]:
    """Cell i plays action i. Actions beyond the cells are buttons."""
    return {(action,): action for action in position.legal_actions if action < len(position.game.board.cells)}


def clicks_by_difference(position: Any) -> dict[tuple[int, ...], int]:
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
    _, rows, columns = position.game.observation_shape
    are_columns = (position.game.num_actions, len(position.game.board.cells)) == (columns, rows * columns)
    if are_columns and all(path[-1] % columns == action for path, action in clicks.items()):
        columns_left = set(clicks.values())
        clicks |= {(cell,): cell % columns for cell in range(rows * columns) if cell % columns in columns_left}
    return clicks
