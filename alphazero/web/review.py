"""The review of a game: the value and the exact results at every ply, by which the page judges the moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alphazero.errors import InputError
from alphazero.game import Position
from alphazero.web.searches import Stop, short_search
from alphazero.web.seats import Seat
from alphazero.web.tables import Table

MOST_PLIES = 600


def review(
    table: Table, seat: Seat | None, generation: int | None, simulations: int, position: Position, stop: Stop
) -> Iterator[dict[str, Any]]:
    """A report for every position of the game, in order.

    It has the position's `value`, the expected score of the first player from 0 to 1 (exact at the end of the game,
    None without a `seat`), the move that was played there, and the exact results. `seat` searches each position.
    """
    if position.ply > MOST_PLIES:
        raise InputError(f"a game of more than {MOST_PLIES} plies is too long for a review")
    analysis = None if seat is None else short_search(seat, generation, table.game, simulations)
    for ply, at in enumerate(position.history):
        if stop.is_set():
            return
        row: dict[str, Any] = {"ply": ply, "mover": at.to_play, "value": None}
        if at.terminal:
            row["value"] = (at.outcome + 1) / 2
        elif analysis is not None:
            with analysis.on_one_thread():
                analysis.begin(at)
                while analysis.simulations < simulations and not analysis.finished and not stop.is_set():
                    analysis.step()
            if stop.is_set():
                return
            row["value"] = round(as_first(analysis.node().value, at.to_play), 4)
        if ply < position.ply:
            action = position.actions[ply]
            row |= {"action": action, "word": at.format(action), "results": table.results(at)}
        yield {"rows": [row], "of": position.ply + 1, "more": ply < position.ply}


def as_first(value: float, to_play: int) -> float:
    """The expected score of the first player, 0 to 1, from a value in [-1, 1] for the player to move."""
    return (1 + (value if to_play == 0 else -value)) / 2
