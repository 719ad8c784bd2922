"""AlphaZero for any two-player board game: load games and nets, search positions, play matches, train.

    import alphazero as az

    game = az.load_game("connect4")
    position = game.position("4453")
    net = az.load_net("best", game)
    found = az.search(position, net, simulations=400)

Importing the package loads nothing else: each name below is imported when it is first used.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

from alphazero._version import __version__ as __version__

if TYPE_CHECKING:
    from alphazero import errors as errors
    from alphazero.api.extras import play_web as play_web
    from alphazero.api.loading import Evaluation as Evaluation
    from alphazero.api.loading import check_game as check_game
    from alphazero.api.loading import enlarge_net as enlarge_net
    from alphazero.api.loading import evaluate as evaluate
    from alphazero.api.loading import load_game as load_game
    from alphazero.api.loading import load_net as load_net
    from alphazero.api.matches import Match as Match
    from alphazero.api.matches import match as match
    from alphazero.api.runs import load_run as load_run
    from alphazero.api.runs import train as train
    from alphazero.game.game import Game as Game
    from alphazero.game.game import Position as Position
    from alphazero.game.kernels import Kernels as Kernels
    from alphazero.game.record import GameRecord as GameRecord
    from alphazero.game.rules import Rules as Rules
    from alphazero.game.spec import ExactResult as ExactResult
    from alphazero.game.spec import Oracle as Oracle
    from alphazero.nets.neural_net import Batch as Batch
    from alphazero.nets.neural_net import NeuralNet as NeuralNet
    from alphazero.nets.neural_net import Trainer as Trainer
    from alphazero.nets.resnet import NetConfig as NetConfig
    from alphazero.nets.torch_net import TorchNet as TorchNet
    from alphazero.players.player import Player as Player
    from alphazero.search.analysis import Found as Found
    from alphazero.search.analysis import search_position
    from alphazero.search.mcts import Search as Search
    from alphazero.search.mcts import SearchConfig as SearchConfig
    from alphazero.storage.checkpoint import load_checkpoint as load_checkpoint
    from alphazero.storage.checkpoint import save_checkpoint as save_checkpoint
    from alphazero.training.coach import Coach as Coach
    from alphazero.training.config import RunConfig as RunConfig
    from alphazero.training.run import TrainedRun as TrainedRun

    search = search_position

_SOURCE = __spec__.loader.get_source(__name__)  # type: ignore[union-attr]
_HOMES = {name: module for module, name in re.findall(r"    from (alphazero\.[\w.]+) import (\w+) as \2\n", _SOURCE)}
"""The module of each name, as the imports above say, which only type checkers run."""

__all__ = sorted([*_HOMES, "errors", "search"])


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name in ("errors", "search"):  # modules; `search` is a function as well
        return importlib.import_module(f"alphazero.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'alphazero' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
