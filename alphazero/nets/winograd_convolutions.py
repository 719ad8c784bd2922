"""3x3 convolutions of float32 that learn, by Winograd's method; torch's library multiplies by the definition.

y = back((filters g) * (into d)) is linear in g and in d. So the gradient of d is a convolution of that of y with the
filters turned round, and that of g is filters' ((into d) * (back' of that of y)), where ' is a transpose.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from alphazero.game.kernels import of_fixed_types
from alphazero.nets.kernels.vector_code import PANEL, ROWS, has_fma, matrices, tile_length
from alphazero.nets.kernels.winograd import filters_at_points
from alphazero.nets.kernels.winograd_kernels import LEARNED, TILE, add_gradients, convolve_boards
from alphazero.nets.weight_gradients import ConvolutionMode

_convolve, _add_gradients = of_fixed_types(convolve_boards), of_fixed_types(add_gradients)


def are_fast() -> bool:
    """The kernels are compiled, for a processor that they suit."""
    return hasattr(convolve_boards, "compile") and has_fma()


class WinogradConvolutions(ConvolutionMode):
    """3x3 convolutions of float32 on the processor are those of this module."""

    def convolve(
        self, x: Tensor, weight: Tensor, bias: Tensor | None, padding: list[int] | str, transposed: bool
    ) -> Tensor | None:
        if (
            transposed
            or not x.dtype == weight.dtype == torch.float32
            or x.shape[1:2] != weight.shape[1:2]
            or (bias is not None and bias.shape != weight.shape[:1])
            or x.device.type != "cpu"
            or torch.is_autocast_enabled("cpu")
            or weight.shape[2:] != (3, 3)
            or any(channels % PANEL for channels in weight.shape[:2])
            or padding not in ("same", [1, 1])
        ):
            return None
        result: Tensor = WinogradConvolution.apply(x, weight)
        return result if bias is None else result + bias[:, None, None]


def compile_convolutions() -> None:
    """Compiles the kernels, or finds them on disk, before a run's clock starts."""
    board = torch.zeros(1, PANEL, 1, 1)
    convolved(board, torch.zeros(PANEL, PANEL, 3, 3))
    gradient_of_filters(board, board)


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
    made, (height, width, tall, wide) = vars(_local), board
    name = f"{inputs, outputs, board}"
    if name not in made:
        rows, points = -(-height // tall) * -(-width // wide) * LEARNED + ROWS, (tall + 2) * (wide + 2)
        sizes = (
            (height * width + 1) * max(inputs, outputs), rows * points * inputs, rows * points * outputs,
            TILE * max(inputs, outputs), wide * outputs,
        )  # fmt: skip
        made[name] = (*(np.zeros(size, np.float32) for size in sizes), np.zeros(6, np.int64))
    found: tuple[np.ndarray, ...] = made[name]
    return found
