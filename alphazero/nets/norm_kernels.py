"""Batch norm, addition and relu of bf16 or float32 values together, and their gradients: two passes over them each.

Arrays have a row for each square of each board, and a column for each channel: `uint16[rows, C]` of bf16, which is the
upper half of a float32, or `float32[rows, C]`. The formulas are those of Ioffe and Szegedy 2015.

A strip is several rows, one after the other in memory, so that inner loops are long enough for the processor's
vectors. The numbers of the channels are repeated along it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from alphazero.game.functions import bound
from alphazero.game.kernels import kernel

STRIP = 512
"""The most values in a strip, which has whole rows, unless a single row has more."""
BLOCK = 128
"""Strips that are summed up in float32; sums of blocks are float64."""


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


normalize_float32, differentiate_float32 = _of_float32(normalize), _of_float32(differentiate)
