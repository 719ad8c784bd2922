"""A torch network as a list of layers of one kind: its operations, with all that does not depend on the position
computed.

Every layer is a sum over taps: output cell o has a list of input cells, one for each tap, and channel j of it is

    bias[j] + sum over taps t and channels i of weights[t, i, j] x input[cell(o, t), i]

Convolutions of any size, transposed convolutions, filters along lines and fully connected layers differ in their lists
alone. Then a residual may be added, and relu or tanh.
"""

from __future__ import annotations

import collections
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map_only

from alphazero.errors import NetError
from alphazero.nets.any_module import Answers, Watch, answers_as, forward

OPERATIONS = ("convolution", "native_batch_norm", "addmm", "mm", "mul", "add")
RESHAPES = ("view", "_unsafe_view", "squeeze", "unsqueeze", "clone", "alias", "detach")
NO_ACTIVATION, RELU, TANH = range(3)
ACTIVATIONS = {"relu": RELU, "tanh": TANH}


@dataclass(frozen=True)
class Rows:
    """A tensor of one position: a row of channels for each cell."""

    number: int
    """0 is the observation; each layer makes the next one."""
    cells: int
    channels: int
    shape: tuple[int, ...]
    """The tensor's shape without the batch; its numbers go channel by channel."""
    chosen: tuple[int, ...] = ()
    """If not empty, the tensor has only these of the numbers, in this order."""

    def places(self) -> list[tuple[int, int]]:
        """The cell and the channel of each number of the tensor."""
        return [divmod(i, self.cells)[::-1] for i in self.chosen or range(self.cells * self.channels)]


@dataclass(frozen=True)
class TapLayer:
    """One layer; see the module."""

    source: Rows
    target: Rows
    cells: np.ndarray
    """`int32[output cells, taps]`: the input cells; -1 is outside of the board, where all is zero."""
    weights: np.ndarray
    """`float32[taps, inputs, outputs]`."""
    bias: np.ndarray
    """`float32[outputs]`."""
    image: tuple[int, int] | None
    """Height and width where the layer is a 3x3 convolution that keeps them, with its taps in rows."""
    residual: Rows | None = None
    activation: int = NO_ACTIVATION


@dataclass(frozen=True)
class LayerProgram:
    """A network: all layers in their order."""

    layers: tuple[TapLayer, ...]
    observation: Rows
    policy: Rows
    value: Rows

    def answer(self, observation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`logits float64[A]` and `values float64[V]` of `observation float32[P, H, W]`: the plain way, as defined."""
        tensors = [observation.reshape(len(observation), -1).T.astype(np.float64)]
        for layer in self.layers:
            source = np.vstack([tensors[layer.source.number], np.zeros(layer.source.channels)])  # -1 is the last row
            sums = np.einsum("oti,tij->oj", source[layer.cells], layer.weights, optimize=True) + layer.bias
            if layer.residual is not None:
                sums += tensors[layer.residual.number]
            tensors.append([sums, np.maximum(sums, 0), np.tanh(sums)][layer.activation])
        logits, values = ([tensors[rows.number][at] for at in rows.places()] for rows in (self.policy, self.value))
        return np.array(logits), np.array(values)


@dataclass(frozen=True)
class _Value:
    """A tensor that depends on the observation: number 0, or the result of an operation, from 1 on."""

    number: int


_Operation = tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]
"""One operation of torch, as `relu.default`: its arguments with values in place of tensors that depend on the
observation, and the shape of its result, or of the first one, with the batch of one position."""


@torch.inference_mode(False)  # in which torch has whole operations for several of ours
@torch.no_grad()
def layers_of(module: nn.Module, shape: tuple[int, int, int]) -> LayerProgram:
    """The layers of a module on the processor, for observations of that shape; raises NetError if there are none."""
    observation = torch.zeros(1, *shape)
    operations = list[_Operation]()
    # with the tensors, so that no other gets the number of one
    seen = {id(observation): (_Value(0), observation)}

    def value_of(tensor: Tensor) -> Any:
        return seen.get(id(tensor), (tensor, tensor))[0]

    def note(operation: Any, args: Any, named: Any, answer: Any) -> None:
        args, named = tree_map_only(Tensor, value_of, (args, named))
        if any(isinstance(part, _Value) for part in tree_leaves((args, named))):
            tensors = [part for part in tree_leaves(answer) if isinstance(part, Tensor)]
            whole = tuple(tensors[0].shape) if tensors else ()
            operations.append((str(operation).removeprefix("aten."), args, named, whole))
            seen.update({id(tensor): (_Value(len(operations)), tensor) for tensor in tensors})

    with Watch(note):
        outputs = [value_of(output) for output in forward(module, observation)]
    if not all(isinstance(output, _Value) for output in outputs):
        raise NetError("its policy or its value is the same in every position")
    return _LayerWriter(operations, outputs).program(shape)


def check_layers(module: nn.Module, shape: tuple[int, int, int]) -> None:
    """Raises NetError unless the layers answer as the module does, which may compute outside of torch."""

    def answer(module: nn.Module, observations: np.ndarray) -> Answers:
        logits, values = zip(*map(layers_of(module, shape).answer, observations), strict=True)
        rows = np.stack(values)
        return np.stack(logits), rows[:, 0] if rows.shape[1] == 1 else rows

    if not answers_as(module, shape, answer):
        raise NetError("it computes something outside of torch, or at random")


class _LayerWriter:
    """Turns operations into layers, in their order."""

    def __init__(self, operations: list[_Operation], outputs: list[_Value]):
        self.operations, self.outputs = operations, outputs
        self.layers: list[TapLayer] = []
        self.values: list[Rows] = []
        """The rows of every value."""
        used = [value for _, args, named, _ in operations for value in tree_leaves((args, named))]
        self.users = collections.Counter(value for value in (*used, *outputs) if isinstance(value, _Value))

    def program(self, shape: tuple[int, int, int]) -> LayerProgram:
        self.values.append(Rows(0, math.prod(shape[1:]), shape[0], shape))
        for operation in self.operations:
            self.values.append(self._call(operation))
        policy, value = (self.values[output.number] for output in self.outputs)
        return LayerProgram(tuple(self.layers), self.values[0], policy, value)

    def _call(self, operation: _Operation) -> Rows:
        """The rows of the operation's result."""
        name, args, kwargs, whole = operation
        word, shape = name.partition(".")[0], whole[1:]
        if word in RESHAPES and isinstance(args[0], _Value) and whole[:1] == (1,):
            return replace(self.values[args[0].number], shape=shape)
        if word == "index_select" and isinstance(args[0], _Value) and isinstance(args[2], Tensor):
            x = self.values[args[0].number]
            if len(x.shape) == len(shape) == 1 and not x.chosen:
                return replace(x, shape=shape, chosen=tuple(args[2].tolist()))
        plain = word.removesuffix("_")  # relu_ works in place
        if plain in ("mul", "add") and not isinstance(args[0], _Value):
            args = args[::-1]
        if plain == "addmm":
            args = (*args[1:], args[0])  # torch has the bias first
        if plain not in (*OPERATIONS, *ACTIVATIONS) or kwargs or not isinstance(args[0], _Value):
            raise _unknown(name)
        if word != plain and not self._is_alone(args[0]):
            raise _unknown(f"{name} on a tensor that is used again")
        operands = [self.values[arg.number] if isinstance(arg, _Value) else arg for arg in args]
        if any(isinstance(x, Rows) and x.chosen for x in operands):
            raise _unknown(f"{name} on some numbers of a tensor")
        if plain in ACTIVATIONS:
            x = operands[0] if self._is_free(args[0]) else self._scaled(operands[0], torch.ones(operands[0].channels))
            self.layers[x.number - 1] = replace(self.layers[x.number - 1], activation=ACTIVATIONS[plain])
            return x
        try:
            return getattr(self, f"_{plain}")(args, shape, *operands)  # type: ignore[no-any-return]
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            raise _unknown(f"{name} of another form") from error

    # --- operations: the arguments with values, the result's shape, then the arguments with rows as torch has them.
    # What has another form ends in an error here, or is found by `check_layers`. ---

    def _convolution(self, args, shape, x, weight, bias, stride, padding, dilation, transposed, extra, groups):  # type: ignore[no-untyped-def]
        _, height, width = x.shape
        tall, wide = weight.shape[2:]
        stride, padding, dilation = (list(sizes) * (2 // len(sizes)) for sizes in (stride, padding, dilation))
        if transposed:
            weight = weight.transpose(0, 1).flip(2, 3)
            padding = [tall - 1 - padding[0], wide - 1 - padding[1]]
        numbers = torch.arange(1.0, x.cells + 1).view(1, 1, height, width)  # 0 is outside of the board
        taps = nn.functional.unfold(numbers, (tall, wide), dilation, padding, stride)[0]
        same = (tall, wide) == (3, 3) and padding == dilation == stride == [1, 1]
        image = (height, width) if same else None
        return self._layer(x, taps.T.int() - 1, weight.permute(2, 3, 1, 0).flatten(0, 1), bias, shape, image)

    def _native_batch_norm(self, args, shape, x, weight, bias, mean, variance, learns, momentum, epsilon):  # type: ignore[no-untyped-def]
        factors = (variance + epsilon).rsqrt() * (1.0 if weight is None else weight)
        return self._scaled(x, factors, (0.0 if bias is None else bias) - mean * factors)

    def _addmm(self, args, shape, x, weight, bias=None):  # type: ignore[no-untyped-def]
        by_cell = weight.reshape(x.channels, x.cells, -1).transpose(0, 1)
        return self._layer(x, torch.arange(x.cells)[None], by_cell, bias, shape)

    _mm = _addmm

    def _mul(self, args, shape, x, factor):  # type: ignore[no-untyped-def]
        return self._scaled(x, _by_channel(factor, x))

    def _add(self, args, shape, x, other):  # type: ignore[no-untyped-def]
        if not isinstance(other, Rows):
            return self._scaled(x, torch.ones(x.channels), _by_channel(other, x))
        if replace(x, number=0) != replace(other, number=0):
            raise ValueError("tensors of different shapes")
        source, later, earlier = (args[0], x, other) if x.number >= other.number else (args[1], other, x)
        if self._is_free(source) and self.layers[later.number - 1].residual is None:
            self.layers[later.number - 1] = replace(self.layers[later.number - 1], residual=earlier)
            return later
        return self._scaled(x, torch.ones(x.channels), None, other)

    # --- layers ---

    def _is_free(self, value: _Value) -> bool:
        """The value is a layer's sum without activation, which only one operation takes: that may join in."""
        index = self.values[value.number].number - 1
        return index >= 0 and self._is_alone(value) and self.layers[index].activation == NO_ACTIVATION

    def _is_alone(self, value: _Value) -> bool:
        """Only one operation takes the value's rows, in whatever shape."""
        rows = self.values[value.number].number
        return all(self.users[_Value(i)] == 1 for i, other in enumerate(self.values) if other.number == rows)

    def _scaled(self, x: Rows, factors: Tensor, bias: Tensor | None = None, residual: Rows | None = None) -> Rows:
        """A layer that multiplies each channel by its factor, and adds a bias and a residual."""
        made = self._layer(x, torch.arange(x.cells)[:, None], torch.diag(factors)[None], bias, x.shape)
        self.layers[-1] = replace(self.layers[-1], residual=residual)
        return made

    def _layer(
        self, x: Rows, cells: Tensor, weight: Tensor, bias: Tensor | None, shape: tuple[int, ...],
        image: tuple[int, int] | None = None,
    ) -> Rows:  # fmt: skip
        """A new layer; taps whose weights are all 0 are left out, except in an `image`."""
        used = [tap for tap in range(len(weight)) if image or weight[tap].any()] or [0]
        made = Rows(len(self.layers) + 1, len(cells), weight.shape[2], shape)
        shift = torch.zeros(made.channels) if bias is None else bias
        fits = weight.shape[:2] == (cells.shape[1], x.channels) and shift.shape == (made.channels,)
        if not fits or math.prod(shape) != made.cells * made.channels:
            raise ValueError("it is another sum")
        layer = TapLayer(
            source=x, target=made, cells=np.ascontiguousarray(cells[:, used].int().numpy()),
            weights=np.ascontiguousarray(weight[used].float().numpy()), bias=shift.float().numpy(), image=image,
        )  # fmt: skip
        self.layers.append(layer)
        return made


def _by_channel(numbers: Any, x: Rows) -> Tensor:
    """A constant's number for each channel of x; `check_layers` tries others than those of now, which may be alike."""
    whole = torch.as_tensor(numbers, dtype=torch.float32).broadcast_to(1, *x.shape).reshape(x.channels, x.cells)
    if (whole != whole[:, :1]).any():
        raise _unknown("a constant that differs from cell to cell")
    return whole[:, 0]


def _unknown(name: str) -> NetError:
    return NetError(
        f"it has the operation {name}, and only convolutions, linear layers, batch norms, additions, relu and tanh "
        "are known"
    )
