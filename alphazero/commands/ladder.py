"""Rates all generations of a run: `alphazero ladder runs/connect4-1`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from alphazero.commands.options import DEFAULT_GAME, Contestant, TournamentOptions, argument, positional
from alphazero.commands.shared import parse, spare_files
from alphazero.commands.tournament import play_and_report
from alphazero.players.contestants import load_game
from alphazero.tournaments.ladder import FOLDER, THREADS, Ladder


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


def main(argv: list[str]) -> None:
    config = parse(LadderConfig, argv, command="ladder")
    spare_files(config.overwrite, config.json)
    ladder = Ladder(config.run, config.contestants)
    game_name, loaded = load_game(config.game, tuple(ladder.contestants.values()), DEFAULT_GAME)
    tournament = ladder.tournament(game_name, config.games, config.simulations, config.seed, config.openings)
    folder = config.folder or config.run / FOLDER
    way_on = "Run the same command again to add the generations that have come since."
    play_and_report(folder, tournament, loaded, THREADS, config, way_on, ladder)
