"""Reads boards that are written as text, one sign for each cell, and finds moves that lead to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from string import ascii_lowercase

from alphazero.errors import quote
from alphazero.game.game import Game, Position

EMPTY, FIRST, SECOND = "-._", "Xx*Bb", "OoWw"
"""The signs of an empty cell, and of the first and the second player's pieces, as Edax reads them."""
SIDES = re.compile(r"\s*(?:(black|first)|white|second)(?: player)?\s*$", re.IGNORECASE)
"""Words of people for who moves, besides a sign."""


@dataclass(frozen=True)
class Grid:
    """The pieces on a board that was written as text."""

    first: list[int]
    """The first player's cells, which count row by row from the top."""
    second: list[int]
    to_play: int | None
    """The player to move, 0 or 1; None if the text does not say."""


def read_grid(text: str, rows: int, columns: int, first: str = FIRST, second: str = SECOND) -> Grid | None:
    """The pieces of a board that is written row by row from the top; None if the text is no board.

    Behind the board may stand who moves, as a sign or as in `white to move`, and a semicolon with anything. Spaces,
    line breaks, slashes, and the numbers and letters at the edges count for nothing. In the rows of a FEN a number is
    so many empty cells. Raises ValueError for a wrong sign or number of cells.
    """
    signs = EMPTY + first + second
    text = re.sub(r"\s+to\s+(move|play)\s*$", "", text.partition(";")[0], flags=re.IGNORECASE)
    text = SIDES.sub(lambda side: f" {(first if side[1] else second)[0]}", text)
    words = re.sub(r"\s*/\s*", "/", text).split()
    if words and "/" in words[0] and len(words[0]) > columns:  # the rows of a FEN, who moves, and other fields
        if more := [word for word in words[2:] if not re.fullmatch(r"-|\d+|[KQkq]{1,4}", word)]:
            raise ValueError(f"behind who moves stands {quote(more[0])}; moves follow the word moves")
        words = [_without_runs(words[0], columns), *words[1:2]]
    words = [word for word in re.split(r"[\s/|]+", " ".join(words)) if not word.isdigit()]
    side = words.pop() if len(words) > 1 and len(words[-1]) == 1 < max(map(len, words)) else ""
    letters = f"{ascii_lowercase[:columns]}|{ascii_lowercase.replace('i', '')[:columns]}"  # Go players leave out the i
    cells = re.sub(letters, "", "".join(words), flags=re.IGNORECASE)
    run = re.search(f"[{re.escape(signs)}]{{{columns}}}", cells)
    if run is None or 3 * sum(sign in signs for sign in cells) < 2 * len(cells):  # moves, such as 1...b2
        return None
    wrong = next((sign for sign in cells + side if sign not in signs), None)
    if wrong is not None:
        behind = "behind it may stand who moves, X or O, black or white"
        raise ValueError(f"its signs are {' '.join(signs)}, and {quote(wrong)} is none of them; {behind}")
    size, cells = rows * columns, cells + side
    told = len(cells) == size + 1 and cells[-1] not in EMPTY
    if len(cells) - told != size or (side and not told):
        found = len(cells) - bool(side)
        raise ValueError(f"it has {size} cells, {rows} rows of {columns} from the top, and not {found}")
    owners = [[cell for cell, sign in enumerate(cells[:size]) if sign in own] for own in (first, second)]
    return Grid(owners[0], owners[1], int(cells[-1] in second) if told else None)


def _without_runs(rows: str, columns: int) -> str:
    """The rows of a FEN with a sign for each cell; raises ValueError for a row of another length."""
    found = [re.sub(r"\d+", lambda run: EMPTY[0] * min(int(run[0][:4]), 1000), row) for row in rows.split("/")]
    if any(len(row) != columns for row in found):
        raise ValueError(f"each of its rows has {columns} cells, and {quote(rows)} has other ones")
    return "".join(found)


def placed_in_turn(game: Game, grid: Grid) -> Position:
    """The position of a game in which players in turn put a piece on a cell, and the action is the cell.

    Raises ValueError if no game leads to the board.
    """
    check_turns(grid)
    return reached(game, in_turn(grid.first, grid.second))


def check_turns(grid: Grid) -> None:
    """Raises ValueError unless players who put down pieces in turn can have put down so many."""
    lead = len(grid.first) - len(grid.second)
    if lead not in (0, 1):
        numbers = f"{len(grid.first)} X and {len(grid.second)} O"
        raise ValueError(f"X begins and players take turns, so there is one X more than O or as many, not {numbers}")
    if grid.to_play not in (None, lead):
        raise ValueError(f"by the number of pieces {'XO'[lead]} is to move, and the text says {'OX'[lead]}")


def in_turn(first: Sequence[int], second: Sequence[int]) -> Iterator[list[int]]:
    """All cells in an order of play, the first player's before the second's; each of who moved last is once the end."""
    last = first if len(first) > len(second) else second
    for end in range(1, len(last) + 1) if last else [0]:
        turned = [*last[end:], *last[:end]]
        pairs = zip_longest(turned if last is first else first, turned if last is second else second)
        yield [cell for pair in pairs for cell in pair if cell is not None]


def reached(game: Game, games: Iterable[Sequence[int]]) -> Position:
    """The position at the end of the first of these games that is not over earlier, without its history.

    Raises ValueError if there is none.
    """
    for actions in games:
        state = game.start().state.copy()
        for action in actions:
            if game.plain_rules.is_terminal(state):
                break
            game.plain_rules.step(state, action)
        else:
            return Position(game, state, game.mover(state, len(actions) % 2), ())
    raise ValueError("no order of moves leads to it; in each, the game is over earlier")
