"""Plays tables of a game for three or more players, and rates the contestants: `alphazero tables A B C D`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from alphazero.commands.options import Contestant, PlayOptions, argument, load_game, positional
from alphazero.commands.shared import parse, say, spare_files
from alphazero.errors import InvalidSetting, count_of
from alphazero.game import Game
from alphazero.game.kernels import kernels_of
from alphazero.matches.arena import get_ready
from alphazero.matches.intervals import finite
from alphazero.players.contestants import make_player
from alphazero.progress import Progress
from alphazero.storage.files import write_json
from alphazero.tournaments.tables import Tables, play_tables


@dataclass(frozen=True)
class TablesConfig(PlayOptions):
    """Plays tables at which each contestant has one seat, in a game for three or more players, and rates all.

    Each group of contestants plays all its seatings with the same opening and the same dice. With as many contestants
    as seats there is one group. `alphazero pit --help` says what contestants can be.
    """

    contestants: Annotated[tuple[Contestant, ...], tyro.conf.Positional, positional("A B C ...")] = ()
    """The contestants, at least as many as the game has players."""
    games: Annotated[int | None, argument("INT", "120")] = None
    """Games in all; as many more as make the last group whole."""


def main(argv: list[str]) -> None:
    config = parse(TablesConfig, argv, command="tables")
    spare_files(config.overwrite, config.json)
    _, loaded = load_game(config.game, config.contestants)
    settings: dict[str, Any] = {"seed": config.seed, "threads": config.threads, "simulations": config.simulations}
    players = [make_player(one, loaded, device=config.device, **settings) for one in config.contestants]
    if any(player.one_at_a_time for player in players):
        raise InvalidSetting("tables have no seats for humans and programs: take pit, or alphazero serve")
    num_games, kernels = config.games or 120, kernels_of(loaded.game)
    names = [contestant.text for contestant in config.contestants]
    for player in players:
        get_ready(kernels, player)
    result: Tables | None = None
    with Progress(f"tables of {loaded.game.name}") as progress:
        for result in play_tables(kernels, players, num_games, config.seed):
            done = len(result.owners)
            progress.show(min(1.0, done / num_games), count_of(done, "game"))
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
        interval = f" ± {error:.1%}" if math.isfinite(error) else ""  # one group has none
        text = f"{share:.1%}{interval}" if math.isfinite(share) else "- (no game: give it more games)"
        lines.append(f"{names[i]:<{width}}  rating {elo[i]:+5.0f} ± {errors[i]:.0f}  share {text}")
    worth = ", ".join(f"{value:+.0f}" for value in seats)
    lines.append(f"Equal contestants share {1 / game.num_players:.1%} each. The seats are worth {worth} points.")
    lines.append("Each group plays all its seatings with the same opening and the same dice; ratings have mean 0.")
    return "\n".join(lines)


def as_json(game: Game, seed: int, names: list[str], result: Tables) -> dict[str, Any]:
    """The result for `--json`."""
    elo, errors, seats = result.rate(len(names))
    rows = []
    for i, name in enumerate(names):
        share, error = finite(result.share(i))
        rows.append({"name": name, "elo": elo[i], "elo_error": errors[i], "share": share, "share_error": error})
    return {
        "game": game.name, "seed": seed, "games": len(result.owners), "seats": game.num_players,
        "contestants": rows, "seat_elo": seats.tolist(),
    }  # fmt: skip
