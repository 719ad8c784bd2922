"""Common to the libraries that answer for a torch module on the processor."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import nn

from alphazero.errors import NetError
from alphazero.game.kernels import kernel, of_fixed_types
from alphazero.nets.any_module import answers_of, are_alike, random_observations, with_random_weights

Answers = tuple[np.ndarray, np.ndarray]
"""Logits and values."""


class CannotConvert(NetError):
    """The library is not installed, or cannot take over this module."""


@torch.inference_mode(False)
@torch.no_grad()
def answers_as(module: nn.Module, shape: Sequence[int], answer: Callable[[nn.Module, np.ndarray], Answers]) -> bool:
    """`answer` gives the module's logits and values for two random observations of that shape, but for rounding.

    It must do so with random weights, too: those of now may hide what the next ones show.
    """
    observations = random_observations(shape)
    for each in (with_random_weights(module), module):
        expected = answers_of(each, observations)
        if expected is None or not are_alike(answer(each, observations.numpy()), expected):
            return False
    return True


def to_priors(logits: np.ndarray, values: np.ndarray, legal_masks: np.ndarray) -> None:
    """Turns `logits float32[n, A]` into priors, 0 where `legal_masks bool[n, A]` is false; cuts values to [-1, 1].

    Both in place. A tenth of the time that torch takes, which counts beside a small network.
    """
    _normalize(logits, values, checked_masks(legal_masks, logits.shape))


def checked_masks(legal_masks: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """`bool` of that shape; raises NetError for another one, as compiled code would read beyond the end."""
    masks = np.ascontiguousarray(legal_masks, bool)
    if masks.shape != tuple(shape):
        raise NetError(f"legal masks must have the policy's shape {list(shape)}, not {list(masks.shape)}")
    return masks


@kernel
def normalize(logits, values, legal_masks):
    """Does the work of `to_priors`."""
    for i in range(len(logits)):
        most, total = np.float32(-np.inf), np.float32(0.0)
        for action in range(logits.shape[1]):
            if legal_masks[i, action] and logits[i, action] > most:
                most = logits[i, action]
        for action in range(logits.shape[1]):
            logits[i, action] = np.exp(logits[i, action] - most) if legal_masks[i, action] else np.float32(0.0)
            total += logits[i, action]
        for action in range(logits.shape[1]):
            if legal_masks[i, action]:
                logits[i, action] /= total
        values[i] = min(max(values[i], np.float32(-1.0)), np.float32(1.0))


_normalize = of_fixed_types(normalize)
