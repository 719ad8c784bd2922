"""Shows games that were recorded: `alphazero replay games.jsonl`, `alphazero replay games.jsonl 3`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from alphazero.catalogue import registry
from alphazero.commands.options import argument
from alphazero.commands.shared import parse
from alphazero.errors import InvalidSetting, count_of, printable
from alphazero.game import Game
from alphazero.game.record import GameRecord, read_records


@dataclass(frozen=True)
class ReplayConfig:
    """Lists the games in a file of --save-games, a tournament or the page, or steps through one of them."""

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """The file, as in games.jsonl."""
    number: Annotated[
        int | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NUMBER]", help_behavior_hint="(default: list them)")
    ] = None
    """The game to step through; the first is 0."""
    game: Annotated[str | None, argument("NAME", "as the file says")] = None
    """The game: a name, a Python file or a module. Games of your own need it."""


def main(argv: list[str]) -> None:
    config = parse(ReplayConfig, argv, command="replay")
    records = read_records(config.file)
    if config.number is None:
        list_games(records)
        return
    if not 0 <= config.number < len(records):
        there = f"{count_of(len(records), 'game')}, the first of which is game 0" if records else "no games"
        raise InvalidSetting(f"{config.file} holds {there}")
    record = records[config.number]
    loaded = registry.load(config.game) if config.game else registry.load_named(record.game, str(config.file))
    step_through(record, loaded.game)


def list_games(records: Sequence[GameRecord]) -> None:
    """Prints a line for each game: number, result, players and first moves."""
    print(f"{count_of(len(records), 'game')}" + "; step through one by adding its number" * bool(records))
    for i, record in enumerate(records):
        moves = " ".join((*record.opening, *record.moves))
        print(f"{i:>5}  {record.result:<7}  {printable(' - '.join(record.contestants))}  {printable(moves):.80}")


def step_through(record: GameRecord, game: Game) -> None:
    """Prints one position after the other; on a terminal it waits for Enter before each. Raises IllegalAction."""
    positions, words, shown = record.positions(game), ("", *record.opening, *record.moves), 0
    while shown < len(positions):
        who = "opening: " if 0 < shown <= len(record.opening) else ""
        if shown > len(record.opening):
            who = f"{record.contestants[positions[shown - 1].to_play]} plays "
        print(f"\n{shown} of {len(positions) - 1}  {printable(who + words[shown])}\n\n{positions[shown]}")
        answer = ""
        if sys.stdin.isatty():
            answer = "q"
            with contextlib.suppress(EOFError):
                answer = input("\nEnter: next, b: back, q: quit  ").strip().lower()
        if answer.startswith("q"):
            return
        shown = max(0, shown - 1) if answer.startswith("b") else shown + 1
    ended = f"{' - '.join(record.contestants)}: {record.result}" + (record.forfeit and f" ({record.forfeit})")
    print(f"\n{printable(ended)}")
