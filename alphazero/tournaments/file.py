"""A tournament's settings as a file of TOML, such as benchmarks/studies/simulations.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from alphazero.errors import InvalidSetting, StorageError, quote
from alphazero.matches import openings
from alphazero.players.contestant_text import parse_all
from alphazero.storage.files import read_bytes
from alphazero.storage.schema import Text, Truth, check
from alphazero.tournaments.tournament import KINDS

MAX_BYTES = 1 << 16
MOST_DOTS = 100
"""Dots outside of texts and remarks. The time and memory for a key grow with the square of its dots."""
QUOTED = re.compile(r""""(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*""")
MOST_CONTESTANTS = 1000


def _one_of(names: Sequence[str]) -> Meta:
    """The annotation of a text that is one of these names."""
    return Meta(pattern=rf"\A(?:{'|'.join(names)})\Z", description=f"one of {', '.join(names)}")


Whole = Annotated[int, Meta(description="a whole number")]
"""The command line says in which range."""


class TournamentFile(Struct, forbid_unknown_fields=True):
    """The file's settings; those left out are UNSET."""

    contestants: Annotated[
        tuple[Text, ...],
        Meta(
            max_length=MOST_CONTESTANTS,
            description=f'a list of {MOST_CONTESTANTS:,} words at most, as in ["random", "greedy", "minimax:2"]',
        ),
    ]
    game: Text | UnsetType = UNSET
    kind: Annotated[str, _one_of(tuple(KINDS))] | UnsetType = UNSET
    games: Whole | UnsetType = UNSET
    simulations: Whole | UnsetType = UNSET
    seed: Whole | UnsetType = UNSET
    openings: Annotated[str, _one_of(openings.KINDS)] | UnsetType = UNSET
    adaptive: Truth | UnsetType = UNSET
    anchor: Text | UnsetType = UNSET


def read_tournament(path: Path) -> dict[str, Any]:
    """The settings in the file, of the right types, those left out missing; raises InputError."""
    try:
        text = read_bytes(path, MAX_BYTES).decode("utf-8-sig")  # editors of Windows begin a file with a mark
        if QUOTED.sub("", text).count(".") > MOST_DOTS:
            raise ValueError("its keys are nested, and no setting is")
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path} is not valid TOML: {error!s:.200}") from error
    named = parse_all(check(TournamentFile, found, str(path), InvalidSetting).contestants)
    for contestant in named:
        if contestant.runs_code:  # who writes a file is not always who opens it
            raise InvalidSetting(
                f"{path}: {quote(contestant.text)} runs a program or Python code, which a file may not do: give all "
                "contestants on the command line"
            )
    return found | {"contestants": tuple(named)}
