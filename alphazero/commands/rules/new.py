"""Writes a small working game and its test, `alphazero new my_game`; checks its rules, `alphazero check my_game.py`."""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from alphazero.catalogue import registry
from alphazero.commands.rules.samples import SAMPLES
from alphazero.commands.shared import parse
from alphazero.errors import InvalidSetting, LawBroken, StorageError, count_of, quote
from alphazero.game import Game
from alphazero.game.laws.laws import MOST_PLAYERS
from alphazero.game.validator import Findings, validate
from alphazero.invocation import command_line, quoted
from alphazero.settings import check_range, check_ranges
from alphazero.storage.files import atomic_write


@dataclass(frozen=True)
class NewGameConfig:
    """Writes NAME.py, a small working game to be changed into your own, and test_NAME.py, its test."""

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
    """The name of the game: small letters, digits and underscores, as in my_game."""
    folder: Path = Path()
    """The folder to write both files into."""
    dice: bool = False
    """A game for two with a die."""
    solo: bool = False
    """A game for one with a die, and points along the way."""
    players: int = 2
    """More than 2, up to 8: a game for so many."""

    def __post_init__(self) -> None:
        check_range("--players", self.players, 2, MOST_PLAYERS)
        if self.dice + self.solo + (self.players > 2) > 1:
            raise InvalidSetting("--dice, --solo and --players write different games: give one of them")
        is_word = re.fullmatch(r"[a-z][a-z0-9_]*", self.name) and not keyword.iskeyword(self.name)
        found = importlib.util.find_spec(self.name) if is_word else None
        mine = (self.folder / f"{self.name}.py").resolve()  # `main` says what to do about a file that is there already
        is_module = found and (found.origin is None or Path(found.origin).resolve() != mine)
        if not is_word or self.name in registry.NAMES or is_module or keyword.iskeyword(self.class_name):
            raise InvalidSetting(
                f"{quote(self.name)} cannot name a game: use small letters, digits and underscores, as in my_game, "
                "and no name of a shipped game, a Python module or a keyword"
            )
        if not os.path.isdir(self.folder):
            raise InvalidSetting(f"--folder takes a folder that exists, not {quote(str(self.folder), 200)}")

    @property
    def class_name(self) -> str:
        """The name of the game's class, as MyGame for my_game."""
        return "".join(word.capitalize() for word in self.name.split("_"))


def main(argv: list[str]) -> None:
    config = parse(NewGameConfig, argv, command="new")
    kind = "solo" if config.solo else "dice" if config.dice else "players" if config.players > 2 else "board"
    game, test = config.folder / f"{config.name}.py", config.folder / f"test_{config.name}.py"
    for path in (game, test):
        if os.path.lexists(path):
            raise StorageError(f"{path} is there already, and nothing was written; choose another name or --folder")
    words = {
        "COUNT": str(config.players),
        "CLASS": config.class_name,
        "NAME": config.name,
        "TITLE": config.name.replace("_", " ").capitalize(),
    }
    for path, text in zip((game, test), SAMPLES[kind], strict=True):
        atomic_write(path, re.sub("CLASS|COUNT|NAME|TITLE", lambda found: words[found[0]], text).encode())
    print(
        f"{game} and {test} are written. Change the rules, then check that the game keeps its laws:\n"
        f"  {command_line('check', game)}\nRun its test (pip install pytest pytest-xdist):\n"
        f"  {quoted('python', '-m', 'pytest', test)}\nTrain a network for three minutes:\n"
        f"  {command_line('train', '--game', game, '--minutes', 3)}"
    )


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


def check(argv: list[str]) -> None:
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
    named = OUTCOMES
    if game.value_shape:
        named = {f"player {number}": number for number in range(1, game.num_players + 1)} | {"shared": 0}
    outcomes = {words: findings.outcomes[outcome] for words, outcome in named.items()}
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
    if points := findings.points:
        mean, lowest, highest = np.mean(points), min(points), max(points)
        lines |= {"outcomes": f"{mean:,.5g} points, {lowest:,g} to {highest:,g}", "turns": "a game for one"}
        del lines["last mover"]
    return "\n".join(f"{name:<14}{text}" for name, text in lines.items())
