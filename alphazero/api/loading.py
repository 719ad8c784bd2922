"""Games and networks: loading and checking them, and a network's own opinion of a position."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import IllegalAction, InvalidSetting, NetError, UnknownName, quote
from alphazero.game import Game, Position
from alphazero.game.kernels import kernels_of
from alphazero.game.rules import by_player
from alphazero.game.validator import Findings, validate
from alphazero.machine import without_draws
from alphazero.nets.devices import INFERENCES
from alphazero.nets.neural_net import NeuralNet, check_net, on_one_thread
from alphazero.players import contestants
from alphazero.search.evaluator import Evaluator
from alphazero.settings import check_function, check_range, plain

MakeNet = Callable[[Game], Any]
"""From the game to a NeuralNet, or to a torch module `forward(observations) -> (policy_logits, value)`."""


def load_game(name: str | Path) -> Game:
    """A game, by any name that `--game` takes.

    `name` is a shipped game, a file (`my_game.py` or `my_game.py:MyGame`), a module, or `openspiel:NAME`. Raises
    UnknownName, or GameError if the file cannot be used.

    >>> import alphazero as az
    >>> game = az.load_game("tictactoe")
    >>> game.num_actions, game.observation_shape
    (9, (2, 3, 3))
    >>> print(game.position("b2 a1"))
    1 O . .
    2 . X .
    3 . . .
      a b c
    """
    return registry.of(name).game


def check_game(game: Game | type[Game] | str | Path, games: int = 100, seed: int = 0) -> Findings:
    """Plays random games and checks every law of `Game` at every position; returns what the games were like.

    `game` is a Game, its class, or its name. Raises LawBroken with the law and the position.

    >>> import alphazero as az
    >>> findings = az.check_game("tictactoe", games=20)
    >>> findings.num_games, findings.warnings
    (20, [])
    """
    check_range("seed", seed, 0, (1 << 63) - 1)
    return validate(registry.of(game).game, plain(games), plain(seed))


def load_net(
    name: str | Path,
    game: Game | type[Game] | str | Path,
    net: MakeNet | None = None,
    device: str = "auto",
    inference: str | None = None,
) -> NeuralNet:
    """The net called `name` for that game.

    `name` is a shipped net (`best`), a run folder (its best net), `folder:GENERATION`, or a `.safetensors` file. `net`
    is the function that `train` was given, if any. `device` is `auto` (a GPU if there is one), `cpu` or `cuda`.
    `inference` runs the net on the processor: `torch`, `openvino`, `winograd`, or `auto`, the fastest; None is what
    ALPHAZERO_INFERENCE says, else `auto`. Their answers differ a little: name one for results that repeat exactly.
    Raises CheckpointError.

    >>> import alphazero as az
    >>> net = az.load_net("best", "connect4")
    >>> net.card["game"], net.card["parameters"] > 10_000
    ('connect4', True)
    """
    loaded = registry.of(game)
    if inference is not None and inference not in INFERENCES:
        raise UnknownName("inference", inference, INFERENCES)
    text = contestants.text_of(name) if isinstance(name, Path) else str(name)
    return contestants.load_net(text, loaded if net is None else with_net(loaded, net), device, inference)


def enlarge_net(
    net: NeuralNet, small: Game | type[Game] | str | Path, large: Game | type[Game] | str | Path
) -> NeuralNet:
    """A net for the game `large` that begins with what `net` has learned of `small`, the game on a smaller board.

    Both games show the same planes. Their actions are the squares, row by row, then perhaps others, such as a pass; or
    both have `action_places`. Save the new net, and `initial_net` takes its file. Raises NetError where the games do
    not fit, or where `net` is no residual network of the framework.

    >>> import alphazero as az, pathlib
    >>> net = az.enlarge_net(az.load_net("best", "go5"), "go5", "go7")
    >>> card = net.save(pathlib.Path("start.safetensors"), {})
    >>> az.load_net("start.safetensors", "go7").card["game"]
    'go7'
    """
    from alphazero.nets.resnet import ResNet, enlarge, make_net  # these import torch
    from alphazero.nets.torch_net import TorchNet

    old, new = registry.of(small).game, registry.of(large).game
    if not isinstance(net, TorchNet) or type(net.module) is not ResNet:
        given = type(net.module if isinstance(net, TorchNet) else net).__name__
        raise NetError(f"az.enlarge_net takes a net whose module is a ResNet, as az.load_net gives, not a {given}")
    check_net(net, old)
    with without_draws():  # a fresh net draws its weights, which are overwritten
        larger = make_net(new, net.card["net"])
    assert isinstance(larger.module, ResNet)
    enlarge(larger.module, old, net.module.state_dict(), new)
    larger.freeze()
    return larger


def with_net(loaded: LoadedGame, make: MakeNet) -> LoadedGame:
    """The game with networks made by `make(game)`; raises InvalidSetting if it cannot be called so."""
    if hasattr(make, "forward") and not isinstance(make, type):  # a torch module, which can be called, too
        raise InvalidSetting(
            f"net is a function that makes a new network, and no network: give its class, as net={type(make).__name__}"
        )
    check_function("net", make, "game")
    return replace(loaded, make_net=NetMaker(make))


@dataclass(frozen=True)
class NetMaker:
    """A `make_net` that calls a user's function; another process can have it if it can import the function."""

    make: MakeNet

    @property
    def __name__(self) -> str:
        """The function's name, for messages and cards."""
        return str(getattr(self.make, "__qualname__", repr(self.make)))

    def __call__(self, game: Game, settings: Mapping[str, Any]) -> NeuralNet:
        made = self.make(game)
        if isinstance(made, NeuralNet):
            check_net(made, game)
            return made
        if not hasattr(made, "forward"):
            raise NetError(f"{self.__name__} must return a NeuralNet or a torch module, not {quote(made)}")
        from alphazero.nets.torch_net import TorchNet

        return TorchNet(game, made, dict(settings))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A net's own opinion of one position, without a search.

    >>> import alphazero as az
    >>> game = az.load_game("connect4")
    >>> opinion = az.evaluate(game.position("4453"), az.load_net("best", game))
    >>> opinion.policy.argmax(), -1 <= opinion.value <= 1
    (np.int64(3), True)
    """

    policy: np.ndarray
    """`float32[A]`: the probability of each action, 0 on illegal ones."""
    value: float
    """In [-1, 1], for the player to move."""
    values: tuple[float, ...]
    """Each player's value, the first player's first."""


def evaluate(position: Position, net: NeuralNet) -> Evaluation:
    """The net's policy and value of one position; a position and its mirror image get the same answer.

    Raises IllegalAction if the game is over at `position` or a die is due there, and EvaluationError if the answer is
    not finite.

    >>> import alphazero as az
    >>> game = az.load_game("connect4")
    >>> net = az.load_net("best", game)
    >>> left, right = az.evaluate(game.position("1"), net), az.evaluate(game.position("7"), net)
    >>> left.value == right.value, bool((left.policy == right.policy[::-1]).all())
    (True, True)
    """
    if not isinstance(position, Position) or not isinstance(net, NeuralNet):
        given = f"a {type(position).__name__} and a {type(net).__name__}"
        raise InvalidSetting(f"az.evaluate takes a Position and a NeuralNet, as az.load_net gives it, not {given}")
    if position.terminal:
        raise IllegalAction("the game is over at this position, so a net has no opinion of it: take back a move")
    if position.chances:
        raise IllegalAction("a die is due at this position, so a net has no opinion of it: play an outcome first")
    check_net(net, position.game)
    registry.try_rules(position.game)
    ask = Evaluator(kernels_of(position.game), net, cache_size=0)
    with on_one_thread(net):
        policies, values = ask(position.state[None].copy(), position.legal_mask[None].copy())
    own = np.atleast_1d(values[0])
    return Evaluation(policies[0], float(own[0]), by_player(own, position.to_play, position.game.num_players))
