"""Convolutions that learn on the processor faster than torch's.

Where the processor has AMX, whose matrix units take 16 rows at a time, it is the gradients of filters. torch's library
(oneDNN) computes them from one row of a board at a time, 7 squares in Connect Four. Here several boards lie side by
side, with zeros between them, so that rows are long: 1.7 times as fast for 3x3 filters of 64 channels. The gradient of
a transposed convolution's filters is computed as that of the convolution from its output to its input.

In float32 it is 3x3 convolutions, by Winograd's method. y = back((filters g) * (into d)) is linear in g and in d. So
the gradient of d is a convolution of that of y with the filters turned round, and that of g is filters' ((into d) *
(back' of that of y)), where ' is a transpose.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from alphazero.game.kernels import kernel, of_fixed_types
from alphazero.nets.kernels.winograd import filters_at_points
from alphazero.nets.kernels.winograd_kernels import (
    LEARNED,
    PANEL,
    ROWS,
    TILE,
    add_gradients,
    convolve_boards,
    has_fma,
    matrices,
    tile_length,
)

BOARDS = 4
"""Boards side by side; the best of 2, 4, 8, ..., 512 (docs/log.md)."""
ARGUMENTS = {
    torch.conv2d: ["input", "weight", "bias", "stride", "padding", "dilation", "groups"],
    torch.conv_transpose2d: ["input", "weight", "bias", "stride", "padding", "output_padding", "groups", "dilation"],
}
"""The names of torch's arguments, in its order."""

_convolve, _add_gradients = of_fixed_types(convolve_boards), of_fixed_types(add_gradients)


class Convolutions(TorchFunctionMode):
    """While a thread has entered it, convolutions are those of a function.

    It gets `x [n, C, H, W]`, the weight, the bias or None, the padding, and whether it is transposed; stride, dilation
    and groups are 1. It gives None where torch is to compute the convolution.
    """

    def __init__(self, convolve: Callable[..., Tensor | None]):
        super().__init__()
        self._convolve = convolve

    def __torch_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        named, found = kwargs or {}, None
        if function in ARGUMENTS:
            given = {**dict(zip(ARGUMENTS[function], args, strict=False)), **named}
            found = self._compute(function is torch.conv_transpose2d, **given)
        return function(*args, **named) if found is None else found

    def _compute(
        self, transposed: bool, input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Tensor | None:  # fmt: skip
        if input.ndim != 4 or (pair(stride), pair(dilation), groups) != ([1, 1], [1, 1], 1):
            return None
        padding = padding if isinstance(padding, str) else pair(padding)
        if transposed and any([*padding, *pair(output_padding)]):
            return None
        return self._convolve(input, weight, bias, padding, transposed)


def pair(number: int | Sequence[int]) -> list[int]:
    """The numbers for height and width; a single one, also in a list, is for both."""
    numbers = [*number] if isinstance(number, Sequence) else [number]
    return numbers * 2 if len(numbers) == 1 else numbers


def fastest(dtype: torch.dtype) -> Callable[..., Tensor | None] | None:
    """The convolutions for a processor that learns in that type; None: torch's."""
    if dtype == torch.bfloat16:
        return side_by_side
    return by_winograd if hasattr(convolve_boards, "compile") and has_fma() else None


def compile_convolutions(dtype: torch.dtype) -> None:
    """Compiles the kernels, or finds them on disk, before a run's clock starts."""
    board = torch.zeros(BOARDS, PANEL, 1, 1)
    if fastest(dtype) is side_by_side:
        _side_by_side(board, 1, BOARDS)
    elif fastest(dtype) is by_winograd:
        convolved(board, torch.zeros(PANEL, PANEL, 3, 3))
        gradient_by_winograd(board, board)


# --- bf16 ---


def side_by_side(
    x: Tensor, weight: Tensor, bias: Tensor | None, padding: list[int] | str, transposed: bool
) -> Tensor | None:
    """Convolutions that autocast computes in bf16."""
    reduced = torch.is_autocast_enabled("cpu") and torch.float64 not in (x.dtype, weight.dtype)
    if not reduced or isinstance(padding, str):
        return None
    found: Tensor = SideBySideConvolution.apply(x, weight, bias, padding, transposed)
    return found


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
    found: Tensor = _gradients(outputs, inputs, weight, padding, False, [False, True, False])[1]
    if count < len(x):
        found = found + _gradients(gradient[count:], x[count:], weight, padding, False, [False, True, False])[1]
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


# --- float32 ---


def by_winograd(
    x: Tensor, weight: Tensor, bias: Tensor | None, padding: list[int] | str, transposed: bool
) -> Tensor | None:
    """3x3 convolutions of float32 that keep height and width; wrong shapes get torch's own sentence."""
    in_float32 = x.dtype == weight.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    in_panels = not any(channels % PANEL for channels in weight.shape[:2])
    is_valid = weight.shape[1:] == (*x.shape[1:2], 3, 3) and (bias is None or bias.shape == weight.shape[:1])
    if transposed or padding not in ("same", [1, 1]) or not (in_float32 and in_panels and is_valid) or x.is_cuda:
        return None
    result: Tensor = WinogradConvolution.apply(x, weight)
    return result if bias is None else result + bias[:, None, None]


class WinogradConvolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return convolved(x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        to_x = to_weight = None
        if ctx.needs_input_grad[0]:
            to_x = convolved(gradient, weight.flip(2, 3).transpose(0, 1))
        if ctx.needs_input_grad[1]:
            to_weight = gradient_by_winograd(x, gradient)
        return to_x, to_weight


def convolved(x: Tensor, weight: Tensor) -> Tensor:
    """`[n, O, H, W]` of `x float32[n, I, H, W]` and `weight float32[O, I, 3, 3]`, in the memory layout of torch's."""
    count, inputs, height, width = x.shape
    outputs = len(weight)
    board = height, width, tile_length(height), tile_length(width)
    filters = filters_at_points(weight.permute(2, 3, 1, 0).reshape(9, inputs, outputs).numpy(), *board[2:])
    # no view, since autograd lets nothing change one in place
    results = torch.empty(count, outputs, height, width, memory_format=torch.channels_last)
    cells = results.permute(0, 2, 3, 1).view(count, height * width, outputs).numpy()
    _convolve(_cells(x), filters.reshape(-1), board, _workspace(inputs, outputs, *board), cells)
    last = any(tensor.is_contiguous(memory_format=torch.channels_last) for tensor in (x, weight))
    return results if last else results.contiguous()


def gradient_by_winograd(x: Tensor, gradient: Tensor) -> Tensor:
    """`float32[O, I, 3, 3]` for what was convolved, `x float32[n, I, H, W]`, and `gradient float32[n, O, H, W]`."""
    _, inputs, height, width = x.shape
    outputs = gradient.shape[1]
    tall, wide = tile_length(height), tile_length(width)
    to_points = np.kron(matrices(tall).filters, matrices(wide).filters).astype(np.float32)
    at_points = np.zeros((len(to_points), inputs * outputs), np.float32)
    workspace = _workspace(inputs, outputs, height, width, tall, wide)
    _add_gradients(_cells(x), _cells(gradient), (height, width, tall, wide), workspace, at_points.reshape(-1))
    found = torch.from_numpy(to_points).mT @ torch.from_numpy(at_points)
    return found.view(3, 3, inputs, outputs).permute(3, 2, 0, 1)


def _cells(boards: Tensor) -> np.ndarray:
    """`float32[n, cells, C]`: the same memory if the channels are last there."""
    count, channels, height, width = boards.shape
    cells: np.ndarray = boards.permute(0, 2, 3, 1).reshape(count, height * width, channels).contiguous().numpy()
    return cells


_local = threading.local()


def _workspace(inputs: int, outputs: int, *board: int) -> tuple[np.ndarray, ...]:
    """This thread's memory for `convolve_boards`."""
    made, (height, width, tall, wide) = vars(_local), board
    name = f"{inputs, outputs, board}"
    if name not in made:
        rows, points = -(-height // tall) * -(-width // wide) * LEARNED + ROWS, (tall + 2) * (wide + 2)
        sizes = (
            (height * width + 1) * max(inputs, outputs), rows * points * inputs, rows * points * outputs,
            TILE * max(inputs, outputs), tall * wide * outputs,
        )  # fmt: skip
        made[name] = (*(np.zeros(size, np.float32) for size in sizes), np.zeros(6, np.int64))
    found: tuple[np.ndarray, ...] = made[name]
    return found
