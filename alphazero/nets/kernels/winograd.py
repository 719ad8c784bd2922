"""`WinogradInference`: a torch module's answers, computed by our own kernels on the processor.

Libraries multiply in 3x3 convolutions of float32 as the definition says. Winograd's method does it with a third of the
multiplications: about twice as fast where the processor has no instructions for bf16 (docs/log.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from alphazero.errors import NetError
from alphazero.game.kernels import of_fixed_types
from alphazero.nets.any_module import CannotConvert
from alphazero.nets.kernels.layer_kernels import POSITIONS, PackedLayer, Workspace, run_network
from alphazero.nets.kernels.layer_program import LayerProgram, Rows, TapLayer, check_layers, layers_of
from alphazero.nets.kernels.winograd_kernels import (
    PANEL,
    ROWS,
    TILE,
    has_fma,
    matrices,
    tile_length,
    transform_filters,
)

_run = of_fixed_types(run_network)
_transform = of_fixed_types(transform_filters)


class WinogradInference:
    """Answers by our own kernels; those to a position are the same in every batch, bit for bit."""

    name: ClassVar[str] = "winograd"

    def __init__(self, module: nn.Module, example: Tensor, bf16: bool = False):
        """`example float32[n, P, H, W]`; numbers are float32 also with `bf16`. Raises CannotConvert."""
        if not hasattr(run_network, "compile") or not has_fma():
            raise CannotConvert("our own kernels are slow without numba, and on a processor without FMA")
        _, planes, height, width = example.shape
        self._shape = planes, height, width
        self._ask(check_layers, module)
        self.set_weights(module)

    def set_weights(self, module: nn.Module) -> None:
        self._network = _Packer(self._ask(layers_of, module)).network()
        self._idle: list[Workspace] = []
        """Memory that no thread uses now; taps without weights are left out, so other weights can need more."""

    def __call__(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        arguments, num_actions, sizes = self._network
        try:
            workspace = self._idle.pop()
        except IndexError:
            workspace = Workspace._make(
                [*(np.zeros(size, np.float32) for size in sizes[:-1]), np.zeros(sizes[-1], np.int64)]
            )
        logits = np.empty((len(observations), num_actions), np.float32)
        values = np.empty(len(observations), np.float32)
        planes, height, width = self._shape
        cells = np.ascontiguousarray(observations, np.float32).reshape(len(observations), planes, height * width)
        steps, tables, weights, *places = arguments
        _run(cells, steps, tables, weights, workspace, *places, logits, values)
        self._idle.append(workspace)
        return logits, values

    def _ask(self, function: Callable[[nn.Module, tuple[int, int, int]], Any], module: nn.Module) -> Any:
        """The function's answer about the module; raises CannotConvert."""
        try:
            return function(module, self._shape)
        except NetError as error:
            raise CannotConvert(f"our own kernels cannot answer for {type(module).__name__}: {error}") from error


class _Packer:
    """Gives the tensors and the weights of a program their places."""

    def __init__(self, program: LayerProgram):
        self._program = program
        self._tables, self._weights = [np.zeros(1, np.int32)], list[np.ndarray]()
        self._num_spread = self._num_products = 1

    def network(self) -> tuple[tuple[Any, ...], int, tuple[int, ...]]:
        """The arguments of `run_network` that its weights make, the number of actions, the sizes of a workspace."""
        program = self._program
        widths = [_up(rows.channels) for rows in (program.observation, *(layer.target for layer in program.layers))]
        self._starts, num_tensors = _places(program, max(widths))
        steps = np.array([self._step(layer) for layer in program.layers], np.int64)
        policy, value = self._places_of(program.policy), self._places_of(program.value, 1)
        tables, weights = np.concatenate(self._tables), np.concatenate(self._weights)
        arguments = steps, tables, weights, (self._starts[0], widths[0]), policy, value
        widest, taps = max(widths), max(int(step[7]) for step in steps)
        sizes = (
            num_tensors, self._num_spread, self._num_products, TILE * widest, max(16 * widest, ROWS * PANEL),
            max(6, ROWS * taps),
        )  # fmt: skip
        return arguments, len(policy) - 1, sizes

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

    def _places_of(self, rows: Rows, count: int | None = None) -> np.ndarray:
        """`int64[count + 1, 2]`: place and width of the tensor, then cell and channel of each of its first numbers."""
        numbers = range(rows.cells * rows.channels if count is None else count)
        return np.array([(self._starts[rows.number], _up(rows.channels)), *map(rows.place, numbers)], np.int64)


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
