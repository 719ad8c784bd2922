"""3x3 convolutions of float32 that learn, by Winograd's method; torch's library multiplies by the definition.

y = back((filters g) * (into d)) is linear in g and in d. So the gradient of d is a convolution of that of y with the
filters turned round, and that of g is filters' ((into d) * (back' of that of y)), where ' is a transpose.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from alphazero.game.kernels import of_fixed_types
from alphazero.nets.kernels.tiles import matrices, tile_length
from alphazero.nets.kernels.vector_code import PANEL, ROWS, has_fma
from alphazero.nets.kernels.winograd import filters_at_points
from alphazero.nets.kernels.winograd_kernels import LEARNED, TILE, add_gradients, convolve_boards
from alphazero.nets.weight_gradients import PLAIN, pair

_convolve, _add_gradients = of_fixed_types(convolve_boards), of_fixed_types(add_gradients)


def are_fast() -> bool:
    """The kernels are compiled, for a processor that they suit."""
    return hasattr(convolve_boards, "compile") and has_fma()


class WinogradConvolutions(TorchFunctionMode):
    """While a thread has entered it, 3x3 convolutions of float32 on the processor are those of this module."""

    def __torch_function__(
        self, function: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        found = _arguments(*args, **(kwargs or {})) if function is torch.conv2d else None
        if found is None:
            return function(*args, **(kwargs or {}))
        x, weight, bias = found
        result = _Convolution.apply(x, weight)
        return result if bias is None else result + bias[:, None, None]


def compile_convolutions() -> None:
    """Compiles the kernels, or finds them on disk, before a run's clock starts."""
    board = torch.zeros(1, PANEL, 1, 1)
    convolved(board, torch.zeros(PANEL, PANEL, 3, 3))
    gradient_of_filters(board, board)


def _arguments(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *others: Any, **named: Any
) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """Input, filters and biases, if it is a convolution of the kind that is computed here.

    The arguments have torch's names, by which they may be given.
    """
    given = dict(zip(["stride", "padding", "dilation", "groups"], others, strict=False)) | named
    padding = given.get("padding", 0)
    if (
        input.dtype == weight.dtype == torch.float32
        and input.shape[1:2] == weight.shape[1:2]
        and (bias is None or bias.shape == weight.shape[:1])
        and input.device.type == "cpu"
        and not torch.is_autocast_enabled("cpu")
        and input.ndim == 4
        and weight.shape[2:] == (3, 3)
        and not any(channels % PANEL for channels in weight.shape[:2])
        and (pair(given.get("stride", 1)), pair(given.get("dilation", 1)), given.get("groups", 1)) == PLAIN
        and (padding == "same" or (not isinstance(padding, str) and pair(padding) == [1, 1]))
    ):
        return input, weight, bias
    return None


class _Convolution(torch.autograd.Function):
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
            to_weight = gradient_of_filters(x, gradient)
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


def gradient_of_filters(x: Tensor, gradient: Tensor) -> Tensor:
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
    if not hasattr(_local, "make"):
        _local.make = functools.lru_cache(maxsize=8)(_new_workspace)
    made: tuple[np.ndarray, ...] = _local.make(inputs, outputs, *board)
    return made


def _new_workspace(inputs: int, outputs: int, height: int, width: int, tall: int, wide: int) -> tuple[np.ndarray, ...]:
    rows, points = -(-height // tall) * -(-width // wide) * LEARNED + ROWS, (tall + 2) * (wide + 2)
    sizes = (
        (height * width + 1) * max(inputs, outputs), rows * points * inputs, rows * points * outputs,
        TILE * max(inputs, outputs), wide * outputs,
    )  # fmt: skip
    return (*(np.zeros(size, np.float32) for size in sizes), np.zeros(6, np.int64))
