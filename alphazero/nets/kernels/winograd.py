"""`WinogradInference`: a torch module's answers, computed by our own kernels on the processor.

Libraries multiply in 3x3 convolutions of float32 as the definition says. Winograd's method does it with a third of the
multiplications: about twice as fast where the processor has no instructions for bf16 (docs/log.md).

A tensor has a row of channels for each cell and position: those of cell c begin at `start + (c n + i) width` for
position i of n. So all that a layer multiplies are matrices with a row for each cell and position. 3x3 convolutions are
Winograd's (`winograd_kernels.py`), all others sums over taps (`layer_program.py`).
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import Tensor, nn

from alphazero.errors import NetError
from alphazero.game.kernels import kernel, of_fixed_types
from alphazero.nets.any_module import CannotConvert
from alphazero.nets.kernels.layer_program import RELU, TANH, LayerProgram, Rows, TapLayer, check_layers, layers_of
from alphazero.nets.kernels.winograd_kernels import (
    INTO,
    PANEL,
    ROWS,
    TILE,
    gather_tile,
    has_fma,
    matrices,
    multiply,
    multiply_points,
    num_tiles,
    spread_tile,
    tile_length,
    transform_filters,
)  # fmt: skip

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


class WinogradInference:
    """Answers by our own kernels; those to a position are the same in every batch, bit for bit."""

    name: ClassVar[str] = "winograd"

    def __init__(self, module: nn.Module, example: Tensor, bf16: bool = False):
        """`example float32[n, P, H, W]`; numbers are float32 also with `bf16`. Raises CannotConvert."""
        if not hasattr(run_network, "compile") or not has_fma():
            raise CannotConvert("our own kernels are slow without numba, and on a processor without FMA")
        _, planes, height, width = example.shape
        self._shape = planes, height, width
        try:
            check_layers(module, self._shape)
        except NetError as error:
            raise CannotConvert(f"our own kernels cannot answer for {type(module).__name__}: {error}") from error
        self.set_weights(module)

    def set_weights(self, module: nn.Module) -> None:
        self._network = _Packer(layers_of(module, self._shape)).network()
        self._idle: list[Workspace] = []
        """Memory that no thread uses now; taps without weights are left out, so other weights can need more."""

    def __call__(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        arguments, (num_actions, num_values), sizes = self._network
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = Workspace._make(
                [*(np.zeros(size, np.float32) for size in sizes[:-1]), np.zeros(sizes[-1], np.int64)]
            )
        logits = np.empty((len(observations), num_actions), np.float32)
        values = np.empty((len(observations), num_values), np.float32)
        planes, height, width = self._shape
        cells = np.ascontiguousarray(observations, np.float32).reshape(len(observations), planes, height * width)
        steps, tables, weights, *places = arguments
        _run(cells, steps, tables, weights, workspace, *places, logits, values)
        self._idle.append(workspace)
        return logits, values[:, 0] if num_values == 1 else values


class _Packer:
    """Gives the tensors and the weights of a program their places."""

    def __init__(self, program: LayerProgram):
        self._program = program
        self._tables, self._weights = [np.zeros(1, np.int32)], list[np.ndarray]()
        self._num_spread = self._num_products = 1

    def network(self) -> tuple[tuple[Any, ...], tuple[int, int], tuple[int, ...]]:
        """The arguments of `run_network` that its weights make, how many actions and values, a workspace's sizes."""
        program = self._program
        widths = [_up(rows.channels) for rows in (program.observation, *(layer.target for layer in program.layers))]
        self._starts, num_tensors = _places(program, max(widths))
        steps = np.array([self._step(layer) for layer in program.layers], np.int64)
        policy, value = self._places_of(program.policy), self._places_of(program.value)
        tables, weights = np.concatenate(self._tables), np.concatenate(self._weights)
        arguments = steps, tables, weights, (self._starts[0], widths[0]), policy, value
        widest, taps = max(widths), max(int(step[7]) for step in steps)
        sizes = (
            num_tensors, self._num_spread, self._num_products, TILE * widest, max(16 * widest, ROWS * PANEL),
            max(6, ROWS * taps),
        )  # fmt: skip
        return arguments, (len(policy) - 1, len(value) - 1), sizes

    def _step(self, layer: TapLayer) -> PackedLayer:
        source, target = layer.source, layer.target
        source_width, width = _up(source.channels), _up(target.channels)
        taps, inputs = layer.weights.shape[:2]
        table, (height, board), tall, wide = 0, layer.image or (0, 0), 0, 0
        wanted = np.pad(layer.weights, ((0, 0), (0, 0), (0, width - target.channels)))
        if layer.image:
            tall, wide = tile_length(height), tile_length(board)
            packed = filters_at_points(np.pad(wanted, ((0, 0), (0, source_width - inputs), (0, 0))), tall, wide)
            tiles = -(-height // tall) * -(-board // wide) * POSITIONS
            self._num_spread = max(self._num_spread, tiles * len(packed) * source_width)
            self._num_products = max(self._num_products, (tiles + ROWS) * len(packed) * width)
            taps = 0
        else:
            packed = wanted.reshape(taps, inputs, width // PANEL, PANEL).transpose(2, 0, 1, 3)
            table = _add(self._tables, layer.cells)
        bias = np.pad(layer.bias, (0, width - target.channels))
        residual = -1 if layer.residual is None else self._starts[layer.residual.number]
        return PackedLayer(
            self._starts[source.number], self._starts[target.number], residual, target.cells, inputs, source_width,
            width, taps, table, _add(self._weights, packed), _add(self._weights, bias), layer.activation, height, board,
            tall, wide,
        )  # fmt: skip

    def _places_of(self, rows: Rows) -> np.ndarray:
        """`int64[n + 1, 2]`: place and width of the tensor, then cell and channel of each of its n numbers."""
        return np.array([(self._starts[rows.number], _up(rows.channels)), *rows.places()], np.int64)


def _add(arrays: list[np.ndarray], array: np.ndarray) -> int:
    """Adds an array to those that are one in the end; returns where it begins."""
    arrays.append(array.ravel())
    return sum(each.size for each in arrays[:-1])


def _places(program: LayerProgram, zeros: int) -> tuple[list[int], int]:
    """Where each tensor begins, and where all end; a tensor takes the place of one that is not needed any more.

    The observation and the answers keep theirs: the channels that fill up the observation stay zero.
    """
    tensors = program.observation, *(layer.target for layer in program.layers)
    size = max(rows.cells * _up(rows.channels) for rows in tensors) * POSITIONS
    last_use = {
        rows.number: i for i, layer in enumerate(program.layers) for rows in (layer.source, layer.residual) if rows
    } | dict.fromkeys((0, program.policy.number, program.value.number), len(program.layers))
    starts, free, end = list[int](), list[int](), zeros
    for number in range(len(tensors)):
        if not free:
            free, end = [end], end + size
        starts.append(free.pop())
        # layer `number` comes next, and what the one before needed last is free after it
        free += [starts[other] for other in range(number + 1) if last_use.get(other, -1) == number - 1]
    return starts, end


def filters_at_points(weights: np.ndarray, tall: int, wide: int) -> np.ndarray:
    """`float32[points, outputs / PANEL, inputs, PANEL]` of `float32[9, inputs, outputs]`, for tiles of that size.

    The nine are in rows, and so are the (tall + 2) (wide + 2) points. Inputs and outputs are multiples of PANEL.
    """
    inputs, outputs = weights.shape[1:]
    panels = np.ascontiguousarray(weights.reshape(9, inputs, outputs // PANEL, PANEL).swapaxes(1, 2), np.float32)
    filters = np.empty(((tall + 2) * (wide + 2), *panels.shape[1:]), np.float32)
    sides = matrices(tall).filters, matrices(wide).filters
    _transform(panels.reshape(9, -1), *sides, filters.reshape(len(filters), -1))
    return filters


def _up(channels: int) -> int:
    return -(-channels // PANEL) * PANEL


@kernel
def run_network(observations, steps, tables, weights, workspace, observed, policy, value, logits, values):
    """Writes `logits float32[n, A]` and `values float32[n, V]` of `observations float32[n, P, H W]`.

    `steps int64[L, ...]` are the layers, `tables int32[...]` and `weights float32[...]` theirs. `observed` is the place
    and the width of the observation's tensor. `policy int64[A + 1, 2]` has the place and the width of the policy's
    tensor, then the cell and the channel of each action; so has `value int64[V + 1, 2]`.
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
            for seat in range(values.shape[1]):
                row = value[seat + 1, 0] * count + i
                values[first + i, seat] = tensors[value[0, 0] + row * value[0, 1] + value[seat + 1, 1]]


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


_run = of_fixed_types(run_network)
_transform = of_fixed_types(transform_filters)
