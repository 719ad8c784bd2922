"""Plays tournaments of three or more contestants, and the ladder of a run, for `alphazero pit`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.commands.pit_config import PitConfig
from alphazero.commands.shared import parse, say, spare_files
from alphazero.errors import InvalidSetting
from alphazero.game.record import GameRecord
from alphazero.interruption import saying
from alphazero.invocation import command_line, quoted
from alphazero.players.contestants import load_game
from alphazero.storage.files import atomic_write, to_json
from alphazero.tournaments.file import read_tournament
from alphazero.tournaments.folder import GAMES, Tournament
from alphazero.tournaments.ladder import FOLDER as LADDER
from alphazero.tournaments.ladder import THREADS, Ladder
from alphazero.tournaments.report import REPORT, write_report
from alphazero.tournaments.standings import Standings, as_text, check_anchor
from alphazero.tournaments.tournament import FOLDER, default_folder, make_tournament, play_tournament

DEFAULT_GAME = "connect4"
"""The game, if no contestant is a checkpoint."""
FILE_OPTIONS = ("games", "simulations", "seed", "adaptive", "openings", "anchor")
"""Options that may also stand in the file of a tournament."""


def compete(config: PitConfig, argv: list[str]) -> None:
    """Plays a tournament of the contestants on the command line or in a file; `config` is what `argv` says."""
    spare_files(config.overwrite, config.json)
    asked, name = _with_file(config, argv)
    game_name, loaded = load_game(asked.game, asked.contestants, DEFAULT_GAME)
    tournament = make_tournament(
        game_name, "gauntlet" if asked.gauntlet else "round-robin", asked.contestants, asked.num_games(),
        asked.simulations, asked.seed, asked.adaptive, asked.openings,
    )  # fmt: skip
    folder = config.folder or (FOLDER / name if name else default_folder(tournament))
    standings = play_and_rate(folder, tournament, loaded, config.threads, asked)
    report(folder, standings, write_report(folder, standings), None, config)


def climb(config: PitConfig, run: Path) -> None:
    """Rates all generations of a run."""
    spare_files(config.overwrite, config.json)
    ladder = Ladder(run, config.contestants)
    game_name, loaded = load_game(config.game, tuple(ladder.contestants.values()), DEFAULT_GAME)
    tournament = ladder.tournament(game_name, config.games, config.simulations, config.seed, config.openings)
    folder = config.folder or run / LADDER
    standings = play_and_rate(folder, tournament, loaded, THREADS, config)
    result = write_report(folder, standings, ladder.fields(), ladder.drawings(standings))
    report(folder, standings, result, ladder.shown(standings), config)


def play_and_rate(
    folder: Path, tournament: Tournament, loaded: LoadedGame, threads: int, config: PitConfig
) -> Standings:
    """Plays the games that are missing; after an interruption, shows the table so far and says how to go on."""
    check_anchor(tournament, config.anchor)

    def rated(records: list[GameRecord]) -> Standings:
        return Standings(tournament, records, loaded.game, config.anchor)

    with saying(lambda: f"\nstopped; the games so far are in {folder}, and the same command goes on from there"):
        records = play_tournament(
            folder, tournament, loaded, threads, config.device, config.find_cluster(),
            stopped=lambda records: say(f"Not finished; the table of the games so far:\n{as_text(rated(records))}"),
        )  # fmt: skip
    return rated(records)


def report(
    folder: Path, standings: Standings, result: dict[str, Any], shown: Sequence[str] | None, config: PitConfig
) -> None:
    """Prints the table and what to do next, and writes `--json`; `config` is as on the command line."""
    say(as_text(standings, shown))
    game = standings.tournament.game
    chosen = [] if game in registry.NAMES else ["--game", game]
    print(
        f"\nNext: open {quoted(folder / REPORT)} in a browser, or step through the first game: "
        f"{command_line('pit', '--replay', folder / GAMES, 0, *chosen)}\n{_way_on(folder, config)}"
    )
    if config.json is not None:
        atomic_write(config.json, to_json(result))  # of any size, as `results.json`


def _way_on(folder: Path, config: PitConfig) -> str:
    """The sentence that says how to go on with a tournament that is over."""
    if config.ladder is not None:
        return "Run the same command again to add the generations that have come since."
    if config.tournament is None:
        name = quoted(folder)
        return f"Run it with more --games, or with more contestants and --folder {name}, to add games."
    raised = "raise games" if config.games is None else "raise --games"  # only one of them can be set
    file = quoted(config.tournament)
    return f"To add games, {raised} or add contestants in {file}, and run the same command again."


def _with_file(config: PitConfig, argv: list[str]) -> tuple[PitConfig, str]:
    """The settings completed from the tournament's file, and the name of that file without its ending."""
    if config.tournament is None:
        return config, ""
    found = read_tournament(config.tournament)
    known = {name: found[name] for name in FILE_OPTIONS if name in found}
    # the file's settings as defaults: an option that differs was named, also where it repeats the usual default
    asked = parse(type(config), argv, replace(type(config)(), **known), "pit")
    for name, value in known.items():
        if getattr(asked, name) != value:
            raise InvalidSetting(f"{config.tournament} sets {name}: leave --{name} out, or remove it from the file")
    if config.game is None and "game" in found:
        registry.load_named(found["game"], str(config.tournament))  # a file may not name code to run
    asked = replace(
        asked,
        contestants=found["contestants"],
        game=config.game or found.get("game"),
        gauntlet=found.get("kind") == "gauntlet",
    )
    return asked, config.tournament.stem
