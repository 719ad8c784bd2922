"""Any torch module as a policy and value network: its outputs checked once, its memory layout chosen.

A module gives policy logits `[n, A]` and values `[n]` or `[n, 1]` for observations `float[n, P, H, W]`; in a game for
more than two, values `[n, V]`.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils.fusion import fuse_conv_bn_eval
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from alphazero.errors import NetError, is_out_of_memory
from alphazero.game.kernels import kernel, of_fixed_types

MOST_ERROR = 1e-3
"""Beyond this, in proportion to numbers above 1, an answer is another one, and not rounded otherwise."""
SEEDS = 7_481, 9_203
"""For random weights and observations: neither is a user's, as 0, which would make them the module's own numbers."""
CONVOLUTIONS = nn.Conv2d, nn.ConvTranspose2d
Answers = tuple[np.ndarray, np.ndarray]
"""Logits and values."""


class CannotConvert(NetError):
    """A library is not installed, or cannot take over this module."""


def forward(module: nn.Module, observations: Tensor) -> tuple[Tensor, Tensor]:
    """The module's logits `[n, A]` and values `[n]`, or `[n, V]`."""
    logits, values = module(observations)
    return logits, values.squeeze(1) if values.ndim > 1 else values.reshape(-1)


def to_arrays(tensors: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """The tensors as numpy arrays; those of the processor in the same memory."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def check_module(module: nn.Module, observations: Tensor, num_actions: int, value_shape: tuple[int, ...] = ()) -> None:
    """Raises NetError unless the module works as a policy and value network for `observations`, and for one of them."""
    name = type(module).__name__
    shape = ", ".join(map(str, observations.shape))
    for tensor in (*module.buffers(), *module.state_dict().values()):
        if not isinstance(tensor, Tensor) or is_lazy(tensor) or tensor.is_inference():
            raise NetError(
                f"{name} must have only tensors in its state_dict, with shapes and not of `torch.inference_mode`: make "
                f"it outside of that, and call it once before with torch.zeros({shape})"
            )
    wanted = f"{name} must give policy logits of shape [n, {num_actions}] and values of shape "
    wanted += f"{list(('n', *value_shape))}, finite ".replace("'", "")
    wanted += f"floating-point numbers, for observations of shape [n, {', '.join(map(str, observations.shape[1:]))}]"
    try:
        copied = copy.deepcopy(module).float().eval()
        with torch.no_grad():
            answers = [copied(batch.clone()) for batch in (observations, observations[:1])]
    except Exception as error:
        if is_out_of_memory(error):
            raise
        reason = f"{type(error).__name__}: {' '.join(str(error).split()):.300}"
        raise NetError(f"{wanted}, and so must its copies; it fails by {reason}") from error
    for count, outputs in zip((len(observations), 1), answers, strict=True):
        outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
        found = [f"{x.dtype}{list(x.shape)}" if isinstance(x, Tensor) else f"a {type(x).__name__}" for x in outputs]
        shapes = [tuple(x.shape) for x in outputs if isinstance(x, Tensor) and x.is_floating_point()]
        values = [(count, *value_shape)] if value_shape else [(count,), (count, 1), *[()] * (count == 1)]
        if len(outputs) != 2 or shapes not in [[(count, num_actions), each] for each in values]:
            given = " and ".join(found).replace("torch.", "") or "nothing"
            raise NetError(f"{wanted}; it gives, for n = {count}, {given}")
        if not all(bool(torch.isfinite(x).all()) for x in outputs):
            raise NetError(f"{wanted}; it gives numbers that are not finite")


def answers_of(module: nn.Module, observations: Tensor) -> tuple[Tensor, Tensor] | None:
    """The module's logits and values; None if it fails on these observations, in their type and memory layout."""
    try:
        with torch.no_grad():
            logits, values = forward(module, observations.clone())  # some modules write into what they are given
            return logits.detach(), values.detach()  # a view of a parameter has gradients all the same
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return None


def with_random_weights(module: nn.Module) -> nn.Module:
    """A copy that plays by random weights and statistics: zeros, with which many modules begin, silence their parts.

    A number keeps its sign and about its size, since it may be a variance; a zero becomes a small one of either sign.
    """
    copied, generator = copy.deepcopy(module).eval(), torch.Generator().manual_seed(SEEDS[0])
    with torch.no_grad():
        for tensor in copied.state_dict().values():
            if tensor.is_floating_point():
                inputs = max(1, math.prod(tensor.shape[1:]))
                factors = 0.5 + torch.rand(tensor.shape, generator=generator)
                small = factors * torch.sign(factors - 1) / (2 * math.sqrt(inputs))
                tensor.copy_(torch.where(tensor == 0, small, factors * tensor))
    return copied


def are_alike(found: Sequence[Any], expected: Sequence[Any]) -> bool:
    """The logits and values, as tensors or arrays, are the same but for rounding."""
    for one, other in zip(map(np.asarray, found), map(np.asarray, expected), strict=True):
        error = MOST_ERROR * max(1.0, float(np.abs(other, where=np.isfinite(other), out=np.zeros_like(other)).max()))
        if one.shape != other.shape or not np.allclose(one, other, atol=error, equal_nan=True):
            return False
    return True


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


def choose_form(module: nn.Module, shape: Sequence[int]) -> tuple[torch.memory_format, bool]:
    """The memory layout, and whether to `fold`: the fastest with which the module answers as without them.

    Convolutions are fastest with channels last. `view` after a convolution needs the other layout, and so does what
    writes into a view, which may be a copy. A module may use a sequence as a list, so that a folded one misleads it.
    """
    plain, observations = with_random_weights(module), random_observations(shape)
    expected = answers_of(plain, observations)
    convolves = any(isinstance(layer, CONVOLUTIONS) for layer in module.modules())
    layouts = (torch.channels_last, torch.contiguous_format) if convolves else (torch.contiguous_format,)
    for layout, folds in itertools.product(layouts, (True, False)):
        answers = answers_of(frozen_copy(plain, layout, folds), observations.contiguous(memory_format=layout))
        if answers is not None and expected is not None and are_alike(answers, expected):
            return layout, folds
    return torch.contiguous_format, False


def random_observations(shape: Sequence[int]) -> Tensor:
    """Two of that shape, always the same."""
    return torch.rand(2, *shape, generator=torch.Generator().manual_seed(SEEDS[1]))


def frozen_copy(module: nn.Module, layout: torch.memory_format, folds: bool) -> nn.Module:
    """A copy that learns no more, in that memory layout; with `folds` its batch norms are folded."""
    copied = copy.deepcopy(module).eval()
    return lay_out(fold(copied) if folds else copied, layout)


def lay_out(module: nn.Module, layout: torch.memory_format) -> nn.Module:
    """Gives filters this memory layout, and all other parameters the usual one, in place."""
    filters = {id(layer.weight) for layer in module.modules() if isinstance(layer, CONVOLUTIONS)}
    for parameter in module.parameters():
        wanted = layout if id(parameter) in filters else torch.contiguous_format
        parameter.data = parameter.data.contiguous(memory_format=wanted)
    return module


def fold(module: nn.Module) -> nn.Module:
    """Folds every batch norm that follows a convolution in an `nn.Sequential` into it, in place.

    A layer whose filters are computed from its weights computes them now, in its method `fold_filters`, if it has one.
    """
    for child in module.modules():
        if isinstance(child, nn.Sequential):
            for i, (layer, norm) in enumerate(itertools.pairwise(child)):
                if type(layer) is nn.Conv2d and type(norm) is nn.BatchNorm2d and norm.running_mean is not None:
                    child[i], child[i + 1] = fuse_conv_bn_eval(layer, norm), nn.Identity()
    for child in list(module.modules()):
        own = getattr(child, "fold_filters", None)
        if callable(own):
            own()
    return module


class Watch(TorchDispatchMode):
    """Calls `note(operation, arguments, named arguments, answer)` for each operation of torch inside.

    torch's own FlopCounterMode and export import its compiler: two seconds, a third of the time until a first move.
    """

    def __init__(self, note: Callable[[Any, Any, Any, Any], None]):
        super().__init__()
        self._note = note

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled inside; with True, torch imports its compiler to keep away from it

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        answer = func(*args, **named)
        self._note(func, args, named, answer)
        return answer


def count_flops(module: nn.Module, observations: Tensor) -> int:
    """Floating-point operations (a multiply-add is two) of the convolutions and matrix products for one position."""
    copied, counts = copy.deepcopy(module).eval(), list[int]()

    def note(operation: Any, args: Any, named: Any, answer: Any) -> None:
        if (formula := flop_registry.get(operation._overloadpacket)) is not None:
            counts.append(int(formula(*args, **named, out_val=answer)))

    with torch.no_grad(), Watch(note):
        copied(observations[:1])
    return sum(counts)


def to_priors(logits: np.ndarray, values: np.ndarray, legal_masks: np.ndarray) -> None:
    """Turns `logits float32[n, A]` into priors, 0 where `legal_masks bool[n, A]` is false; cuts values to [-1, 1].

    Both in place. A tenth of the time that torch takes, which counts beside a small network.
    """
    rows = len(values), math.prod(values.shape[1:])
    _normalize(logits, values.reshape(rows), checked_masks(legal_masks, logits.shape))


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
        for seat in range(values.shape[1]):
            values[i, seat] = min(max(values[i, seat], np.float32(-1.0)), np.float32(1.0))


_normalize = of_fixed_types(normalize)
