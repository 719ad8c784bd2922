"""Players that are somebody's function: from a position to an action, or from observations to logits."""

from __future__ import annotations

import contextlib
import importlib
import operator
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np

from alphazero.catalogue.user_code import can_be_found, import_file, naming
from alphazero.errors import EvaluationError, IllegalAction, InvalidSetting, UnknownName, quote
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels
from alphazero.players.net_players import PolicyPlayer
from alphazero.players.player import Assessment, FollowingPlayer, Temperature
from alphazero.search.mcts import Evaluate
from alphazero.settings import check_function

EXAMPLE = "write python:my_net.py:policy, with the path of a file, or python:my_package.my_net:policy"


class FunctionPlayer(FollowingPlayer):
    """Plays `function(position)`: the function takes a `Position` and returns one of its `legal_actions`.

    In a match the position knows its history. Errors of the function are raised as they are.
    """

    one_at_a_time = False

    def __init__(self, game: Game, function: Callable[[Position], SupportsIndex]):
        super().__init__(game)
        check_function("the function of a player", function, "position")
        self.name, self._function = getattr(function, "__name__", "") or type(function).__name__, function

    def choose(self, position: Position, game: int) -> int:
        """The function's action; raises IllegalAction if it is none of the legal ones."""
        answer = self._function(position)
        with contextlib.suppress(TypeError):
            if (action := operator.index(answer)) in position.legal_actions:
                return action
        raise IllegalAction(
            f"{self.name} returned {quote(answer)}, which is not a legal action (legal: {position.legal_actions})"
        )

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        """Actions for states without a history: so the function sees positions whose `actions` are empty."""
        actions = []
        for state, game, ply in zip(states, games, plies, strict=True):
            position = Position(self._game, state.copy(), self._game.mover(state, int(ply) % 2), ())
            actions.append(self.choose(position, int(game)))
        return np.array(actions, np.int64)


class LogitsPlayer(PolicyPlayer):
    """Plays by `function(observations) -> logits`, where `observations` is a torch tensor `float32[n, P, H, W]`.

    The logits are a tensor or an array `[n, A]`. The player takes the legal action of highest logit, or at a
    temperature T > 0 draws one by exp(logit / T).
    """

    def __init__(self, name: str, kernels: Kernels, function: Callable[..., Any], seed: int, temperature: Temperature):
        check_function(name, function, "observations")
        super().__init__(name, kernels, [_softmax_of(kernels, name, function)], seed, temperature)

    def assess(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> Assessment:
        return replace(super().assess(states, games, plies), values=None)  # logits hold no value


def find_function(where: str) -> Callable[..., Any]:
    """The function that `MODULE:FUNCTION` names; MODULE is dotted or the path of a .py file; raises InputError."""
    module_name, _, name = where.rpartition(":")
    if not module_name or not name:
        raise InvalidSetting(f"python takes a module and a function in it, not {quote(where, 200)}: {EXAMPLE}")
    if module_name.endswith(".py"):
        module = import_file(Path(module_name), "Python", EXAMPLE, InvalidSetting)
    else:
        if not can_be_found(module_name.partition(".")[0]):
            raise InvalidSetting(f"there is no module {quote(module_name, 200)} on Python's path: {EXAMPLE}")
        with naming(f"the module {quote(module_name)}", InvalidSetting):
            module = importlib.import_module(module_name)
    functions = {key: value for key, value in vars(module).items() if callable(value) and not isinstance(value, type)}
    if name not in functions:
        raise UnknownName(f"function in {module_name}", name, functions)
    if callable(getattr(functions[name], "eval", None)):  # a module, whose answers would depend on the batch
        functions[name].eval()
    return functions[name]  # type: ignore[no-any-return]


def _softmax_of(kernels: Kernels, name: str, function: Callable[..., Any]) -> Evaluate:
    """The function as an `evaluate`: a softmax over the legal logits, and 0 for every value."""

    def evaluate(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        import torch

        with naming(name, EvaluationError), torch.no_grad():
            answer = function(torch.from_numpy(kernels.observations(states)))
            if isinstance(answer, torch.Tensor):
                answer = answer.detach().double().cpu().numpy()
        logits = _checked(name, answer, legal_masks)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        priors = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
        return priors, np.zeros(len(states), np.float32)

    return evaluate


def _checked(name: str, answer: Any, legal_masks: np.ndarray) -> np.ndarray:
    """`float64[n, A]`, -inf where illegal; raises EvaluationError."""
    kind, boards, actions = type(answer).__name__, *legal_masks.shape
    if isinstance(answer, np.ndarray):
        kind = f"{answer.dtype} of shape {answer.shape}"
        if answer.shape == legal_masks.shape and np.issubdtype(answer.dtype, np.number):
            logits = np.where(legal_masks, np.real(answer).astype(np.float64), -np.inf)
            if np.isfinite(logits.max(axis=1)).all():  # neither nan nor infinite
                return logits
            kind = "no finite logit for the legal actions of a board"
    raise EvaluationError(
        f"{name} must give finite logits as an array or tensor of {boards} boards x {actions} actions, and gave {kind}"
    )
