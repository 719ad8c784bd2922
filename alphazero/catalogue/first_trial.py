"""A trial of rules that nobody has checked.

All that begins with a game gets it by `registry.tried`, or calls `try_rules`: a net trained by rules that break a law
is worth nothing, and its training may never end.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from alphazero.catalogue.adapters.openspiel import OpenSpielGame
from alphazero.catalogue.shipped import FOLDER
from alphazero.errors import LawBroken
from alphazero.game.game import Game
from alphazero.game.validator import Check
from alphazero.invocation import command_line

TRIAL_GAMES = 20
"""Random games of a trial, at most."""
TRIAL_SECONDS = 0.3
"""No longer for the games of a trial, nor for each kind of checks after them."""
TRIAL_PLIES = 3
"""Plies of the first game that are tried however slow the rules are: a third player is known after two."""
_tried_rules: set[tuple[str, str]] = set()
"""The names and fingerprints of the games that have kept all laws."""


def try_rules(game: Game, given: str = "") -> None:
    """Raises LawBroken if random games of about a second show that a law of `Game` is broken.

    It takes plain Python alone, compiles nothing, and leaves notation, pictures and warnings to `validate`. Games that
    come with the framework and OpenSpiel's cost nothing, and others are tried once. `given`: the name that the user
    gave the game, for the sentence.
    """
    file = getattr(sys.modules.get(type(game).__module__), "__file__", None)
    if isinstance(game, OpenSpielGame) or (file is not None and Path(file).is_relative_to(FOLDER)):
        return
    try:
        _try(game)
    except LawBroken as error:
        check = command_line("check", given) if given else "az.check_game(game)"
        raise LawBroken(f"{error}; to see where, and for all laws: {check}", error.drawing) from error


def _try(game: Game) -> None:
    check, lines, games = Check(game, TRIAL_SECONDS), list[list[int]](), 0
    check.declaration()
    check.permutations()
    if (game.name, game._fingerprint) in _tried_rules:
        return
    with check.watched():
        while games == 0 or (len(lines) < TRIAL_GAMES and time.monotonic() < check.deadline):
            games += 1
            for *_, facts in check.random_game(check.rng):
                if facts.is_terminal:
                    lines.append(check.line)
                elif time.monotonic() > check.deadline and (games > 1 or len(check.line) >= TRIAL_PLIES):
                    break
        check.line = []
        check.asked_again()
        if lines:
            check.both_move()
            check.mirrored(lines[:1])
    _tried_rules.add((game.name, game._fingerprint))
