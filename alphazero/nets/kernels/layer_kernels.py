"""The layers of a network for the processor, as one kernel.

A tensor has a row of channels for each cell and position: those of cell c begin at `start + (c n + i) width` for
position i of n. So all that a layer multiplies are matrices with a row for each cell and position. 3x3 convolutions are
Winograd's (`winograd_kernels.py`), all others sums over taps (`layer_program.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from alphazero.errors import NetError
from alphazero.game.kernels import kernel, of_fixed_types
from alphazero.nets.kernels.layer_program import RELU, TANH
from alphazero.nets.kernels.winograd_kernels import (
    INTO,
    PANEL,
    ROWS,
    gather_tile,
    multiply,
    multiply_points,
    num_tiles,
    spread_tile,
)

POSITIONS = 4
"""Positions that are computed at once: with more, what is between two layers leaves the second-level cache."""


class PackedLayer(NamedTuple):
    """One layer as the kernel takes it; places are in numbers, and widths multiples of PANEL."""

    source: int
    target: int
    residual: int  # -1: none
    cells: int  # of the output
    inputs: int
    source_width: int
    width: int  # of the output
    taps: int  # 0: a 3x3 convolution by Winograd
    table: int  # of the lists of input cells, `taps` for each output cell; -1: outside of the board
    weights: int  # [width / PANEL, taps, inputs, PANEL], or [points, width / PANEL, inputs, PANEL]
    bias: int  # [width]
    activation: int
    board_height: int
    board_width: int
    tall: int  # the tiles of Winograd
    wide: int


class Workspace(NamedTuple):
    """Memory that the kernel writes to. All of it is zero before the first position."""

    tensors: np.ndarray  # float32[...]: begins with as many zeros as the widest tensor has channels
    spread: np.ndarray  # float32[...]: the tiles of a layer at their points
    products: np.ndarray  # float32[...]
    columns: np.ndarray  # float32[TILE widest]
    lines: np.ndarray  # float32[...]: a tile
    offsets: np.ndarray  # int64[...]


@kernel
def run_network(observations, steps, tables, weights, workspace, observed, policy, value, logits, values):
    """Writes `logits float32[n, A]` and `values float32[n]` of `observations float32[n, P, H W]`.

    `steps int64[L, ...]` are the layers, `tables int32[...]` and `weights float32[...]` theirs. `observed` is the place
    and the width of the observation's tensor. `policy int64[A + 1, 2]` has the place and the width of the policy's
    tensor, then the cell and the channel of each action; so has `value int64[2, 2]`.
    """
    tensors, _, _, _, _, _ = workspace
    start, width = observed
    for first in range(0, len(observations), POSITIONS):
        count = min(POSITIONS, len(observations) - first)
        for i in range(count):
            for plane in range(observations.shape[1]):
                for cell in range(observations.shape[2]):
                    tensors[start + (cell * count + i) * width + plane] = observations[first + i, plane, cell]
        for index in range(len(steps)):
            if steps[index, 7] > 0:
                sum_taps(steps[index], count, tables, weights, workspace)
            else:
                convolve(steps[index], count, weights, workspace)
        for i in range(count):
            for action in range(logits.shape[1]):
                row = policy[action + 1, 0] * count + i
                logits[first + i, action] = tensors[policy[0, 0] + row * policy[0, 1] + policy[action + 1, 1]]
            row = value[1, 0] * count + i
            values[first + i] = tensors[value[0, 0] + row * value[0, 1] + value[1, 1]]


@kernel
def sum_taps(step, count, tables, weights, workspace):
    """Computes a layer of sums over taps, for `count` positions."""
    source, target, residual, cells, inputs, source_width = step[0], step[1], step[2], step[3], step[4], step[5]
    width, taps, table, first, bias, activation = step[6], step[7], step[8], step[9], step[10], step[11]
    tensors, _, _, _, lines, offsets = workspace
    total = cells * count
    for row in range(0, total, ROWS):
        for r in range(ROWS):
            cell, i = divmod(min(row + r, total - 1), count)
            for tap in range(taps):
                place = tables[table + cell * taps + tap]
                offsets[ROWS * tap + r] = source + (place * count + i) * source_width if place >= 0 else 0
        for channel in range(0, width, PANEL):
            panel = first + channel * taps * inputs
            multiply(tensors, offsets, 1, taps, inputs, weights, panel, PANEL, lines, 0, PANEL, 0)
            for r in range(min(ROWS, total - row)):
                place = (row + r) * width + channel
                added = residual + place if residual >= 0 else -1
                finish(lines, r * PANEL, PANEL, weights, bias + channel, tensors, added, activation, target + place)


@kernel
def convolve(step, count, weights, workspace):
    """Computes a 3x3 convolution by Winograd, for `count` positions."""
    source, target, residual, inputs, width, first = step[0], step[1], step[2], step[5], step[6], step[9]
    bias, activation = step[10], step[11]
    board = (step[12], step[13], step[14], step[15])
    height, across, tall, wide = board
    tensors, spread, products, columns, lines, offsets = workspace
    tiles, points = num_tiles(board), (tall + 2) * (wide + 2)
    for tile in range(tiles):
        for i in range(count):
            cells = (source + i * inputs, count * inputs, inputs)
            place = (tile * count + i) * points * inputs
            spread_tile(INTO, tensors, cells, board, tile, columns, offsets, spread, place, inputs)
    multiply_points(spread, tiles * count, inputs, weights, first, width, board, offsets, products)
    for tile in range(tiles):
        tile_row, tile_column = divmod(tile, -(-across // wide))
        top, left = tile_row * tall, tile_column * wide
        rows = min(tall, height - top)
        for i in range(count):
            gather_tile(products, tile * count + i, width, board, rows, columns, offsets, lines)
            for a in range(rows):
                for b in range(min(wide, across - left)):
                    place = (((top + a) * across + left + b) * count + i) * width
                    added = residual + place if residual >= 0 else -1
                    line = (a * wide + b) * width
                    finish(lines, line, width, weights, bias, tensors, added, activation, target + place)


@kernel
def finish(sums, first, length, weights, bias, tensors, added, activation, target):
    """Writes `length` sums with their bias, a residual that begins at `added` (-1: none), and the activation."""
    given, shift, out = sums[first : first + length], weights[bias : bias + length], tensors[target : target + length]
    residual = tensors[max(added, 0) : max(added, 0) + length]
    if activation == RELU and added >= 0:
        for j in range(length):
            out[j] = rectified(given[j] + shift[j] + residual[j])
    elif activation == RELU:
        for j in range(length):
            out[j] = rectified(given[j] + shift[j])
    else:
        for j in range(length):
            out[j] = given[j] + shift[j] + (residual[j] if added >= 0 else np.float32(0.0))
    if activation == TANH:
        for j in range(length):
            out[j] = np.tanh(out[j])


@kernel
def rectified(x):
    """The larger of the number and 0; NaN stays NaN."""
    return np.float32(0.0) if x < np.float32(0.0) else x


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
