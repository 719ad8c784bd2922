"""A game with all that goes with it: `GameSpec` declares the parts, `LoadedGame` holds them.

A game's folder declares them in its `__init__.py`, and a part is imported when it is first called:

    SPEC = GameSpec(games={"connect4": ".game:Connect4"}, presets=".preset:presets", make_net=".net:make_net")
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alphazero.game.game import Game, Position
from alphazero.game.gtp_words import GtpWords, default_words

if TYPE_CHECKING:
    from alphazero.nets.neural_net import NeuralNet
    from alphazero.players.player import Player
    from alphazero.training.config import RunConfig

Truth = Callable[[Position], Mapping[int, str]]
"""The exact result of every legal action in words ("wins in 5"), the best first; empty if that takes too long."""

AreBalanced = Callable[[np.ndarray], np.ndarray]
"""`bool[n]` of `states uint64[n, K]`, none of them terminal: the fair openings, since neither player wins there if both
are perfect. In a game without draws, the positions that are as near to it as the game sees fit."""

Part = str | Callable[..., Any]
"""A function, or where to import it from: `.net:make_net` beside the SPEC, or `my_package.net:make_net`."""

PARTS = ("presets", "make_net", "make_benchmark", "make_truth", "make_balance")


@dataclass(frozen=True)
class GameSpec:
    """The parts of one game, or of a few that share them. `games` alone is required."""

    games: Mapping[str, Part]
    """The class of each game, by the name on the command line."""
    presets: Part = "alphazero.training.presets:presets"
    """`(game) -> {name: RunConfig}`: the settings of a run as `quick`, `standard`, `strong`."""
    make_net: Part = "alphazero.nets.resnet:make_net"
    """`(game, settings) -> NeuralNet`: a fresh network from the settings under `net` of a preset or a card."""
    make_benchmark: Part | None = None
    """`(game) -> (player) -> {name: figure}`: scores a player on positions of known worth."""
    contestants: Mapping[str, Part] = field(default_factory=dict)
    """The game's own players: name -> `(kernels, argument, settings, *, seed, threads) -> Player`."""
    make_truth: Part | None = None
    """`(game) -> Truth`: exact results for people, in games that have a solver."""
    make_balance: Part | None = None
    """`(game) -> AreBalanced`: balanced openings, in games that know exact values of early positions at once."""
    gtp_name: str = ""
    """The game's name in the Go Text Protocol; empty = its own name."""
    gtp_vertex: Callable[[str], str] | None = None
    """From an action in the game's notation to its GTP vertex; None = the same word."""


@dataclass(frozen=True)
class LoadedGame:
    """One game, its presets and its network. The registry makes it; each part is imported when it is called."""

    game: Game
    presets: Callable[[], Mapping[str, RunConfig]]
    """The settings of a run by preset name: `quick`, `standard`, `strong`."""
    make_net: Callable[[Game, Mapping[str, Any]], NeuralNet]
    """A fresh network from the settings that a preset and a checkpoint's card hold under `net`."""
    make_benchmark: Callable[[Game], Callable[[Player], dict[str, float]]] | None = None
    """Scores a player on the game's own truth. The first figure is the one that counts, and higher is better; in a run,
    the network's figures without a search join every line of `metrics.jsonl`."""
    load_again: Callable[[], LoadedGame] | None = None
    """Makes the same game in another process; None if that cannot be done."""
    contestants: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Players of the game's own by name, as `solver`: `(kernels, argument, settings, *, seed, threads) -> Player`."""
    nets: Mapping[str, Path] = field(default_factory=dict)
    """Checkpoints that are shipped with the framework by name, as `best`."""
    make_truth: Callable[[Game], Truth] | None = None
    """As in GameSpec, and so are the two below."""
    make_balance: Callable[[Game], AreBalanced] | None = None
    gtp_words: Callable[[Game], GtpWords] = default_words
    """The game in the Go Text Protocol."""


def load_parts(
    spec: GameSpec, game: Game, beside: str, nets: Mapping[str, Path], gtp_words: Callable[[Game], GtpWords] | None
) -> LoadedGame:
    """The game with the parts of its spec; relative references are resolved in the package `beside`."""
    presets = _later(spec.presets, beside)
    parts = {name: _later(part, beside) for name in PARTS if (part := getattr(spec, name)) is not None}

    def words(game: Game) -> GtpWords:
        _, rows, columns = game.observation_shape
        found = GtpWords(spec.gtp_name or game.name, rows, columns)
        return replace(found, vertex_of=spec.gtp_vertex) if spec.gtp_vertex else found

    return LoadedGame(
        game, **parts | {"presets": lambda: presets(game)},
        contestants={name: _later(part, beside) for name, part in spec.contestants.items()},
        nets=nets, gtp_words=gtp_words or words,
    )  # fmt: skip


def resolve(part: Part, beside: str) -> Callable[..., Any]:
    """The function that a part is or names; a relative name is looked up in the package `beside`."""
    if not isinstance(part, str):
        return part
    module, _, attribute = part.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module, beside), attribute)
    return found


def _later(part: Part, beside: str) -> Callable[..., Any]:
    """The same, imported when it is first called."""
    if not isinstance(part, str):
        return part

    def call(*arguments: Any, **settings: Any) -> Any:
        return resolve(part, beside)(*arguments, **settings)

    return call
