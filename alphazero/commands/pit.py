"""Plays two contestants, `alphazero pit A B`; shows games that were saved, `alphazero replay FILE`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import tyro

from alphazero.api.matches import has_human, results_of
from alphazero.catalogue import registry
from alphazero.commands.options import Contestant, MatchOptions, TournamentConfig, argument, load_game, positional
from alphazero.commands.shared import parse, say, spare_files
from alphazero.errors import InputError, InvalidSetting, Terminated, count_of, printable
from alphazero.game import Game, Position
from alphazero.game.reading.moves import SPELLINGS
from alphazero.game.reading.record_files import check_format, read_games, write_games
from alphazero.game.record import GameRecord
from alphazero.invocation import command_line
from alphazero.matches.arena import LEFT
from alphazero.matches.intervals import Sprt
from alphazero.matches.result import MatchResult, as_json, describe, records_of
from alphazero.players.contestants import make_player
from alphazero.players.human import HumanLeft, HumanPlayer
from alphazero.storage.files import write_json


@dataclass(frozen=True)
class PitConfig(MatchOptions):
    """Plays two contestants against each other and says who is stronger. Three or more play a tournament.

    A contestant is random, greedy, minimax:DEPTH, mcts:SIMULATIONS, human, a shipped net (beginner, club or best in
    Connect Four), a run folder (its best net), folder:GENERATION, a checkpoint file, python:MODULE:FUNCTION (your own
    function), gtp:"COMMAND" or uci:"COMMAND" (a program that speaks GTP or UCI), or a player of the game's own (solver
    in Connect Four and Othello). Contestants that search take settings, as in runs/c4@simulations=200,temperature=0.2.
    """

    contestants: Annotated[tuple[Contestant, ...], tyro.conf.Positional, positional("A B")] = ()
    """The contestants. The options for more than two are those of `alphazero tournament`."""
    games: Annotated[int | None, argument("INT", "100; 2 with a human, at most 20,000 with --sprt")] = None
    """Games; each contestant begins half of them. Those for more than two come in whole groups of all seats."""
    sprt: Annotated[str | None, argument("ELO0,ELO1", "none")] = None
    """End the match once it is clear whether A is at least ELO1 points stronger, or at most ELO0.
    This is a sequential probability ratio test, as in --sprt 0,20."""
    save_games: Annotated[Path | None, argument("FILE", "none")] = None
    """Write all games into this file: one line of JSON each, with the moves in the game's notation.
    If its name ends in .pgn, .sgf or .ggf they are written as PGN, SGF or Othello's GGF."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.test()
        if self.sprt is not None and self.openings == "none":
            raise InvalidSetting(
                "--sprt needs another opening for each pair of games, since players without randomness repeat their "
                "games: leave --openings none out"
            )

    def test(self) -> Sprt | None:
        """The test that `--sprt` asks for."""
        return None if self.sprt is None else Sprt.parse(self.sprt)


_MORE = (each.name for each in fields(TournamentConfig) if each.name not in PitConfig.__dataclass_fields__)
FOR_MORE = {f"--{name.replace('_', '-')}" for name in _MORE}
"""Options of tournaments alone."""


def main(argv: list[str]) -> None:
    asked = {word.partition("=")[0] for word in argv}
    if asked & FOR_MORE or len((config := parse(PitConfig, argv, command="pit")).contestants) > 2:
        from alphazero.commands import tournament  # it imports scipy, which takes as long as all else

        tournament.main(argv)
    else:
        play(config)


def play(config: PitConfig) -> None:
    if len(config.contestants) != 2:
        raise InvalidSetting(
            f"pit takes two contestants, as in {command_line('pit', 'random', 'greedy')}, "
            f"not {len(config.contestants)}; three or more play a tournament; --help says more"
        )
    spare_files(config.overwrite, config.save_games, config.json)
    game_name, loaded = load_game(config.game, config.contestants)
    if config.save_games is not None:
        check_format(config.save_games, loaded.game)
    settings: dict[str, Any] = {"seed": config.seed, "threads": config.threads, "simulations": config.simulations}
    players = [make_player(one, loaded, device=config.device, **settings) for one in config.contestants]
    for human in players:
        if isinstance(human, HumanPlayer):
            human.loaded_as = game_name
    test, names = config.test(), (config.contestants[0].text, config.contestants[1].text)
    if test and has_human(players):
        raise InvalidSetting("games with a human are few: leave --sprt out")
    num_games = config.games or (20_000 if test else None)
    openings = "none" if has_human(players) else config.openings

    def report(result: MatchResult) -> None:
        say(describe(loaded.game, names, result, test, openings))
        if config.save_games is not None:
            records = records_of(result, loaded.game, game_name, names, config.seed)
            write_games(config.save_games, loaded.game, records)
        if config.json is not None:
            write_json(config.json, as_json(loaded.game.name, config.seed, names, result, test, openings))

    result: Any = None
    try:
        for result in results_of(loaded, players, num_games, config.openings, config.seed):
            if test and test.verdict(result.pairs) is not None:
                result = result.whole_pairs()
                break
    except HumanLeft:
        print(LEFT)
    except (InputError, KeyboardInterrupt, Terminated):
        if result and (whole := result.whole_pairs()).num_games:
            print(f"The match was not finished; these are its first {count_of(whole.num_games, 'game')}.")
            report(whole)
        raise
    else:
        report(result)


@dataclass(frozen=True)
class ReplayConfig:
    """Lists the games in a file of --save-games, a tournament or the page, or steps through one of them."""

    file: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FILE")]
    """The file, as in games.jsonl, or games.pgn, .sgf, .ggf and .wtb of other programs."""
    number: Annotated[
        int | None, tyro.conf.Positional, tyro.conf.arg(metavar="[NUMBER]", help_behavior_hint="(default: list them)")
    ] = None
    """The game to step through; the first is 0."""
    game: Annotated[str | None, argument("NAME", "as the file says")] = None
    """The game: a name, a Python file or a module. Games of your own need it."""


def replay(argv: list[str]) -> None:
    config = parse(ReplayConfig, argv, command="replay")
    records = read_games(config.file)
    if config.number is None:
        list_games(records)
        return
    if not 0 <= config.number < len(records):
        first = ", and the first one is game 0" * bool(records)
        raise InvalidSetting(f"{config.file} holds {count_of(len(records), 'game')}{first}")
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
    """Prints one position after the other; on a terminal it waits for Enter before each. Raises IllegalAction.

    In a game for one the second contestant's positions come behind those of the first.
    """
    positions, shown = record.positions(game), 0
    words, second = with_passes(positions, (*record.opening, *record.moves)), len(positions)
    opening = len(replace(record, moves=()).positions(game)) - 1
    if record.others:
        others = record.positions(game, second=True)
        positions, words = positions + others, words + with_passes(others, record.others)
    while shown < len(positions):
        is_opening = 0 < shown <= opening or 0 < shown - second <= opening
        who = "opening: " if is_opening else ""
        if shown > opening and not is_opening:
            alone, mover = game.num_players == 1, positions[shown - 1].to_play
            who = f"{record.contestants[shown >= second] if alone else record.player_at(mover, game)} plays "
            if shown == second or positions[shown - 1].chances:
                who = "then " if shown != second else f"{record.contestants[1]} begins"
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


def with_passes(positions: Sequence[Position], words: Sequence[str]) -> list[str]:
    """The word that led to each position, "" for the first; `words` may leave forced passes out."""
    left, found = list(words), [""]
    for before, after in pairwise(positions):
        word = before.format(after.actions[-1])
        is_left_out = word == "pass" and (not left or SPELLINGS.get(left[0].strip().lower()) != "pass")
        found.append(word if is_left_out else left.pop(0))
    return found
