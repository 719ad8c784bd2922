"""Shows matches while they are played, and games that were recorded."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from alphazero.errors import count_of, printable
from alphazero.game import Game
from alphazero.game.kernels import kernels_of
from alphazero.game.record import GameRecord
from alphazero.matches.arena import MatchResult, play_match
from alphazero.players.human import HumanLeft
from alphazero.players.player import Player


def play_with_human(game: Game, first: Player, second: Player, num_games: int, seed: int) -> MatchResult:
    """Plays games one after the other from the start position, and prints how each ended.

    A human who leaves keeps the games that are over.
    """
    so_far = MatchResult((), (), (), (0, 0), (0.0, 0.0))

    def show(result: MatchResult) -> None:
        nonlocal so_far
        if result.num_games > so_far.num_games:
            so_far = result
            winner = {1: f"{first.name} wins", -1: f"{second.name} wins", 0: "a draw"}[result.outcomes[-1]]
            print(f"\n{game.position(result.actions[-1])}\n\nGame {result.num_games}: {winner}.")

    try:
        return play_match(kernels_of(game), first, second, num_games, seed, opening_plies=0, on_progress=show)
    except HumanLeft:
        print("You have left the match.")
        return so_far


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
