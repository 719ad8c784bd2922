"""A game with all that goes with it: what the registry in `games/` hands to the framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alphazero.errors import CheckpointError
from alphazero.game import Game, Position
from alphazero.gtp_words import GtpWords
from alphazero.run_folder import resolve_checkpoint

if TYPE_CHECKING:
    from alphazero.neural_net import NeuralNet
    from alphazero.players import Player
    from alphazero.run_config import RunConfig

Truth = Callable[[Position], Mapping[int, str]]
"""What every legal action leads to, exactly, in words ("wins in 5"), the best first; empty if that takes too long."""

AreBalanced = Callable[[np.ndarray], np.ndarray]
"""`bool[n]` of `states uint64[n, K]`, none of them terminal: the fair openings, since neither player wins there if both
are perfect. In a game without draws, those that are as near to it as the game sees fit."""


@dataclass(frozen=True)
class GamePackage:
    """One game, its presets and its network; each part is imported when it is asked for."""

    game: Game
    presets: Callable[[], Mapping[str, RunConfig]]
    """The settings of a run by preset name: `quick`, `standard`, `strong`."""
    make_net: Callable[[Game, Mapping[str, Any]], NeuralNet]
    """A fresh network from the settings that a preset and a checkpoint's card hold under `net`."""
    make_benchmark: Callable[[Game], Callable[[Player], dict[str, float]]] | None = None
    """What scores a player on the game's own truth, made when it is needed. The first figure is the one that counts,
    and higher is better; in a run, the network's figures without a search join every line of `metrics.jsonl`."""
    load_again: Callable[[], GamePackage] | None = None
    """Makes the same package in another process; None if that cannot be done."""
    contestants: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """Players of the game's own by name, as `solver`: `(kernels, argument, settings, *, seed, threads) -> Player`."""
    nets: Mapping[str, Path] = field(default_factory=dict)
    """Checkpoints that are shipped with the framework by name, as `best`."""
    truth: Callable[[Game], Truth] | None = None
    """Makes what tells a human the truth about a position, in the games that have a solver."""
    make_balance: Callable[[Game], AreBalanced] | None = None
    """Makes what tells balanced openings by exact values, in the games that know them of early positions at once."""
    gtp_words: Callable[[Game], GtpWords] | None = None
    """The game in the Go Text Protocol; None: `default_words`."""

    def find_checkpoint(self, text: str) -> Path:
        """The weights that the name of a shipped net, or what `resolve_checkpoint` knows, means."""
        if text in self.nets:
            return self.nets[text]
        try:
            return resolve_checkpoint(text)
        except CheckpointError as error:
            shipped = f", or a shipped net ({', '.join(self.nets)})" if self.nets else ""
            raise CheckpointError(f"{error}{shipped}") from error
