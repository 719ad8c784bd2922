"""Plays tables of a game for three or more players, and rates the contestants: `alphazero tables A B C D`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import tyro

from alphazero.commands.options import (
    Contestant,
    Device,
    GameName,
    Json,
    Overwrite,
    Threads,
    argument,
    check_options,
    load_game,
    positional,
)
from alphazero.commands.shared import parse, say, spare_files
from alphazero.errors import InvalidSetting, count_of
from alphazero.game import Game
from alphazero.game.kernels import kernels_of
from alphazero.machine import count_cores
from alphazero.matches.arena import get_ready
from alphazero.players.contestants import make_player
from alphazero.progress import Progress
from alphazero.storage.files import write_json
from alphazero.tournaments.tables import Tables, play_tables


@dataclass(frozen=True)
class TablesConfig:
    """Plays tables at which each contestant has one seat, in a game for three or more players, and rates all.

    Each group of contestants plays all its seatings with the same opening and the same dice. With as many contestants
    as seats there is one group. `alphazero pit --help` says what contestants can be.
    """

    contestants: Annotated[tuple[Contestant, ...], tyro.conf.Positional, positional("A B C ...")] = ()
    """The contestants, at least as many as the game has players."""
    game: GameName = None
    games: int = 120
    """Games in all; as many more as make the last group whole."""
    simulations: Annotated[int | None, argument("INT", "200 for nets; mcts needs a number")] = None
    """Simulations per ply, for contestants that search and do not set their own. With 0, nets play without a search."""
    seed: int = 0
    """Random seed. The same seed gives the same games."""
    threads: Threads = field(default_factory=count_cores)
    device: Device = "auto"
    json: Json = None
    overwrite: Overwrite = False

    def __post_init__(self) -> None:
        check_options(self, games=(1, 1_000_000))


def main(argv: list[str]) -> None:
    config = parse(TablesConfig, argv, command="tables")
    spare_files(config.overwrite, config.json)
    _, loaded = load_game(config.game, config.contestants)
    settings: dict[str, Any] = {"seed": config.seed, "threads": config.threads, "simulations": config.simulations}
    players = [make_player(one, loaded, device=config.device, **settings) for one in config.contestants]
    if any(player.one_at_a_time for player in players):
        raise InvalidSetting("tables have no seats for humans and programs: take pit, or alphazero serve")
    kernels, names = kernels_of(loaded.game), [contestant.text for contestant in config.contestants]
    for player in players:
        get_ready(kernels, player)
    result: Tables | None = None
    with Progress(f"tables of {loaded.game.name}") as progress:
        for result in play_tables(kernels, players, config.games, config.seed):
            done = len(result.owners)
            progress.show(min(1.0, done / config.games), count_of(done, "game"))
    assert result is not None
    say(describe(loaded.game, names, result))
    if config.json is not None:
        write_json(config.json, as_json(loaded.game, config.seed, names, result))


def describe(game: Game, names: list[str], result: Tables) -> str:
    """The report: the contestants by rating, with their shares, and what the seats are worth."""
    elo, errors, seats = result.rate(len(names))
    width = max(map(len, names))
    lines = [f"{game.name}: {count_of(len(names), 'contestant')} at tables of {game.num_players}, "]
    lines[0] += count_of(len(result.owners), "game")
    for i in sorted(range(len(names)), key=lambda i: -elo[i]):
        share, error = result.share(i)
        lines.append(f"{names[i]:<{width}}  rating {elo[i]:+5.0f} ± {errors[i]:.0f}  share {share:.1%} ± {error:.1%}")
    worth = ", ".join(f"{value:+.0f}" for value in seats)
    lines.append(f"Equal contestants share {1 / game.num_players:.1%} each. The seats are worth {worth} points.")
    lines.append("Each group plays all its seatings with the same opening and the same dice; ratings have mean 0.")
    return "\n".join(lines)


def as_json(game: Game, seed: int, names: list[str], result: Tables) -> dict[str, Any]:
    """The result for `--json`."""
    elo, errors, seats = result.rate(len(names))
    rows = [
        {"name": name, "elo": elo[i], "elo_error": errors[i], "share": share, "share_error": error}
        for i, name in enumerate(names)
        for share, error in [result.share(i)]
    ]
    return {
        "game": game.name, "seed": seed, "games": len(result.owners), "seats": game.num_players,
        "contestants": rows, "seat_elo": seats.tolist(),
    }  # fmt: skip
