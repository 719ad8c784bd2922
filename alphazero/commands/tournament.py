"""Plays a tournament: `alphazero tournament A B C`; or one of all generations of a run: `alphazero ladder RUN`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro

from alphazero import interruption
from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.commands.options import Contestant, TournamentConfig, TournamentOptions, argument, load_game, positional
from alphazero.commands.shared import parse, say, spare_files
from alphazero.errors import InvalidSetting, quote
from alphazero.game.record import GameRecord
from alphazero.invocation import command_line, quoted
from alphazero.matches.seating import whole_groups
from alphazero.storage.files import atomic_write, to_json
from alphazero.tournaments.folder import GAMES, Tournament
from alphazero.tournaments.ladder import FOLDER as LADDER
from alphazero.tournaments.ladder import THREADS, Ladder
from alphazero.tournaments.standings import REPORT, Standings, as_text, write_report
from alphazero.tournaments.tournament import FOLDER, default_folder, make_tournament, play_tournament, read_tournament


def main(argv: list[str]) -> None:
    config, file = parse(TournamentConfig, argv, command="tournament"), None
    if len(config.contestants) == 1 and config.contestants[0].text.endswith(".toml"):
        file = Path(config.contestants[0].text)
        config = _with_file(config, file, argv)
    spare_files(config.overwrite, config.json)
    game_name, loaded = load_game(config.game, config.contestants)
    tournament = make_tournament(
        game_name, "gauntlet" if config.gauntlet else "round-robin", config.contestants, config.games or 100,
        config.simulations, config.seed, config.adaptive, config.openings,
    )  # fmt: skip
    folder = config.folder or (FOLDER / file.stem if file else default_folder(tournament))
    way_on = f"Run it with more --games, or with more contestants and --folder {quoted(folder)}, to add games."
    if file is not None:
        way_on = f"To add games, raise games or add contestants in {quoted(file)}, and run the same command again."
    play_and_report(folder, tournament, loaded, config.threads, config, way_on)


def _with_file(config: TournamentConfig, path: Path, argv: list[str]) -> TournamentConfig:
    """The settings in the file, and those on the command line, which go before."""
    found = read_tournament(path)
    if config.game is None and "game" in found:
        registry.load_named(found["game"], str(path))  # a file may not name code to run
    contestants, kind = found.pop("contestants"), found.pop("kind", "round-robin")
    defaults = TournamentConfig(gauntlet=kind == "gauntlet", **found)
    return replace(parse(TournamentConfig, argv, defaults, "tournament"), contestants=contestants)


@dataclass(frozen=True, kw_only=True)
class LadderConfig(TournamentOptions):
    """Rates all generations of a run, on one core, and shows their strength against the hours of training.

    They play each other; some also play random, greedy, mcts:100, mcts:400 and the contestants given.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run folder, as in runs/connect4-1; without --folder it keeps the games."""
    contestants: Annotated[tuple[Contestant, ...], tyro.conf.Positional, positional("CONTESTANT ...")] = ()
    """Further contestants, as for the command pit."""
    games: Annotated[int | None, argument("INT", "20")] = None
    """Games per pair of contestants; each contestant begins half of them."""
    simulations: Annotated[int | None, argument("INT", "16")] = None
    """Simulations per ply, for contestants that search and do not set their own. With 0, nets play without a search."""


def ladder(argv: list[str]) -> None:
    config = parse(LadderConfig, argv, command="ladder")
    spare_files(config.overwrite, config.json)
    rungs = Ladder(config.run, config.contestants)
    game_name, loaded = load_game(config.game, tuple(rungs.contestants.values()))
    tournament = rungs.tournament(game_name, config.games, config.simulations, config.seed, config.openings)
    folder = config.folder or config.run / LADDER
    way_on = "Run the same command again to add the generations that have come since."
    play_and_report(folder, tournament, loaded, THREADS, config, way_on, rungs)


def play_and_report(
    folder: Path, tournament: Tournament, loaded: LoadedGame, threads: int, config: TournamentOptions, way_on: str,
    ladder: Ladder | None = None,
) -> None:  # fmt: skip
    """Plays the games that are missing, writes the reports, prints the table and `way_on`, what to do next."""
    tournament = replace(tournament, games=whole_groups(loaded.game, tournament.games))
    if config.anchor is not None and config.anchor not in tournament.contestants:
        raise InvalidSetting(f"--anchor names {quote(config.anchor)}, who takes no part: name one of the contestants")

    def rated(records: list[GameRecord]) -> Standings:
        return Standings(tournament, records, loaded.game, config.anchor)

    interruption.State.sentence = lambda: (
        f"\nstopped; the games so far are in {folder}, and the same command goes on from there"
    )
    records = play_tournament(
        folder, tournament, loaded, threads, config.device, config.find_cluster(),
        stopped=lambda records: say(f"Not finished; the table of the games so far:\n{as_text(rated(records))}"),
    )  # fmt: skip
    standings = rated(records)
    result = write_report(
        folder, standings, *((ladder.fields(), {"strength over time": ladder.draw}) if ladder else ())
    )
    say(as_text(standings, ladder.shown(standings) if ladder else None))
    chosen = [] if tournament.game in registry.NAMES else ["--game", tournament.game]
    print(
        f"\nNext: open {quoted(folder / REPORT)} in a browser, or step through the first game: "
        f"{command_line('replay', folder / GAMES, 0, *chosen)}\n{way_on}"
    )
    if config.json is not None:
        atomic_write(config.json, to_json(result))  # of any size, as `results.json`
