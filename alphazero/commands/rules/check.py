"""Plays random games to check that the rules of a game are sound: `alphazero check my_game.py`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import tyro

from alphazero.catalogue import registry
from alphazero.commands.shared import parse
from alphazero.errors import LawBroken, count_of
from alphazero.game import Game
from alphazero.game.validator import Findings, validate
from alphazero.invocation import command_line
from alphazero.settings import check_ranges

OUTCOMES = {"first player": 1, "draw": 0, "second player": -1}


@dataclass(frozen=True)
class CheckConfig:
    """Plays random games to check that the rules of a game are sound, and describes the game."""

    game: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="GAME")]
    """The game: a name, a Python file or a module."""
    games: int = 100
    """Random games to play. The check ends after half a minute if they take longer."""
    seed: int = 0
    """Seed of the random games."""

    def __post_init__(self) -> None:
        check_ranges(self, games=(1, 1_000_000), seed=(0, (1 << 63) - 1))


def main(argv: list[str]) -> None:
    config = parse(CheckConfig, argv, command="check")
    game = registry.load(config.game).game
    try:
        findings = validate(game, config.games, config.seed)
    except LawBroken as error:
        if error.drawing:
            print(error.drawing, file=sys.stderr)
        raise
    warnings = "".join(f"\n\nwarning: {warning}" for warning in findings.warnings)
    print(f"{describe(game, findings)}\n\nthe first game: {findings.example}{warnings}")
    but = ", but mind the warning above" if warnings else ""
    command = command_line("train", "--game", config.game, "--minutes", 3)
    print(f"\n{game.name} keeps all laws{but}. Next:\n  {command}")


def describe(game: Game, findings: Findings) -> str:
    """A table of facts that the games showed."""
    total, lengths, branching = findings.num_games, np.array(findings.lengths), np.array(findings.branching)
    won, ended = sum(findings.last_mover_won), len(findings.last_mover_won)
    last = {"won": won, "lost": ended - won, "drew": total - ended}
    outcomes = {words: findings.outcomes[outcome] for words, outcome in OUTCOMES.items()}
    speed = f"{findings.plies_per_second:,.0f} plies a second as plain Python"
    if findings.compiled_per_second is not None:
        speed = f"{findings.compiled_per_second:,.0f} positions a second compiled, on one core; {speed}"
    lines = {
        "random games": f"{total}, {count_of(findings.num_positions, 'position')} checked",
        "length": f"{lengths.mean():.1f} plies, {lengths.min()} to {lengths.max()} (max_plies {game.max_plies})",
        "branching": f"{branching.mean():.1f} legal actions, up to {branching.max()} of {game.num_actions}",
        "outcomes": ", ".join(f"{words} {count / total:.0%}" for words, count in outcomes.items()),
        "last mover": ", ".join(f"{words} {count / total:.0%}" for words, count in last.items()) + " of the games",
        "turns": "`to_play` says who moves" if game.rules.to_play else "players alternate",
        "symmetries": f"{len(game.symmetries[1])}"
        + ("" if game.rules.transform or not game.compiled else ", no `transform`"),
        "network": "observations of {} planes, {} x {}".format(*game.observation_shape),
        "speed": speed,
    }
    return "\n".join(f"{name:<14}{text}" for name, text in lines.items())
