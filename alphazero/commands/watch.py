"""Shows games that were recorded."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from alphazero.errors import count_of, printable
from alphazero.game import Game
from alphazero.game.record import GameRecord


def list_games(records: Sequence[GameRecord]) -> None:
    """Prints a line for each game: number, result, players and first moves."""
    print(f"{count_of(len(records), 'game')}" + "; step through one by adding its number" * bool(records))
    for i, record in enumerate(records):
        moves = " ".join((*record.opening, *record.moves))
        print(f"{i:>5}  {record.result:<7}  {printable(' - '.join(record.contestants))}  {printable(moves):.80}")


def step_through(record: GameRecord, game: Game) -> None:
    """Prints one position after the other; on a terminal it waits for Enter before each. Raises IllegalAction."""
    positions, words = record.positions(game), ("", *record.opening, *record.moves)
    asks, shown = sys.stdin is not None and sys.stdin.isatty(), 0  # None: it was closed before we began
    while shown < len(positions):
        who = "" if shown == 0 else "opening: " if shown <= len(record.opening) else ""
        if shown > len(record.opening):
            who = f"{printable(record.contestants[positions[shown - 1].to_play])} plays "
        print(f"\n{shown} of {len(positions) - 1}  {who}{printable(words[shown])}\n\n{positions[shown]}")
        try:
            answer = input("\nEnter: next, b: back, q: quit  ").strip().lower() if asks else ""
        except EOFError:
            answer = "q"
        if answer.startswith("q"):
            return
        shown = max(0, shown - 1) if answer.startswith("b") else shown + 1
    ended = f"{' - '.join(record.contestants)}: {record.result}" + (record.forfeit and f" ({record.forfeit})")
    print(f"\n{printable(ended)}")
