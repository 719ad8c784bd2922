"""Scores a contestant on the game's positions whose exact result is known.

alphazero benchmark best --game connect4 --simulations 0 100
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from alphazero.catalogue import registry
from alphazero.commands.shared import Contestant, Overwrite, Threads, argument, parse, spare_files
from alphazero.errors import InputError
from alphazero.machine import count_cores
from alphazero.matches.judge import open_players, title_of
from alphazero.nets.devices import check_device
from alphazero.players.contestants import load_game
from alphazero.settings import check_ranges
from alphazero.storage.files import check_output_file, write_json


@dataclass(frozen=True)
class BenchmarkConfig:
    """Scores a contestant on positions whose exact result is known, in games that have some.

    For more figures, use the games' own commands: python -m games.connect4.benchmark or games.othello.benchmark.
    """

    contestant: Annotated[Contestant, tyro.conf.Positional, tyro.conf.arg(metavar="CONTESTANT")]
    """The player, as for the command pit: best, runs/connect4-1, mcts:400, minimax:4 and so on."""
    game: Annotated[str | None, argument("NAME", "that of a run or checkpoint; all others need one")] = None
    """The game: a name, a Python file or a module."""
    simulations: tuple[int, ...] = (0,)
    """Simulations per position, one or several numbers. 0: the policy of a net without a search."""
    device: str = "auto"
    """The device that nets run on: auto (a GPU if there is one), cpu or cuda."""
    json: Annotated[Path | None, argument("FILE", "none")] = None
    """Also write the figures into this file, as JSON."""
    overwrite: Overwrite = False
    seed: int = 0
    """Random seed; it decides between equally good moves."""
    threads: Threads = field(default_factory=count_cores)
    """Processor cores to use."""

    def __post_init__(self) -> None:
        check_device(self.device)
        check_ranges(self, threads=(1, 4096), seed=(0, (1 << 63) - 1), simulations=(0, 1_000_000))
        if self.json is not None:
            check_output_file("--json", self.json)


def main(argv: list[str]) -> None:
    config = parse(BenchmarkConfig, argv, command="benchmark")
    spare_files(config.overwrite, config.json)
    _, loaded = load_game(config.game, [config.contestant])
    if loaded.make_benchmark is None:
        scored = [name for name in registry.NAMES if registry.load(name).make_benchmark is not None]
        raise InputError(
            f"{loaded.game.name} has no benchmark; the games that have one are {', '.join(scored)}; "
            "in others, matches tell how strong a contestant is"
        )
    benchmark = loaded.make_benchmark(loaded.game)
    results = {}
    players = open_players(
        config.contestant, loaded, config.simulations, seed=config.seed, threads=config.threads, device=config.device
    )
    for player in players:
        title = title_of(player)
        results[title] = benchmark(player)
        print(", ".join(dict.fromkeys((config.contestant.text, title))))
        for name, figure in results[title].items():
            print(f"  {name.replace('_', ' '):<26} {figure:.4f}")
    if config.json is not None:
        write_json(config.json, {"contestant": config.contestant.text, "game": loaded.game.name, "figures": results})
