"""Games of OpenSpiel as their texts and a few random games show them: the board, the length, and what is hidden."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alphazero.game.board import Board, Cell, Piece, grid_cells, hexagon

EMPTY = ".-"
STONES = ("xyzXYZbB@*+", "opqOPQwW")
"""The characters for the stones of one side, and of the other."""
BLOCKED = "#"

GAMES = 4
OPENING = 4
"""Plies from the start within which observations are compared."""
CHILDREN = 32
"""Positions that are compared after each of these plies, at most."""
HIDDEN = 0.2
"""The share of positions that look like others, from which on a network cannot learn the game. In quoridor it is 0.34
to 0.98, on boards of all sizes. In hive it is 0.03 to 0.07, since its observations do not number bugs of a kind; in all
other games it is 0."""


# --- the board in a text in which every cell is one character, as in most games ---


@dataclass(frozen=True)
class TextBoard:
    """The board of one game. It has no cells if the texts of the game show no board."""

    board: Board
    empty: str = EMPTY
    owners: tuple[int, int] = (0, 1)
    """The players who own the two kinds of STONES."""

    def pieces(self, text: str) -> list[Piece]:
        """The pieces that the text of a position shows."""
        if not self.board.cells:
            return []
        owners = {stone: owner for stones, owner in zip(STONES, self.owners, strict=True) for stone in stones}
        signs = enumerate("".join(find_rows(text)))
        return [Piece(cell, owners.get(sign), "stone") for cell, sign in signs if sign not in self.empty]


def read_board(start: str, after: Sequence[str]) -> TextBoard:
    """The board in the text of the start position.

    `after` are texts of positions one ply later. The stones that are new in them belong to the first player.
    """
    rows = find_rows(start)
    if not rows:
        return TextBoard(Board())
    size = len(rows), len(rows[0])
    names = [f"row {row + 1}, column {column + 1}" for row in range(size[0]) for column in range(size[1])]
    cells = grid_cells(*size, names)
    indents = [len(line) - len(line.lstrip()) for line in start.split("\n") if line.strip()]
    if all(after == before + 1 for before, after in itertools.pairwise(indents)):  # rows that slant
        cells = tuple(Cell(name, hexagon(*divmod(cell, size[1]))) for cell, name in enumerate(names))
    before = "".join(rows)
    empty = EMPTY if set(EMPTY) & set(before) else EMPTY + "+"
    new = [now for text in after for was, now in zip(before, "".join(find_rows(text)), strict=False) if now != was]
    second_first = any(character in STONES[1] for character in new)
    return TextBoard(Board(cells), empty, (1, 0) if second_first else (0, 1))


def find_rows(text: str) -> list[str]:
    """The characters of the cells, row by row. Empty unless the text has one block of rows of one length."""
    lines = list(filter(None, (re.sub(r"[\s\d\[\]]", "", line) for line in text.split("\n"))))
    known = set("".join((EMPTY, *STONES, BLOCKED)))
    grouped = itertools.groupby(lines, lambda line: len(line) > 1 and set(line) <= known)
    blocks = [list(block) for is_row, block in grouped if is_row]
    return blocks[0] if len(blocks) == 1 < len(blocks[0]) and len(set(map(len, blocks[0]))) == 1 else []


# --- random games ---


def random_games(game: Any, most: int) -> Iterator[tuple[int, Any]]:
    """Ply and position for all positions of GAMES games, the same ones each time, up to ply `most`.

    Positions where a die is due are left out, and dice are no plies.
    """
    return ((ply, position) for ply, position in _with_dice(game, most) if not position.is_chance_node())


def _with_dice(game: Any, most: int) -> Iterator[tuple[int, Any]]:
    rng = random.Random(0)
    for _ in range(GAMES):
        ply, position = 0, game.new_initial_state()
        while True:
            yield ply, position
            is_die = position.is_chance_node()
            if position.is_terminal() or (ply == most and not is_die):
                break
            actions = position.legal_actions()
            position = position.child(actions[int(rng.random() * len(actions))])
            ply += not is_die


def dice_in_a_row(game: Any, most: int) -> int:
    """Twice the most dice one after another in the random games, since others may have more; at least two."""
    rows = itertools.groupby(position.is_chance_node() for _, position in _with_dice(game, most))
    return 2 * max((len(list(row)) for is_die, row in rows if is_die), default=1)


def longest_game(game: Any, most: int) -> int:
    """Plies of the longest of the random games, `most` at most."""
    return max(ply for ply, _ in random_games(game, most))


def looks_alike(game: Any) -> bool:
    """Whether the observations of many positions are like those of others with other legal actions.

    Compared are those that different actions lead to from the same position.
    """
    compared = alike = 0
    for _, position in random_games(game, OPENING):
        seen: dict[tuple[int, bytes], list[int]] = {}
        actions = position.legal_actions()
        for action in actions[:: -(-len(actions) // CHILDREN) or 1]:
            child = position.child(action)
            while child.is_chance_node():
                child = child.child(child.legal_actions()[0])
            if not child.is_terminal():
                compared += 1
                player, legal = child.current_player(), child.legal_actions()
                look = np.float32(child.observation_tensor(player)).tobytes()
                alike += seen.setdefault((player, look), legal) != legal
    return alike > HIDDEN * compared


class TextPlanes:
    """Planes of a text that differs in the same places all the time, as one that draws a board.

    There is a plane for each character, blanks aside. Lines, columns and characters that are the same in all the texts
    are left out.
    """

    def __init__(self, texts: list[str]):
        lines = [text.split("\n") for text in texts]
        self._height, self._width = max(map(len, lines)), max(len(line) for text in lines for line in text)
        grids = np.stack([self._grid(text) for text in texts])
        differs = (grids != grids[0]).any(axis=0)
        self._places = np.ix_(differs.any(axis=1), differs.any(axis=0))
        self._characters = np.setdiff1d(grids[:, differs], [ord(" ")])
        self.shape = len(self._characters), *grids[0][self._places].shape
        """Planes, rows, columns."""

    def __call__(self, text: str) -> np.ndarray:
        """`float32` of that shape."""
        return (self._grid(text)[self._places] == self._characters[:, None, None]).astype(np.float32)

    def _grid(self, text: str) -> np.ndarray:
        """The text's characters as numbers, in rows and columns, filled up with blanks."""
        lines = [line.ljust(self._width)[: self._width] for line in text.split("\n")]
        lines += [" " * self._width] * (self._height - len(lines))
        codes = "".join(lines[: self._height]).encode("utf-32-le")
        return np.frombuffer(codes, "<u4").reshape(self._height, self._width)
