"""Recorded games on the terminal: a list of them, and one of them step by step."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from alphazero.game import Game
from alphazero.game_record import GameRecord


def list_games(records: Sequence[GameRecord]) -> None:
    """A line for each: its number, its result, who played, and its first moves."""
    print(f"{len(records)} games; step through one by adding its number")
    for i, record in enumerate(records):
        moves = " ".join((*record.opening, *record.moves))
        print(f"{i:>5}  {record.result:<7}  {' - '.join(record.contestants)}  {moves:.80}")


def step_through(record: GameRecord, game: Game) -> None:
    """Position after position; asks before each where somebody is at the terminal. Raises IllegalAction."""
    positions, words = record.positions(game), ("", *record.opening, *record.moves)
    asks, shown = sys.stdin.isatty(), 0
    while shown < len(positions):
        who = "" if shown == 0 else "opening: " if shown <= len(record.opening) else ""
        if shown > len(record.opening):
            who = f"{record.contestants[positions[shown - 1].to_play]} plays "
        print(f"\n{shown} of {len(positions) - 1}  {who}{words[shown]}\n\n{positions[shown]}")
        try:
            answer = input("\nEnter: next, b: back, q: quit  ").strip().lower() if asks else ""
        except EOFError:
            answer = "q"
        if answer.startswith("q"):
            return
        shown = max(0, shown - 1) if answer.startswith("b") else shown + 1
    print(f"\n{' - '.join(record.contestants)}: {record.result}" + (record.forfeit and f" ({record.forfeit})"))
