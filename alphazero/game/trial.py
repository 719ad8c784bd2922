"""A short trial of rules that nobody has checked, before a training, a match or a page begins with them.

Rules that break a law would be trained all the same, for an hour or for ever, and the result would mean nothing.
"""

from __future__ import annotations

import sys
import time
import weakref
from pathlib import Path

import numpy as np

from alphazero.errors import LawBroken
from alphazero.game import registry
from alphazero.game.adapters.openspiel import OpenSpielGame
from alphazero.game.game import Game
from alphazero.game.python_game import PythonGame
from alphazero.game.spec import LoadedGame
from alphazero.game.validator import Check, Findings
from alphazero.invocation import command_line

GAMES = 20
"""Random games of a trial, at most."""
SECONDS = 0.3
"""No longer for the games, nor for each kind of checks after them."""

_rules: set[tuple[str, str]] = set()
"""The names and fingerprints of the games that have kept all laws."""
_objects: weakref.WeakSet[PythonGame[object]] = weakref.WeakSet()
"""Those whose rules have no fingerprint."""


def tried(game: str | Path | LoadedGame | Game | type) -> LoadedGame:
    """`registry.of(game)`, for all that begins with a game; raises LawBroken as `try_rules` does."""
    loaded = registry.of(game)
    try_rules(loaded.game, str(game) if isinstance(game, str | Path) else "")
    return loaded


def try_rules(game: Game, given: str = "") -> None:
    """Raises LawBroken if random games of about a second show that a law of `Game` is broken.

    It takes plain Python alone, compiles nothing, and leaves notation, pictures and warnings to `validate`. Games that
    come with the framework and OpenSpiel's cost nothing, and others are tried once. `given`: the name that the user
    gave the game, for the sentence.
    """
    if _is_known(game):
        return
    try:
        _try(game)
    except LawBroken as error:
        check = command_line("check", given) if given else "az.check_game(game)"
        raise LawBroken(f"{error}; to see where, and for all laws: {check}", error.drawing) from error


def _is_known(game: Game) -> bool:
    """The game comes with the framework, or OpenSpiel has checked it."""
    file = getattr(sys.modules.get(type(game).__module__), "__file__", None)
    return isinstance(game, OpenSpielGame) or (file is not None and Path(file).is_relative_to(registry.FOLDER))


def _try(game: Game) -> None:
    check, rng = Check(game, SECONDS), np.random.default_rng(0)
    check.declaration()
    check.permutations()
    if game in _objects if isinstance(game, PythonGame) else (game.name, game._fingerprint) in _rules:
        return
    lines: list[list[int]] = []
    with check.watched():
        while len(lines) < GAMES and time.monotonic() < check.deadline:
            for *_, mask in check.random_game(rng):
                if mask is None:
                    lines.append(check.line)
                elif time.monotonic() > check.deadline:
                    break
        check.line = []
        check.asked_again(rng)
        if lines:
            check.both_move()
            check.mirrored(lines[:1], Findings(), rng)
    if isinstance(game, PythonGame):
        _objects.add(game)
    else:
        _rules.add((game.name, game._fingerprint))
