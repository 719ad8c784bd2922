"""Gradients of filters, faster on processors with AMX, whose matrix units take 16 rows at a time.

torch's library (oneDNN) computes them from one row of a board at a time, 7 squares in Connect Four. Here several boards
lie side by side, with zeros between them, so that rows are long: 1.7 times as fast for 3x3 filters of 64 channels. The
gradient of a transposed convolution's filters is computed as that of the convolution from its output to its input.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from alphazero.game.kernels import kernel, of_fixed_types

BOARDS = 4
"""Boards side by side; the best of 2, 4, 8, ..., 512 (docs/log.md)."""


class ConvolutionMode(TorchFunctionMode):
    """While a thread has entered it, convolutions are those that `convolve` computes."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        found = None
        if function in (torch.conv2d, torch.conv_transpose2d):
            transposed = function is torch.conv_transpose2d
            found = self._convolve_plain(transposed, *args, **(kwargs or {}))
        return function(*args, **(kwargs or {})) if found is None else found

    def _convolve_plain(
        self, transposed: bool, input: Tensor, weight: Tensor, bias: Tensor | None = None, *others: Any, **named: Any
    ) -> Tensor | None:
        """The arguments have torch's names, by which they may be given."""
        names = "stride padding output_padding groups dilation" if transposed else "stride padding dilation groups"
        given = dict(zip(names.split(), others, strict=False)) | named
        padding = given.get("padding", 0)
        padding = padding if isinstance(padding, str) else pair(padding)
        stride, dilation = (pair(given.get(name, 1)) for name in ("stride", "dilation"))
        if input.ndim != 4 or (stride, dilation, given.get("groups", 1)) != ([1, 1], [1, 1], 1):
            return None
        if transposed and any([*padding, *pair(given.get("output_padding", 0))]):
            return None
        return self.convolve(input, weight, bias, padding, transposed)

    @abstractmethod
    def convolve(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, padding: list[int] | str, transposed: bool
    ) -> Tensor | None:
        """The convolution of `x [n, C, H, W]` with stride, dilation and groups of 1; None where torch computes it."""


class FastWeightGradients(ConvolutionMode):
    """Convolutions that autocast computes in bf16 have the gradients of this module."""

    def convolve(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, padding: list[int] | str, transposed: bool
    ) -> Tensor | None:
        reduced = torch.is_autocast_enabled("cpu") and torch.float64 not in (x.dtype, weight.dtype)
        if not reduced or isinstance(padding, str):
            return None
        found: Tensor = SideBySideConvolution.apply(x, weight, bias, padding, transposed)
        return found


def compile_side_by_side() -> None:
    """Compiles what lays boards side by side, or finds it on disk, before a run's clock starts."""
    _side_by_side(torch.zeros(BOARDS, 1, 1, 1), 1, BOARDS)


def pair(number: int | Sequence[int]) -> list[int]:
    """The numbers for height and width; a single one, also in a list, is for both."""
    numbers = [*number] if isinstance(number, Sequence) else [number]
    return numbers * 2 if len(numbers) == 1 else numbers


class SideBySideConvolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, padding: list[int], transposed: bool
    ) -> Tensor:
        x, weight = x.to(torch.bfloat16), weight.to(torch.bfloat16)
        bias = None if bias is None else bias.to(torch.bfloat16)
        ctx.save_for_backward(x, weight)
        ctx.padding, ctx.transposed = padding, transposed
        return torch.convolution(x, weight, bias, [1, 1], padding, [1, 1], transposed, [0, 0], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        to_x = to_weight = to_bias = None
        if ctx.needs_input_grad[0]:
            to_x = _gradients(gradient, x, weight, ctx.padding, ctx.transposed, [True, False, False])[0]
        if ctx.needs_input_grad[1]:
            # a transposed convolution is the convolution of its output to its input
            large, small = (gradient, x) if ctx.transposed else (x, gradient)
            to_weight = gradient_of_filters(large, small, weight, ctx.padding)
        if ctx.needs_input_grad[2]:
            to_bias = gradient.sum((0, 2, 3))
        return to_x, to_weight, to_bias, None, None


def gradient_of_filters(x: Tensor, gradient: Tensor, weight: Tensor, padding: Sequence[int]) -> Tensor:
    """The gradient of the filters `weight [O, I, h, w]` of a convolution, of which only the shape counts.

    `x [n, I, H, W]` is its input, `gradient [n, O, H', W']` that of its output; `padding` is of height and width.
    """
    if weight.shape[2:] == (1, 1) and not any(padding):
        rows, outputs = (a.permute(0, 2, 3, 1).reshape(-1, a.shape[1]) for a in (x, gradient))
        return (outputs.mT @ rows)[:, :, None, None]
    count = len(x) // BOARDS * BOARDS
    # windows that hold squares of two boards have no output, so their gradient is zero
    pitch = max(x.shape[3] + padding[1], gradient.shape[3])
    width = BOARDS * pitch
    inputs = _side_by_side(x[:count], pitch, width)
    outputs = _side_by_side(gradient[:count], pitch, width + 2 * padding[1] - weight.shape[3] + 1)
    found = _gradient(inputs, outputs, weight, padding)
    return found if count == len(x) else found + _gradient(x[count:], gradient[count:], weight, padding)


def _gradient(x: Tensor, gradient: Tensor, weight: Tensor, padding: Sequence[int]) -> Tensor:
    found: Tensor = _gradients(gradient, x, weight, padding, False, [False, True, False])[1]
    return found


def _gradients(
    gradient: Tensor, x: Tensor, weight: Tensor, padding: Sequence[int], transposed: bool, wanted: list[bool]
) -> Any:
    """torch's own gradients of a convolution's input, filters and biases, as far as `wanted`."""
    # `default` is the name of the only overload, which torch need not look for
    return torch.ops.aten.convolution_backward.default(
        gradient, x, weight, None, [1, 1], padding, [1, 1], transposed, [0, 0], 1, wanted
    )


def _side_by_side(boards: Tensor, pitch: int, width: int) -> Tensor:
    """`[n, C, H, W]` as `[n / BOARDS, C, H, width]`, a board every `pitch` columns, and zeros."""
    count, channels, height, _ = boards.shape
    joined = boards.new_empty(count // BOARDS, height, width, channels)
    _fill(_bytes(boards), pitch * channels * boards.element_size(), _bytes(joined.permute(0, 3, 1, 2)))
    return joined.permute(0, 3, 1, 2)


def _bytes(boards: Tensor) -> np.ndarray:
    """`[n, C, H, W]` as `uint8[n, H, bytes of a row]`: the same memory if the channels are last there."""
    return boards.permute(0, 2, 3, 1).flatten(2).contiguous().view(torch.uint8).numpy()


@kernel
def fill_side_by_side(boards, pitch, joined):
    """Copies boards `uint8[n, H, bytes]` into the rows of `joined uint8[n / BOARDS, H, more bytes]`.

    One begins `pitch` bytes after the other; between them are zeros.
    """
    for group in range(joined.shape[0]):
        for row in range(joined.shape[1]):
            line = joined[group, row]
            line[:] = 0
            for i in range(BOARDS):
                board = boards[group * BOARDS + i, row]
                place = line[i * pitch : i * pitch + board.size]
                for j in range(place.size):
                    place[j] = board[j]


_fill = of_fixed_types(fill_side_by_side)
