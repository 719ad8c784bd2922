"""A player that is somebody's function `(observations) -> logits`, such as a torch module: `python:MODULE:FUNCTION`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from alphazero.errors import EvaluationError, InvalidSetting, UnknownName
from alphazero.game.kernels import Kernels
from alphazero.game.user_code import can_be_found, import_file, naming
from alphazero.players.net_players import PolicyPlayer
from alphazero.players.player import Assessment, Temperature

EXAMPLE = "write python:my_net.py:policy, with the path of a file, or python:my_package.my_net:policy"


class FunctionPlayer(PolicyPlayer):
    """Plays the legal action of highest logit, or at a temperature T > 0 draws one by exp(logit / T)."""

    def __init__(self, kernels: Kernels, where: str, seed: int, temperature: Temperature):
        super().__init__("", kernels, [_Evaluate(kernels, where, find_function(where))], seed, temperature)

    def assess(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> Assessment:
        return replace(super().assess(states, games, plies), values=None)  # a policy knows none


def find_function(where: str) -> Callable[..., Any]:
    """What `MODULE:FUNCTION` names, MODULE being dotted or the path of a .py file, FUNCTION after the last colon.

    A torch module is set to evaluation: else its answers might depend on what else is in the batch.
    Raises InvalidSetting or UnknownName.
    """
    module_name, _, name = where.rpartition(":")
    if not module_name or not name:
        raise InvalidSetting(f"python takes a module and a function in it, not {where!r:.200}: {EXAMPLE}")
    if module_name.endswith(".py"):
        module = import_file(Path(module_name), "Python", EXAMPLE, InvalidSetting)
    else:
        if not can_be_found(module_name.partition(".")[0]):
            raise InvalidSetting(f"there is no module {module_name!r:.200}: {EXAMPLE}")
        with naming(f"the module {module_name!r}", InvalidSetting):
            module = importlib.import_module(module_name)
    callables = {key: value for key, value in vars(module).items() if callable(value) and not key.startswith("__")}
    if name not in callables:
        raise UnknownName(f"function in {module_name}", name, callables)
    function = callables[name]
    if callable(getattr(function, "eval", None)):
        function.eval()
    return function


class _Evaluate:
    """The function as an `evaluate`: a softmax over the legal logits, and 0 for a value."""

    def __init__(self, kernels: Kernels, where: str, function: Callable[..., Any]):
        self._kernels, self._where, self._function = kernels, where, function

    def __call__(self, states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        import torch

        with naming(f"python:{self._where}", EvaluationError), torch.no_grad():
            answer = self._function(torch.from_numpy(self._kernels.observations(states)))
            if isinstance(answer, torch.Tensor):
                answer = answer.detach().double().cpu().numpy()
        logits = self._checked(answer, legal_masks)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        priors = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
        return priors, np.zeros(len(states), np.float32)

    def _checked(self, answer: Any, legal_masks: np.ndarray) -> np.ndarray:
        """`float64[n, A]`, -inf where illegal; raises EvaluationError."""
        shape = np.shape(answer) if isinstance(answer, np.ndarray) else None
        if shape != legal_masks.shape or not np.issubdtype(answer.dtype, np.number):
            found = (
                f"an array of {answer.dtype} of shape {shape}" if shape is not None else f"a {type(answer).__name__}"
            )
            raise EvaluationError(
                f"python:{self._where} must give logits as an array or tensor of {legal_masks.shape[0]} boards x "
                f"{legal_masks.shape[1]} actions, and gave {found}"
            )
        logits = np.where(legal_masks, np.real(answer).astype(np.float64), -np.inf)
        top = logits.max(axis=1)
        if np.isnan(logits).any() or not np.isfinite(top).all():
            row = int(np.flatnonzero(np.isnan(logits).any(axis=1) | ~np.isfinite(top))[0])
            raise EvaluationError(
                f"python:{self._where} gave no finite logit for the legal actions of board {row} of its batch: nan or "
                "infinite ones cannot be played by"
            )
        return logits
