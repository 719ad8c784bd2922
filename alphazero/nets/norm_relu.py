"""Batch norm, addition and relu as one function, for networks that learn on a processor.

torch passes over the values of a layer seven times for the three and their gradients, two fifths of a 5x64 net's time
on processors with AMX (docs/log.md). Here it is four times: for the sums, for the output, and likewise back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from alphazero.game.kernels import of_fixed_types
from alphazero.nets.norm_kernels import (
    differentiate,
    differentiate_float32,
    normalize,
    normalize_float32,
    scratch_space,
)


def norm_relu(norm: nn.Module, x: Tensor, added: Tensor | None = None) -> Tensor:
    """relu(norm(x) + added) of `[n, C, H, W]`.

    `norm` is a batch norm, or in a frozen net the identity that is left of it.
    """
    if x.dtype in _KERNELS and x.device.type == "cpu" and _is_plain(norm, x, added):
        result: Tensor = _NormRelu.apply(x, added, norm.weight, norm.bias, norm)
        return result
    y = norm(x)
    return torch.relu(y if added is None else y + added)


def _is_plain(norm: nn.Module, x: Tensor, added: Tensor | None) -> bool:
    """It is a batch norm that learns, of the kind that is computed here, and has numbers enough for a variance."""
    if type(norm) is not nn.BatchNorm2d or not norm.training or norm.running_mean is None or norm.momentum is None:
        return False
    in_float32 = norm.affine and norm.weight.dtype == torch.float32
    return in_float32 and x.numel() > x.shape[1] and (added is None or added.shape == x.shape)


def compile_kernels(dtype: torch.dtype) -> None:
    """Compiles what `norm_relu` calls, or finds it on disk: seconds that a run spends before its clock starts."""
    x = torch.zeros(2, 1, 1, 1, dtype=dtype, requires_grad=True)
    norm_relu(nn.BatchNorm2d(1), x).sum().backward()  # type: ignore[no-untyped-call]


_KERNELS = {
    torch.bfloat16: (of_fixed_types(normalize), of_fixed_types(differentiate)),
    torch.float32: (of_fixed_types(normalize_float32), of_fixed_types(differentiate_float32)),
}
"""For each type of the values, the function and its gradients."""
# Threads that learn side by side share Python's lock, so what they do in Python counts on all of them: numpy's views
# instead of torch's, and kernels whose arguments have their types already.


class _NormRelu(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, added: Tensor | None, scale: Tensor, shift: Tensor, norm: nn.BatchNorm2d
    ) -> Tensor:
        assert norm.running_mean is not None and norm.running_var is not None
        assert norm.momentum is not None and norm.num_batches_tracked is not None
        norm.num_batches_tracked.add_(1)
        x = x.contiguous(memory_format=torch.channels_last)
        y = torch.empty_like(x)
        rows, affine = _rows(x), _arrays(scale, shift)
        normalize, _ = _KERNELS[x.dtype]
        moments = np.empty_like(affine[0]), np.empty_like(affine[0])
        normalize(
            rows, rows if added is None else _rows(added.to(x.dtype)), added is not None, affine,
            _arrays(norm.running_mean, norm.running_var), norm.momentum, norm.eps, moments,
            *scratch_space(len(affine[0])), _rows(y),
        )  # fmt: skip
        ctx.save_for_backward(x, y)
        ctx.affine, ctx.moments, ctx.epsilon, ctx.with_added = affine, moments, norm.eps, added is not None
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, y = ctx.saved_tensors
        to_affine, to_x = (np.empty_like(ctx.affine[0]), np.empty_like(ctx.affine[0])), torch.empty_like(x)
        to_added = torch.empty_like(x) if ctx.with_added else to_x
        _, differentiate = _KERNELS[x.dtype]
        differentiate(
            _rows(x), _rows(y), _rows(gradient), ctx.affine, ctx.epsilon, ctx.moments,
            *scratch_space(len(to_affine[0])), to_affine, _rows(to_x), _rows(to_added), ctx.with_added,
        )  # fmt: skip
        return to_x, to_added if ctx.with_added else None, *map(torch.from_numpy, to_affine), None


def _arrays(first: Tensor, second: Tensor) -> tuple[np.ndarray, np.ndarray]:
    return first.detach().numpy(), second.detach().numpy()


def _rows(x: Tensor) -> np.ndarray:
    """The values `[n, C, H, W]`, or the bits of bf16, as `[n H W, C]`: the same memory if the channels are last."""
    values = (x.view(torch.uint16) if x.dtype == torch.bfloat16 else x.detach()).numpy()
    return np.ascontiguousarray(values.transpose(0, 2, 3, 1)).reshape(-1, values.shape[1])
