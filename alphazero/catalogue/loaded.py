"""`LoadedGame`: one game with all that goes with it. A part is imported when it is first called."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from alphazero.catalogue.user_code import naming
from alphazero.errors import GameError, quote
from alphazero.game.game import Game
from alphazero.game.reading.gtp_words import GtpWords, default_words
from alphazero.game.spec import PARTS, AreBalanced, GameSpec, Oracle, Part, named_parts
from alphazero.nets.neural_net import NeuralNet

REPLACEABLE = {"make_net": "net", "value_targets": "value target"}
"""The parts that a run may replace, and words for them."""


@dataclass(frozen=True)
class LoadedGame:
    """One game with its parts, which GameSpec describes; the registry makes it."""

    game: Game
    presets: Callable[[], Mapping[str, Any]]
    """The settings of a run, a RunConfig, by preset name: `quick`, `standard`, `strong`."""
    make_net: Callable[[Game, Mapping[str, Any]], NeuralNet]
    """A fresh network."""
    make_benchmark: Callable[[Game], Callable[[Any], dict[str, float]]] | None = None
    load_again: Callable[[], LoadedGame] | None = None
    """Makes the same game in another process; None if that cannot be done."""
    contestants: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    nets: Mapping[str, Path] = field(default_factory=dict)
    """Checkpoints that are shipped with the framework by name, as `best`."""
    make_oracle: Callable[[Game], Oracle] | None = None
    make_balance: Callable[[Game], AreBalanced] | None = None
    value_targets: Callable[..., np.ndarray] | None = None
    gtp_words: Callable[[Game], GtpWords] = default_words
    own: Mapping[str, Any] = field(default_factory=dict)
    """The game's own ones of the parts in REPLACEABLE."""

    @property
    def name(self) -> str:
        return self.game.name

    @property
    def replaced(self) -> dict[str, Any]:
        """The parts that took the place of the game's own, as by `replace(loaded, make_net=...)`, by their names."""
        return {name: part for name in self.own if (part := getattr(self, name)) is not self.own[name]}


def load_parts(
    game: Game, spec: GameSpec, holder: ModuleType, nets: Mapping[str, Path],
    load_again: Callable[[], LoadedGame] | None = None,
) -> LoadedGame:  # fmt: skip
    """The game with the parts of the spec that the module `holder` holds."""

    def gtp_words(game: Game) -> GtpWords:
        words = default_words(game)
        return replace(words, name=spec.gtp_name or words.name, vertex_of=spec.gtp_vertex or words.vertex_of)

    parts: dict[str, Any] = {words: LaterPart(part, words, holder) for words, part in named_parts(spec).items()}
    single = {"gtp_words": gtp_words} | {name: parts[name] for name in PARTS if name in parts}
    single["presets"] = functools.partial(single["presets"], game)
    contestants = {name: parts[f"contestants[{name!r}]"] for name in spec.contestants}
    own = {name: single.get(name) for name in REPLACEABLE}
    return LoadedGame(game, load_again=load_again, contestants=contestants, nets=nets, own=own, **single)


@dataclass(frozen=True)
class LaterPart:
    """A part of the SPEC in the module `holder`, imported when it is first called; messages name it by `words`."""

    part: Part
    words: str
    holder: ModuleType

    def resolve(self) -> Callable[..., Any]:
        """The function or class; raises GameError that names the part and the file of its SPEC."""
        found: Any = self.part
        where = getattr(self.holder, "__file__", None) or self.holder.__name__  # a notebook has no file
        with naming(f'{self.words}="{self.part}" in the SPEC of {where}', GameError):
            if isinstance(self.part, str):
                module_name, _, attribute = self.part.partition(":")
                found = getattr(importlib.import_module(module_name, self.holder.__package__), attribute, None)
            if not callable(found):
                form = 'a part is one, or text such as ".net:make_net" for the place of one'
                raise GameError(f"there is no function or class {quote(self.part)}; {form}")
        return found

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return self.resolve()(*arguments, **settings)
