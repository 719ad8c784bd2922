"""Batch norm, addition and relu of bf16 values together, and their gradients: two passes over the values each.

Arrays are `uint16[rows, C]`: a row for each square of each board, a column for each channel. A bf16 is the upper half
of a float32. The formulas are those of Ioffe and Szegedy 2015.
"""

from __future__ import annotations

import numpy as np

from alphazero.game.kernels import kernel

BLOCK = 256
"""Rows that are summed up in float32; sums of blocks are float64."""


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
    `scratch float32[3, C]` and `totals float64[2, C]` are scratch space.
    """
    (scale, shift), (means, variances) = affine, moments
    rows, channels = x.shape
    # sums of what exceeds the first row are small, so that the difference of squares is exact
    for c in range(channels):
        means[c] = to_float(x[0, c])
    totals[:] = 0.0
    for first in range(0, rows, BLOCK):
        scratch[:] = 0.0
        for row in range(first, min(first + BLOCK, rows)):
            for c in range(channels):
                excess = to_float(x[row, c]) - means[c]
                scratch[0, c] += excess
                scratch[1, c] += excess * excess
        for c in range(channels):
            totals[0, c] += scratch[0, c]
            totals[1, c] += scratch[1, c]
    for c in range(channels):
        excess = totals[0, c] / rows
        variances[c] = max(totals[1, c] / rows - excess * excess, 0.0)
        means[c] += excess
        running[0][c] += momentum * (means[c] - running[0][c])
        running[1][c] += momentum * (variances[c] * (rows / (rows - 1)) - running[1][c])
        scratch[0, c] = scale[c] / np.sqrt(variances[c] + epsilon)
        scratch[1, c] = shift[c] - means[c] * scratch[0, c]
    for row in range(rows):
        for c in range(channels):
            value = to_float(x[row, c]) * scratch[0, c] + scratch[1, c]
            if with_added:
                value += to_float(added[row, c])
            y[row, c] = to_bits(np.float32(0.0) if value < 0 else value)  # nan stays nan


@kernel
def differentiate(x, y, gradient, affine, epsilon, moments, scratch, totals, to_affine, to_x, to_added, with_added):
    """The gradients of what `normalize` has computed, by the `gradient` of its output `y`.

    They go into `to_affine`, `to_x`, and `to_added` if `with_added`. All others are as in `normalize`.
    """
    (scale, _), (means, variances) = affine, moments
    rows, channels = x.shape
    totals[:] = 0.0
    for first in range(0, rows, BLOCK):
        scratch[:] = 0.0
        for row in range(first, min(first + BLOCK, rows)):
            for c in range(channels):
                passed = to_float(gradient[row, c]) if to_float(y[row, c]) > 0 else np.float32(0.0)
                scratch[0, c] += passed
                scratch[1, c] += passed * (to_float(x[row, c]) - means[c])
        for c in range(channels):
            totals[0, c] += scratch[0, c]
            totals[1, c] += scratch[1, c]
    for c in range(channels):
        deviation = np.sqrt(variances[c] + epsilon)
        to_affine[0][c], to_affine[1][c] = totals[1, c] / deviation, totals[0, c]
        # to_x = scale / deviation (gradient - slope (x - mean) - mean gradient)
        slope = totals[1, c] / rows / (deviation * deviation)
        scratch[0, c] = scale[c] / deviation
        scratch[1, c] = slope
        scratch[2, c] = totals[0, c] / rows - slope * means[c]
    for row in range(rows):
        for c in range(channels):
            bits = gradient[row, c] if to_float(y[row, c]) > 0 else np.uint16(0)
            to_x[row, c] = to_bits(
                (to_float(bits) - to_float(x[row, c]) * scratch[1, c] - scratch[2, c]) * scratch[0, c]
            )
            if with_added:
                to_added[row, c] = bits
