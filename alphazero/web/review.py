"""The review of a game: the value after every ply, each move judged, and each side's accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from alphazero.errors import InputError
from alphazero.game import Position
from alphazero.web.searches import Stop, short_search
from alphazero.web.seats import Seat
from alphazero.web.tables import Table
from alphazero.web.truth import judge_by_truth

MISTAKE = 0.1
"""Expected score that a move gives away, from which it counts as a mistake where no oracle knows better."""
MOST_PLIES = 600


def review(
    table: Table, seat: Seat | None, generation: int | None, simulations: int, position: Position, stop: Stop
) -> Iterator[dict[str, Any]]:
    """A report for every position of the game, in order, and a summary at the end.

    A report has the position's `value`, the expected score of the first player from 0 to 1 (exact at the end of the
    game, None without a `seat`), and the judgement of the move that was played there. `seat` searches each position.
    """
    if position.ply > MOST_PLIES:
        raise InputError(f"a game of more than {MOST_PLIES} plies is too long for a review")
    analysis = None if seat is None else short_search(seat, generation, table.game, simulations)
    at, rows = position.start, list[dict[str, Any]]()
    for ply in range(position.ply + 1):
        if stop.is_set():
            return
        played = position.actions[ply] if ply < position.ply else None
        row: dict[str, Any] = {"ply": ply, "mover": at.to_play, "value": None, "best": None, "truth": None}
        if at.terminal:
            row["value"] = (at.outcome + 1) / 2
        elif analysis is not None:
            with analysis.on_one_thread():
                analysis.begin(at)
                while analysis.simulations < simulations and not analysis.finished and not stop.is_set():
                    analysis.step()
            if stop.is_set():
                return
            node = analysis.node()
            row["value"] = round(as_first(node.value, at.to_play), 4)
            row["best"] = analysis.lines()[0].action
        if played is not None:
            row["action"], row["word"] = played, at.format(played)
            row["truth"] = judge_by_truth(table.results(at), played)
        rows.append(row)
        yield {"rows": [row], "of": position.ply + 1, "more": True}
        if played is not None:
            at = at.play(played)
    yield {"rows": [], "of": position.ply + 1, "summary": summary(rows, table), "more": False}


def as_first(value: float, to_play: int) -> float:
    """The expected score of the first player, 0 to 1, from a value in [-1, 1] for the player to move."""
    return (1 + (value if to_play == 0 else -value)) / 2


def summary(rows: list[dict[str, Any]], table: Table) -> dict[str, Any]:
    """Each side's figures, and the mistakes in order.

    `right` of `known` moves keep the best outcome by the oracle. `lost` is the mean expected score that a move gave
    away by the contestant's opinion, over `judged` moves.
    """
    sides = [{"right": 0, "perfect": 0, "known": 0, "lost": 0.0, "judged": 0} for _ in range(2)]
    mistakes = []
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        if "action" not in row:
            continue
        side, truth, lost = sides[row["mover"]], row["truth"], None
        if after is not None and row["value"] is not None and after["value"] is not None:
            change = after["value"] - row["value"]
            lost = max(0.0, -change if row["mover"] == 0 else change)
            side["lost"] += lost
            side["judged"] += 1
        if truth is not None:
            side["known"] += 1
            side["right"] += truth["right"]
            side["perfect"] += truth["perfect"]
        wrong = not truth["right"] if truth is not None else lost is not None and lost >= MISTAKE
        if wrong:
            mistakes.append(_mistake(row, lost, table))
    for side in sides:
        side["lost"] = round(side["lost"] / max(1, side["judged"]), 4)
    return {"sides": sides, "mistakes": mistakes}


def _mistake(row: dict[str, Any], lost: float | None, table: Table) -> dict[str, Any]:
    truth = row["truth"]
    points = f"gives away {100 * (lost or 0):.0f} percentage points of expected score"
    return {
        "ply": row["ply"], "mover": row["mover"], "word": row["word"],
        "sentence": truth["sentence"] if truth is not None else points,
        "best": truth["best"] if truth is not None else row["best"],
        "by": "oracle" if truth is not None else "search",
    }  # fmt: skip
