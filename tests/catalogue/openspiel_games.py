"""OpenSpiel's games that are the same as ours, and our actions in its numbers."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from alphazero.game import Position


@dataclass(frozen=True)
class Theirs:
    """OpenSpiel's game that is the same as one of ours."""

    name: str
    draws: bool | None = True
    """Games end in draws; None: hardly ever, if both play at random."""
    action: Callable[[Position, int, Any], int] = lambda position, action, state: action
    """Our action in their numbers."""
    marks: str = ".xo"
    """An empty cell, the first player's and the second player's, where both draw the board alike; else nothing."""


def breakthrough_action(position: Position, action: int, state: Any) -> int:
    """Their first player starts at the top, ours at the bottom: a2xb3 is their a5b4*."""
    text = re.sub(
        r"\d", lambda rank: str(7 - int(rank[0])), position.format(action).translate({ord(c): None for c in "-x"})
    )
    (found,) = (other for other in state.legal_actions() if state.action_to_string(other).rstrip("*") == text)
    return found


GAMES = {
    "connect4": Theirs("connect_four"),
    "tictactoe": Theirs("tic_tac_toe"),
    "othello": Theirs("othello", marks="-xo"),
    "gomoku": Theirs("gomoku(size=9)", draws=None, marks=".bw"),
    "gomoku15": Theirs("gomoku(size=15)", draws=None, marks=".bw"),
    "hex": Theirs("hex(num_rows=7,num_cols=7)", draws=False),
    "hex_swap": Theirs("hex(num_rows=7,num_cols=7,swap=true)", draws=False),
    "breakthrough": Theirs("breakthrough(rows=6,columns=6)", draws=False, action=breakthrough_action, marks=""),
    "dots_and_boxes": Theirs("dots_and_boxes(num_rows=3,num_cols=3)", draws=False, marks=""),
    "nim": Theirs("nim(is_misere=false)", draws=False, marks=""),
}
