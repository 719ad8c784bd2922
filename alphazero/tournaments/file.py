"""A tournament's settings as a file of TOML, for `--tournament`.

contestants = ["runs/c4", "runs/c4:10", "minimax:4", "random"]
game = "connect4"
kind = "gauntlet"       # or "round-robin", which is the default
games = 100             # of each pair
simulations = 200
seed = 0
openings = "balanced"   # or "random", which is the default, or "none"
adaptive = true
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alphazero.errors import InvalidSetting, StorageError, UnknownName
from alphazero.matches import openings
from alphazero.storage.files import read_bytes
from alphazero.tournaments.tournament import KINDS

MAX_BYTES = 1 << 20
TYPES: Mapping[str, tuple[type, str]] = {
    "contestants": (list, "a list of words"),
    "game": (str, "a word"),
    "kind": (str, f"one of {', '.join(KINDS)}"),
    "games": (int, "a whole number"),
    "simulations": (int, "a whole number"),
    "seed": (int, "a whole number"),
    "openings": (str, f"one of {', '.join(openings.KINDS)}"),
    "adaptive": (bool, "true or false"),
}
CHOICES = {"kind": tuple(KINDS), "openings": openings.KINDS}
RUN_CODE = "python", "gtp"
"""Contestants that run a program; who writes a file is not always who opens it."""


def read_tournament(path: Path) -> dict[str, Any]:
    """The settings in the file, of the right types, those left out missing; raises InputError."""
    try:
        found = tomllib.loads(read_bytes(path, MAX_BYTES).decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StorageError(f"{path} is not valid TOML: {error}") from error
    for name, value in found.items():
        if name not in TYPES:
            raise UnknownName("setting", name, TYPES, f"in {path}")
        kind, what = TYPES[name]
        fits = type(value) is kind
        if name in CHOICES:
            fits = value in CHOICES[name]
        if name == "contestants":
            fits = fits and all(isinstance(word, str) for word in value)
        if not fits:
            raise InvalidSetting(f"{path}: {name} must be {what}, not {value!r:.80}")
    for word in found.get("contestants", ()):
        if word.partition(":")[0] in RUN_CODE:
            raise InvalidSetting(
                f"{path}: {word!r:.80} would run what the file says: name it on the command line instead"
            )
    if "contestants" not in found:
        raise InvalidSetting(f'{path} names no contestants; write contestants = ["random", "greedy", "minimax:2"]')
    return found
