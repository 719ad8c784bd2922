"""Exact results: scores a contestant by them, shows those of a position; and what the games' own commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import tyro

from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.commands.options import Device, GameName, ScoreOptions, argument, load_game
from alphazero.commands.shared import parse, spare_files
from alphazero.errors import InputError, count_of
from alphazero.matches.judge import Judgement, Labelled, describe, open_players, simulations_of, title_of
from alphazero.players.player import Player
from alphazero.progress import Progress
from alphazero.storage.files import write_json


@dataclass(frozen=True)
class BenchmarkConfig(ScoreOptions):
    """Scores a contestant on positions whose exact result is known, in games that have some.

    For more figures, use the games' own commands: python -m games.connect4.benchmark or games.othello.benchmark.
    """

    game: GameName = None
    device: Device = "auto"


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


@dataclass(frozen=True)
class SolveConfig:
    """Shows the exact result of every move in a position, in games that have a solver.

    alphazero solve 4453 --game connect4
    alphazero solve b3b4a5c2b1e2c5b5e5a3b2e4e3c6a6e6f1a4d5e1 --game othello6
    alphazero solve "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X" --game othello
    """

    moves: Annotated[tuple[str, ...], tyro.conf.Positional, argument("[MOVES ...]", "none")] = ()
    """The moves that lead to the position, as in 4453 or f5 d6 c4, or its board; nothing = the start position."""
    game: Annotated[str, tyro.conf.arg(metavar="NAME")] = "connect4"
    """The game: a name, a Python file or a module."""


def solve(argv: list[str]) -> None:
    # a board may begin with the signs of empty squares, which no option does
    argv = [f" {word}" if re.match(r"-[-._XxOo*]{5}", word) else word for word in argv]
    config = parse(SolveConfig, argv, command="solve")
    loaded = registry.load(config.game)
    if loaded.make_oracle is None:
        solved = [name for name in registry.NAMES if registry.load(name).make_oracle is not None]
        raise InputError(f"{loaded.game.name} has no solver; the games that have one are {', '.join(solved)}")
    position = loaded.game.position(" ".join(config.moves))
    where = " on a board" if position.is_set_up else f" after {count_of(position.ply, 'ply')}"
    if position.terminal:
        winner = {1: "the first player has won", -1: "the second player has won", 0: "a draw"}[position.outcome]
        print(f"{position}\n\nThe game is over{'' if position.is_set_up else where}: {winner}.")
        return
    if position.chances:
        raise InputError("a die is due in this position, so nobody is to move; add what it shows")
    oracle = loaded.make_oracle(loaded.game)
    found = oracle.results(position)
    if not found:
        raise InputError(f"{oracle.too_far(position)}; add moves")
    mover = "first" if position.to_play == 0 else "second"
    print(f"{position}\n\n{mover} player to move{where}")
    for action, result in found.items():
        print(f"  {position.format(action):<8}{oracle.words(result)}")


# --- for the games' own commands ---


@dataclass(frozen=True)
class JudgeConfig(ScoreOptions):
    """Scores a contestant's moves and values by the exact truth of a game."""

    positions: Path | None = None
    """Score on the positions of this file instead: moves or a board in each line, and perhaps the exact score."""


def report(
    config: JudgeConfig,
    loaded: LoadedGame,
    labelled: Labelled,
    judge: Callable[[Player, Labelled, Callable[[float], None]], Judgement],
    phases: Mapping[str, tuple[int, int]] = MappingProxyType({}),
    details: Callable[[Judgement], str] = lambda judgement: "",
) -> None:
    """Judges the contestant with each number of simulations; prints and writes all that the options ask for."""
    spare_files(config.overwrite, config.json)
    name, judged, entries = config.contestant.text, [], []
    for player in open_players(config.contestant, loaded, config.simulations, seed=config.seed, threads=config.threads):
        with Progress(player.name) as progress:
            show = progress.show
            judgement = judge(player, labelled, lambda done, show=show: show(done, f"{done:.0%}"))  # type: ignore[misc]
        judged.append(f"\n{describe(player, judgement, phases)}{details(judgement)}")
        parts = {"by_phase": judgement.by_phase(phases)} if phases else {}
        entries.append({"contestant": name, "simulations": simulations_of(player), **judgement.figures(), **parts})
    if config.json is not None:
        write_json(config.json, entries)
    print(f"{name} on {config.positions or 'the frozen set'}: {len(labelled.states)} positions", *judged, sep="\n")
