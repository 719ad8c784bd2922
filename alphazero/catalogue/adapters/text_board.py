"""Reads the board of a game from its text, in which every cell is one character, as in most games of OpenSpiel."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from alphazero.game.board import Board, Cell, Piece, grid_cells, hexagon

EMPTY = ".-"
STONES = ("xyzXYZbB@*+", "opqOPQwW")
"""The characters for the stones of one side, and of the other."""
BLOCKED = "#"


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
