"""Batch norm, addition and relu as one function, for networks that learn on a processor.

torch passes over the values of a layer seven times for the three and their gradients, two fifths of a 5x64 net's time
on processors with AMX (docs/log.md). Here it is four times: for the sums, for the output, and likewise back.

Arrays have a row for each square of each board, and a column for each channel: `uint16[rows, C]` of bf16, which is the
upper half of a float32, or `float32[rows, C]`. The formulas are those of Ioffe and Szegedy 2015.

A strip is several rows, one after the other in memory, so that inner loops are long enough for the processor's
vectors. The numbers of the channels are repeated along it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from alphazero.game.functions import bound
from alphazero.game.kernels import kernel, of_fixed_types

STRIP = 512
"""The most values in a strip, which has whole rows, unless a single row has more."""
BLOCK = 128
"""Strips that are summed up in float32; sums of blocks are float64."""


def norm_relu(norm: nn.Module, x: Tensor, added: Tensor | None = None) -> Tensor:
    """relu(norm(x) + added) of `[n, C, H, W]`.

    `norm` is a batch norm with weights and running means in float32, or in a frozen net the identity that is left.
    """
    learns = isinstance(norm, nn.BatchNorm2d) and norm.training and x.numel() > x.shape[1]  # a single value is refused
    if learns and x.dtype in _KERNELS and x.device.type == "cpu":
        result: Tensor = _NormRelu.apply(x, added, norm.weight, norm.bias, norm)
        return result
    y = norm(x)
    return torch.relu(y if added is None else y + added)


def compile_kernels(dtype: torch.dtype) -> None:
    """Compiles what `norm_relu` calls, or finds it on disk: seconds that a run spends before its clock starts."""
    x = torch.zeros(2, 1, 1, 1, dtype=dtype, requires_grad=True)
    norm_relu(nn.BatchNorm2d(1), x).sum().backward()  # type: ignore[no-untyped-call]


def scratch_space(channels: int) -> tuple[np.ndarray, np.ndarray]:
    """Memory that the kernels write to beside their results: `float32[3, values of a strip]` and `float64[2, C]`."""
    return np.empty((3, channels * max(1, STRIP // channels)), np.float32), np.empty((2, channels))


@kernel
def to_float(bits):
    """The float32 with the bits of a bf16."""
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


@kernel
def to_bits(number):
    """The bits of the bf16 that is nearest to a float32; of two, the even one."""
    bits = np.float32(number).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    return np.uint16(np.uint32(bits + np.uint32(0x7FFF) + odd) >> np.uint32(16))


@kernel
def normalize(x, added, with_added, affine, running, momentum, epsilon, moments, scratch, totals, y):
    """Writes relu(scale (x - mean) / sqrt(variance + epsilon) + shift + added) into `y`.

    `affine` is scale and shift; the mean and the variance of each channel go into `moments`, and with the weight
    `momentum` into `running`: all of them pairs of `float32[C]`. `added` is one more array like `x`, or not looked at.
    `scratch` and `totals` are those of `scratch_space`.
    """
    (scale, shift), (means, variances) = affine, moments
    rows, channels = x.shape
    xs, others, ys = x.reshape(-1), added.reshape(-1), y.reshape(-1)
    width, sums, squares, origins = scratch.shape[1], scratch[0], scratch[1], scratch[2]
    # sums of what exceeds the first row are small, so that the difference of squares is exact
    for c in range(channels):
        origins[c] = means[c] = to_float(x[0, c])
    repeat(origins, channels)
    totals[:] = 0.0
    for block in range(0, xs.size, BLOCK * width):
        sums[:] = 0.0
        squares[:] = 0.0
        for at in range(block, min(block + BLOCK * width, xs.size), width):
            part = xs[at : at + width]
            for i in range(part.size):
                excess = to_float(part[i]) - origins[i]
                sums[i] += excess
                squares[i] += excess * excess
        add_up(sums, squares, totals)
    factors, offsets = sums, squares  # the same memory, no longer needed for sums
    for c in range(channels):
        excess = totals[0, c] / rows
        variances[c] = max(totals[1, c] / rows - excess * excess, 0.0)
        means[c] += excess
        running[0][c] += momentum * (means[c] - running[0][c])
        running[1][c] += momentum * (variances[c] * (rows / (rows - 1)) - running[1][c])
        factors[c] = scale[c] / np.sqrt(variances[c] + epsilon)
        offsets[c] = shift[c] - means[c] * factors[c]
    repeat(factors, channels)
    repeat(offsets, channels)
    for at in range(0, xs.size, width):
        part, other, result = xs[at : at + width], others[at : at + width], ys[at : at + width]
        for i in range(part.size):
            value = to_float(part[i]) * factors[i] + offsets[i]
            if with_added:
                value += to_float(other[i])
            result[i] = to_bits(np.float32(0.0) if value < 0 else value)  # nan stays nan


@kernel
def differentiate(x, y, gradient, affine, epsilon, moments, scratch, totals, to_affine, to_x, to_added, with_added):
    """The gradients of what `normalize` has computed, by the `gradient` of its output `y`.

    They go into `to_affine`, `to_x`, and `to_added` if `with_added`. All others are as in `normalize`.
    """
    (scale, _), (means, variances) = affine, moments
    rows, channels = x.shape
    xs, ys, gradients = x.reshape(-1), y.reshape(-1), gradient.reshape(-1)
    to_xs, to_others = to_x.reshape(-1), to_added.reshape(-1)
    width, sums, products, origins = scratch.shape[1], scratch[0], scratch[1], scratch[2]
    for c in range(channels):
        origins[c] = means[c]
    repeat(origins, channels)
    totals[:] = 0.0
    for block in range(0, xs.size, BLOCK * width):
        sums[:] = 0.0
        products[:] = 0.0
        for at in range(block, min(block + BLOCK * width, xs.size), width):
            part, output, received = xs[at : at + width], ys[at : at + width], gradients[at : at + width]
            for i in range(part.size):
                passed = to_float(received[i]) if to_float(output[i]) > 0 else np.float32(0.0)
                sums[i] += passed
                products[i] += passed * (to_float(part[i]) - origins[i])
        add_up(sums, products, totals)
    factors, slopes, offsets = sums, products, origins  # the same memory, no longer needed for sums
    for c in range(channels):
        deviation = np.sqrt(variances[c] + epsilon)
        to_affine[0][c], to_affine[1][c] = totals[1, c] / deviation, totals[0, c]
        # to_x = scale / deviation (gradient - slope (x - mean) - mean gradient)
        factors[c] = scale[c] / deviation
        slopes[c] = totals[1, c] / rows / (deviation * deviation)
        offsets[c] = totals[0, c] / rows - slopes[c] * means[c]
    for row in range(len(scratch)):
        repeat(scratch[row], channels)
    for at in range(0, xs.size, width):
        part, output, received = xs[at : at + width], ys[at : at + width], gradients[at : at + width]
        result, other = to_xs[at : at + width], to_others[at : at + width]
        for i in range(part.size):
            passed = to_float(received[i]) if to_float(output[i]) > 0 else np.float32(0.0)
            result[i] = to_bits((passed - to_float(part[i]) * slopes[i] - offsets[i]) * factors[i])
            if with_added:
                other[i] = to_bits(passed)


@kernel
def repeat(strip, channels):
    """Repeats the first `channels` numbers along the strip."""
    for i in range(channels, strip.size):
        strip[i] = strip[i - channels]


@kernel
def add_up(sums, others, totals):
    """Adds two strips of sums to the totals of the channels."""
    channels = totals.shape[1]
    for at in range(0, sums.size, channels):
        for c in range(channels):
            totals[0, c] += sums[at + c]
            totals[1, c] += others[at + c]


@kernel
def _as_it_is(number):
    return number


def _of_float32(function: Callable[..., Any]) -> Any:
    """The same kernel for values that are float32."""
    source = getattr(function, "py_func", function)
    return kernel(bound(source, {"to_float": _as_it_is, "to_bits": _as_it_is}))


# Threads that learn side by side share Python's lock, so what they do in Python counts on all of them: numpy's views
# instead of torch's, and kernels whose arguments have their types already.
_KERNELS = {
    torch.bfloat16: (of_fixed_types(normalize), of_fixed_types(differentiate)),
    torch.float32: (of_fixed_types(_of_float32(normalize)), of_fixed_types(_of_float32(differentiate))),
}
"""For each type of the values, the function and its gradients."""


class _NormRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, added: Tensor | None, scale: Tensor, shift: Tensor, norm: Any) -> Tensor:
        norm.num_batches_tracked.add_(1)
        x = x.contiguous(memory_format=torch.channels_last)
        y = torch.empty_like(x)
        rows, affine = _rows(x), (scale.detach().numpy(), shift.detach().numpy())
        normalize, _ = _KERNELS[x.dtype]
        moments = np.empty_like(affine[0]), np.empty_like(affine[0])
        normalize(
            rows, rows if added is None else _rows(added.to(x.dtype)), added is not None, affine,
            (norm.running_mean.numpy(), norm.running_var.numpy()), norm.momentum, norm.eps, moments,
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


def _rows(x: Tensor) -> np.ndarray:
    """The values `[n, C, H, W]`, or the bits of bf16, as `[n H W, C]`: the same memory if the channels are last."""
    values = (x.view(torch.uint16) if x.dtype == torch.bfloat16 else x.detach()).numpy()
    return np.ascontiguousarray(values.transpose(0, 2, 3, 1)).reshape(-1, values.shape[1])
