"""Batch norm, addition and relu of bf16 values together, and their gradients: two passes over the values each.

Arrays are `uint16[rows, C]`: a row for each square of each board, a column for each channel. A bf16 is the upper half
of a float32. The formulas are those of Ioffe and Szegedy 2015.

The rows are taken by strips: as many as make a strip long enough for the processor's vectors, side by side. What
belongs to a channel is repeated along the strip.
"""

from __future__ import annotations

import numpy as np

from alphazero.game.kernels import kernel

STRIP = 512
"""Values of a strip, or fewer, so that it has whole rows."""
BLOCK = 128
"""Strips that are summed up in float32; sums of blocks are float64."""


def scratch_space(channels: int) -> tuple[np.ndarray, np.ndarray]:
    """The memory that the kernels use beside their results: three strips, and two totals of each channel."""
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
    strip, first, second, third = scratch.shape[1], scratch[0], scratch[1], scratch[2]
    # sums of what exceeds the first row are small, so that the difference of squares is exact
    for c in range(channels):
        third[c] = means[c] = to_float(x[0, c])
    repeat(third, channels)
    totals[:] = 0.0
    for block in range(0, xs.size, BLOCK * strip):
        first[:] = 0.0
        second[:] = 0.0
        for at in range(block, min(block + BLOCK * strip, xs.size), strip):
            part = xs[at : at + strip]
            for i in range(part.size):
                excess = to_float(part[i]) - third[i]
                first[i] += excess
                second[i] += excess * excess
        add_up(first, second, totals)
    for c in range(channels):
        excess = totals[0, c] / rows
        variances[c] = max(totals[1, c] / rows - excess * excess, 0.0)
        means[c] += excess
        running[0][c] += momentum * (means[c] - running[0][c])
        running[1][c] += momentum * (variances[c] * (rows / (rows - 1)) - running[1][c])
        first[c] = scale[c] / np.sqrt(variances[c] + epsilon)
        second[c] = shift[c] - means[c] * first[c]
    repeat(first, channels)
    repeat(second, channels)
    for at in range(0, xs.size, strip):
        part, other, result = xs[at : at + strip], others[at : at + strip], ys[at : at + strip]
        for i in range(part.size):
            value = to_float(part[i]) * first[i] + second[i]
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
    strip, first, second, third = scratch.shape[1], scratch[0], scratch[1], scratch[2]
    for c in range(channels):
        third[c] = means[c]
    repeat(third, channels)
    totals[:] = 0.0
    for block in range(0, xs.size, BLOCK * strip):
        first[:] = 0.0
        second[:] = 0.0
        for at in range(block, min(block + BLOCK * strip, xs.size), strip):
            part, output, slope = xs[at : at + strip], ys[at : at + strip], gradients[at : at + strip]
            for i in range(part.size):
                passed = to_float(slope[i]) if to_float(output[i]) > 0 else np.float32(0.0)
                first[i] += passed
                second[i] += passed * (to_float(part[i]) - third[i])
        add_up(first, second, totals)
    for c in range(channels):
        deviation = np.sqrt(variances[c] + epsilon)
        to_affine[0][c], to_affine[1][c] = totals[1, c] / deviation, totals[0, c]
        # to_x = scale / deviation (gradient - slope (x - mean) - mean gradient)
        first[c] = scale[c] / deviation
        second[c] = totals[1, c] / rows / (deviation * deviation)
        third[c] = totals[0, c] / rows - second[c] * means[c]
    for row in range(len(scratch)):
        repeat(scratch[row], channels)
    for at in range(0, xs.size, strip):
        part, output, slope = xs[at : at + strip], ys[at : at + strip], gradients[at : at + strip]
        result, other = to_xs[at : at + strip], to_others[at : at + strip]
        for i in range(part.size):
            bits = slope[i] if to_float(output[i]) > 0 else np.uint16(0)
            result[i] = to_bits((to_float(bits) - to_float(part[i]) * second[i] - third[i]) * first[i])
            if with_added:
                other[i] = bits


@kernel
def repeat(strip, channels):
    """Repeats the first `channels` numbers along the strip."""
    for i in range(channels, strip.size):
        strip[i] = strip[i - channels]


@kernel
def add_up(first, second, totals):
    """Adds two strips of sums to the totals of the channels."""
    channels = totals.shape[1]
    for at in range(0, first.size, channels):
        for c in range(channels):
            totals[0, c] += first[at + c]
            totals[1, c] += second[at + c]
