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
from typing import TYPE_CHECKING, Any

from alphazero._version import __version__ as __version__

if TYPE_CHECKING:
    from alphazero import errors
    from alphazero.api.games import check_game, load_game
    from alphazero.api.matches import Match, match
    from alphazero.api.nets import Evaluation, evaluate, load_net
    from alphazero.api.page import play_web
    from alphazero.api.runs import load_run, train
    from alphazero.game.game import Game, Position
    from alphazero.game.kernels import Kernels
    from alphazero.game.record import GameRecord
    from alphazero.game.rules import Rules
    from alphazero.game.spec import ExactResult, Oracle
    from alphazero.nets.neural_net import Batch, NeuralNet, Trainer
    from alphazero.nets.resnet import NetConfig
    from alphazero.nets.torch_net import TorchNet
    from alphazero.players.player import Player
    from alphazero.search.analysis import Found
    from alphazero.search.analysis import search_position as search
    from alphazero.search.mcts import Search, SearchConfig
    from alphazero.storage.checkpoint import load_checkpoint, save_checkpoint
    from alphazero.training.coach import Coach
    from alphazero.training.config import RunConfig
    from alphazero.training.run import TrainedRun

_HOMES = {
    "Batch": "nets.neural_net",
    "Coach": "training.coach",
    "Evaluation": "library.nets",
    "ExactResult": "game.spec",
    "Found": "search.analysis",
    "Game": "game.game",
    "GameRecord": "game.record",
    "Kernels": "game.kernels",
    "Match": "library.matches",
    "NetConfig": "nets.resnet",
    "NeuralNet": "nets.neural_net",
    "Oracle": "game.spec",
    "Player": "players.player",
    "Position": "game.game",
    "Rules": "game.rules",
    "RunConfig": "training.config",
    "Search": "search.mcts",
    "SearchConfig": "search.mcts",
    "TorchNet": "nets.torch_net",
    "TrainedRun": "training.run",
    "Trainer": "nets.neural_net",
    "check_game": "library.games",
    "evaluate": "library.nets",
    "load_checkpoint": "storage.checkpoint",
    "load_game": "library.games",
    "load_net": "library.nets",
    "load_run": "library.runs",
    "match": "library.matches",
    "play_web": "library.page",
    "save_checkpoint": "storage.checkpoint",
    "train": "library.runs",
}
"""The module of each name."""

__all__ = [
    "Batch",
    "Coach",
    "Evaluation",
    "ExactResult",
    "Found",
    "Game",
    "GameRecord",
    "Kernels",
    "Match",
    "NetConfig",
    "NeuralNet",
    "Oracle",
    "Player",
    "Position",
    "Rules",
    "RunConfig",
    "Search",
    "SearchConfig",
    "TorchNet",
    "TrainedRun",
    "Trainer",
    "check_game",
    "errors",
    "evaluate",
    "load_checkpoint",
    "load_game",
    "load_net",
    "load_run",
    "match",
    "play_web",
    "save_checkpoint",
    "search",
    "train",
]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name in ("errors", "search"):  # modules; `search` is a function as well
        return importlib.import_module(f"alphazero.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'alphazero' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"alphazero.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
