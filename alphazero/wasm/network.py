"""A torch network as a `Program`: its graph of operations, with all that does not depend on the position computed."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from alphazero.errors import NetError
from alphazero.game import Game
from alphazero.nets.neural_net import NeuralNet
from alphazero.nets.torch_net import TorchNet
from alphazero.wasm.layers import CELLS, CHANNELS, NO_ACTIVATION, RELU, TANH, Layer, Program

OPERATIONS = ("conv2d", "conv_transpose2d", "linear", "relu", "tanh", "mul", "add")
RESHAPES = ("view", "flatten", "squeeze", "unsqueeze", "reshape", "clone", "contiguous", "alias", "dropout")


@dataclass(frozen=True)
class _Rows:
    """A tensor in the activations: a row of channels for each cell; after the last block of cells, a row of zeros."""

    start: int
    cells: int
    channels: int
    stored_channels: int
    shape: tuple[int, ...]
    """The tensor's shape without the batch; its numbers go channel by channel."""

    @property
    def zero_row(self) -> int:
        """The number of the row of zeros."""
        return _up(self.cells, CELLS)

    def place(self, index: int) -> int:
        """Where number `index` of the tensor is."""
        channel, cell = divmod(index, self.cells)
        return self.start + cell * self.stored_channels + channel


def program_of(net: NeuralNet, game: Game) -> Program:
    """The network's program; raises NetError for a network that is not of torch, or has an operation unknown here."""
    if not isinstance(net, TorchNet):
        raise NetError(f"a web page runs networks of torch alone, and this one is a {type(net).__name__}")
    module = net.frozen_float().cpu()
    example = torch.zeros(1, *game.observation_shape)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = torch.export.export(module, (example,))
    except Exception as error:  # torch raises many kinds
        reason = " ".join(str(error).split())[:200]
        raise NetError(
            f"torch cannot write down the operations of this network, so a web page cannot run it: {reason}"
        ) from error
    return _Writer().program(exported, game.observation_shape)


class _Writer:
    """Turns one graph into layers, in the order of the graph."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.weights: list[np.ndarray] = []
        self.num_weights = 0
        self.tables: dict[bytes, int] = {}
        """Where each list of cells is among all."""
        self.num_entries = 0
        self.num_activations = 0
        self.values: dict[Any, Any] = {}
        """The value of every node: its rows, or a tensor that does not depend on the position."""

    def program(self, exported: Any, shape: tuple[int, int, int]) -> Program:
        """The program of a graph that takes an observation and returns a policy and a value."""
        signature = exported.graph_signature
        names = signature.inputs_to_parameters | signature.inputs_to_buffers
        names |= signature.inputs_to_lifted_tensor_constants
        state = {**exported.constants, **exported.state_dict}
        planes = self._new_rows(shape)
        for node in exported.graph.nodes:
            if node.op == "placeholder":
                self.values[node] = state[names[node.name]].detach() if node.name in names else planes
            elif node.op == "call_function":
                self.values[node] = self._call(node)
            elif node.op == "output":
                policy, value = (self.values[part] for part in node.args[0])
        if not (isinstance(policy, _Rows) and isinstance(value, _Rows)):
            raise NetError("a web page cannot run this network: its policy or its value is the same in every position")
        places = [policy.place(action) for action in range(math.prod(policy.shape))]
        return Program(
            layers=tuple(self.layers), weights=np.concatenate(self.weights), num_activations=self.num_activations,
            tables=np.frombuffer(b"".join(self.tables), np.int32), num_planes=planes.stored_channels,
            policy_places=np.array(places, np.int32), value_place=value.place(0),
        )  # fmt: skip

    def _new_rows(self, shape: tuple[int, ...]) -> _Rows:
        channels, cells = shape[0], math.prod(shape[1:])
        rows = _Rows(self.num_activations, cells, channels, _up(channels, CHANNELS), shape)
        self.num_activations += (rows.zero_row + 1) * rows.stored_channels
        return rows

    def _call(self, node: Any) -> Any:
        """The value of one operation."""
        with_nodes = (node.args, node.kwargs)
        args, kwargs = torch.fx.node.map_arg(with_nodes, self.values.__getitem__)
        if not any(isinstance(self.values[source], _Rows) for source in node.all_input_nodes):
            return node.target(*args, **kwargs)
        name = str(node.target).removeprefix("aten.")
        if name.partition(".")[0] in RESHAPES and isinstance(args[0], _Rows):
            return replace(args[0], shape=tuple(node.meta["val"].shape[1:]))
        word = name.partition(".")[0].removesuffix("_")  # relu_ works in place
        if word not in OPERATIONS or kwargs or not isinstance(args[0], _Rows):
            raise _unknown(name)
        if name.startswith(f"{word}_.") and not self._is_alone(node.args[0]):
            raise _unknown(f"{name} on a tensor that is used again")
        return getattr(self, f"_{word}")(node, *args)

    # --- operations: the node, then the arguments as torch has them ---

    def _conv2d(self, node, x, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):  # type: ignore[no-untyped-def]
        if groups != 1 or isinstance(padding, str):
            raise _unknown("conv2d with groups or a named padding")
        height, width = _sides(x)
        shape = tuple(node.meta["val"].shape[1:])
        taps = list(itertools.product(range(weight.shape[2]), range(weight.shape[3])))
        lists = [
            [
                _cell(
                    row * stride[0] - padding[0] + i * dilation[0], column * stride[1] - padding[1] + j * dilation[1],
                    height, width,
                )
                for i, j in taps
            ]
            for row, column in itertools.product(range(shape[1]), range(shape[2]))
        ]  # fmt: skip
        return self._layer(x, lists, weight.permute(2, 3, 1, 0).flatten(0, 1), bias, shape)

    def _conv_transpose2d(self, node, x, weight, bias=None, stride=(1, 1), padding=(0, 0), *others):  # type: ignore[no-untyped-def]
        if tuple(stride) != (1, 1) or any(other not in (0, 1, [0, 0], [1, 1]) for other in others):
            raise _unknown("conv_transpose2d with a stride, groups or dilation")
        height, width = _sides(x)
        shape = tuple(node.meta["val"].shape[1:])
        taps = list(itertools.product(range(weight.shape[2]), range(weight.shape[3])))
        lists = [
            [_cell(row + padding[0] - i, column + padding[1] - j, height, width) for i, j in taps]
            for row, column in itertools.product(range(shape[1]), range(shape[2]))
        ]
        return self._layer(x, lists, weight.permute(2, 3, 0, 1).flatten(0, 1), bias, shape)

    def _linear(self, node, x, weight, bias=None):  # type: ignore[no-untyped-def]
        if len(x.shape) != 1:
            raise _unknown("linear for every cell")
        by_cell = weight.reshape(len(weight), x.channels, x.cells).permute(2, 1, 0)
        return self._layer(x, [list(range(x.cells))], by_cell, bias, tuple(node.meta["val"].shape[1:]))

    def _relu(self, node, x):  # type: ignore[no-untyped-def]
        return self._activated(node, x, RELU)

    def _tanh(self, node, x):  # type: ignore[no-untyped-def]
        return self._activated(node, x, TANH)

    def _mul(self, node, x, factor):  # type: ignore[no-untyped-def]
        if isinstance(factor, _Rows):
            raise _unknown("mul of two tensors that depend on the position")
        return self._scaled(x, _by_channel(factor, x), None)

    def _add(self, node, x, other):  # type: ignore[no-untyped-def]
        if not isinstance(other, _Rows):
            return self._scaled(x, torch.ones(x.channels), _by_channel(other, x))
        if replace(x, start=0) != replace(other, start=0):
            raise _unknown("add of tensors of different shapes")
        order = [self._index(rows) for rows in (x, other)]
        pairs = sorted(zip(order, node.args, (x, other), (other, x), strict=True), key=lambda pair: -pair[0])
        index, source, later, earlier = pairs[0]
        if index >= 0 and self._is_free(source) and self.layers[index].residual < 0:
            self.layers[index] = self.layers[index]._replace(residual=earlier.start)
            return later
        return self._scaled(x, torch.ones(x.channels), None, other.start)

    # --- layers ---

    def _index(self, rows: _Rows) -> int:
        """The number of the layer that computes these rows, -1 for the input."""
        return max((i for i, layer in enumerate(self.layers) if layer.target == rows.start), default=-1)

    def _is_free(self, node: Any) -> bool:
        """The node's value is a layer's sum without activation, which only one operation takes: that may join in."""
        index = self._index(self.values[node])
        return index >= 0 and self._is_alone(node) and self.layers[index].activation == NO_ACTIVATION

    def _is_alone(self, node: Any) -> bool:
        """Only one operation takes the node's rows, in whatever shape."""
        start = self.values[node].start
        known = [other for other, value in self.values.items() if isinstance(value, _Rows) and value.start == start]
        return all(len(other.users) == 1 for other in known)

    def _activated(self, node: Any, x: _Rows, activation: int) -> _Rows:
        if not self._is_free(node.args[0]):
            x = self._scaled(x, torch.ones(x.channels), None)
        index = self._index(x)
        self.layers[index] = self.layers[index]._replace(activation=activation)
        return x

    def _scaled(self, x: _Rows, factors: Tensor, bias: Tensor | None, residual: int = -1) -> _Rows:
        """A layer that multiplies each channel by its factor, and adds a bias and a residual."""
        made = self._layer(x, [[cell] for cell in range(x.cells)], torch.diag(factors)[None], bias, x.shape)
        self.layers[-1] = self.layers[-1]._replace(residual=residual)
        return made

    def _layer(
        self, x: _Rows, lists: list[list[int]], weight: Tensor, bias: Tensor | None, shape: tuple[int, ...]
    ) -> _Rows:
        """A new layer; `lists` has the input cells of each output cell, -1 outside of the board.

        `weight float32[taps, inputs, outputs]`; taps whose weights are all 0 are left out.
        """
        used = [tap for tap in range(len(weight)) if weight[tap].any()] or [0]
        made = self._new_rows((weight.shape[2], len(lists)))
        filled = lists + [[-1] * len(weight)] * (made.zero_row - len(lists))
        cells = [[x.zero_row if cells[tap] < 0 else cells[tap] for tap in used] for cells in filled]
        table = (np.array(cells, np.int32) * np.int32(x.stored_channels)).tobytes()
        if table not in self.tables:
            self.tables[table] = self.num_entries
            self.num_entries += len(table) // 4
        outputs = made.stored_channels
        packed = torch.zeros(len(used), x.channels, outputs)
        packed[..., : made.channels] = weight[used]
        packed = packed.reshape(len(used), x.channels, outputs // CHANNELS, CHANNELS).permute(2, 0, 1, 3)
        shift = torch.zeros(outputs)
        if bias is not None:
            shift[: made.channels] = bias
        layer = Layer(
            source=x.start, target=made.start, residual=-1, table=self.tables[table], taps=len(used),
            blocks=made.zero_row // CELLS, weights=self._add_weights(packed), bias=self._add_weights(shift),
            inputs=x.channels, outputs=outputs, activation=NO_ACTIVATION,
        )  # fmt: skip
        self.layers.append(layer)
        return replace(made, shape=shape)

    def _add_weights(self, weights: Tensor) -> int:
        start = self.num_weights
        self.weights.append(weights.float().flatten().numpy())
        self.num_weights += weights.numel()
        return start


def _sides(x: _Rows) -> tuple[int, int]:
    """Height and width of an image whose cells are the rows; raises NetError for a tensor of another shape."""
    if len(x.shape) != 3 or x.shape[0] != x.channels or math.prod(x.shape[1:]) != x.cells:
        raise _unknown("convolution after a change of shape")
    return x.shape[1], x.shape[2]


def _cell(row: int, column: int, height: int, width: int) -> int:
    """The number of a cell, -1 outside of the board."""
    return row * width + column if 0 <= row < height and 0 <= column < width else -1


def _by_channel(numbers: Any, x: _Rows) -> Tensor:
    """A constant's number for each channel of x."""
    whole = torch.as_tensor(numbers, dtype=torch.float32).broadcast_to(1, *x.shape).reshape(x.channels, x.cells)
    if (whole != whole[:, :1]).any():
        raise _unknown("a constant that differs from cell to cell")
    return whole[:, 0]


def _up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple


def _unknown(name: str) -> NetError:
    return NetError(
        f"a web page cannot run this network: it has the operation {name}, and the page knows convolutions, linear "
        "layers, additions, relu and tanh"
    )
