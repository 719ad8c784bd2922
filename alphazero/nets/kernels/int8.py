"""`Int8Inference`: OpenVINO, whose convolutions multiply whole numbers of 8 bits.

A processor with VNNI instructions multiplies twice as many of them a second as bf16 numbers, and four times as many as
float32. The inputs of a convolution share one scale, and its filters have one for each output channel (Jacob et al.
2018).
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from alphazero.nets.kernels.library import Answers, CannotConvert
from alphazero.nets.kernels.openvino import SIZES, OpenVinoInference

MOST_ERROR = 0.05
"""The mean error of a value, and the mean share of a policy that goes to other actions, beyond which nothing is
rounded."""
LITTLE = 1e-20
"""Stands for the largest of numbers that are all zero."""


class Int8Inference(OpenVinoInference):
    """Answers as `OpenVinoInference` does, with convolutions in 8 bits.

    The numbers that go into each convolution are measured in the positions of `example`, of which there are as many as
    `num_examples`; 8 bits stand for the largest of them. Weights whose answers there differ from those of float32 by
    more than MOST_ERROR are not rounded.
    """

    name: ClassVar[str] = "int8"
    num_examples: ClassVar[int] = 8 * SIZES[0]

    def __init__(self, module: nn.Module, example: Tensor, bf16: bool):
        super().__init__(module, example[:2], bf16)
        self._positions = example.numpy()
        self._seconds = 0.0
        """The time that the weights of now took to be rounded."""
        if not _convolutions(self._model):
            raise CannotConvert(f"int8 is for convolutions behind the first, and {type(module).__name__} has none")

    @staticmethod
    def is_worth_a_try(bf16: bool) -> bool:
        return False  # faster, but less exact: only who asks for it has it

    def seconds_for_new_weights(self, first: float, others: float) -> float:
        return self._seconds + super().seconds_for_new_weights(first - self._seconds, others)

    def _prepare(self, model: Any) -> Any:
        begun = time.perf_counter()
        exact, lowest, highest = self._observe(model.clone())
        rounded = model.clone()
        for node, low, high in zip(_convolutions(rounded), lowest, highest, strict=True):
            filters = np.abs(node.input_value(1).get_node().data).max(axis=(1, 2, 3), keepdims=True)
            self._round(node.input(0), np.maximum(high, -low), low < 0)
            self._round(node.input(1), filters, True)
        answers, _ = self._answer(rounded.clone(), self._precision)
        self._seconds = time.perf_counter() - begun
        return rounded if _difference(answers, exact) <= MOST_ERROR else model

    def _observe(self, model: Any) -> tuple[Answers, np.ndarray, np.ndarray]:
        """The answers in float32, and the lowest and highest number that goes into each convolution."""
        ops, axes = self._library.opset13, np.arange(4)
        for node in _convolutions(model):
            for reduce in (ops.reduce_min, ops.reduce_max):
                model.add_outputs([reduce(node.input_value(0), axes, keep_dims=True).output(0)])
        answers, extremes = self._answer(model, "f32")
        return answers, extremes[:, ::2].min(axis=0), extremes[:, 1::2].max(axis=0)

    def _answer(self, model: Any, precision: str) -> tuple[Answers, np.ndarray]:
        """The answers to all positions, and `float32[calls, n]`, the numbers of n further outputs in each call."""
        compiled = self._compile(model, SIZES[0], precision)
        logits, values, others = list[np.ndarray](), list[np.ndarray](), list[list[float]]()
        for rows in self._positions.reshape(-1, *compiled.rows.shape):
            compiled.rows[:] = rows
            compiled.request.infer()
            logits.append(compiled.logits.copy())
            values.append(compiled.values.copy())
            others.append([output.item() for output in compiled.others])
        return (np.concatenate(logits), np.concatenate(values)), np.array(others, np.float32)

    def _round(self, taker: Any, most: np.ndarray, signed: bool) -> None:
        """Lets what a layer takes have 256 values from 0 to `most`, or, if `signed`, 255 from `-most` to `most`."""
        ops, most = self._library.opset13, np.maximum(np.asarray(most, np.float32), np.float32(LITTLE))
        low, high = ops.constant(-most if signed else 0 * most), ops.constant(most)
        values = 255 if signed else 256
        node = ops.fake_quantize(taker.get_source_output(), low, high, low, high, values)
        taker.replace_source_output(node.output(0))


def _convolutions(model: Any) -> list[Any]:
    """The convolutions that are rounded, in the order in which they compute: those that take most of the time.

    The first layer and those of one square lose most by it, as the heads begin with them.
    """
    return [node for node in model.get_ordered_ops() if node.get_type_name() == "Convolution" and _is_large(node)]


def _is_large(convolution: Any) -> bool:
    read, filters = (convolution.input_value(i).get_node() for i in range(2))
    kinds = read.get_type_name(), filters.get_type_name()
    return kinds[0] != "Parameter" and kinds[1] == "Constant" and max(filters.shape[2:]) > 1


def _difference(answers: Answers, exact: Answers) -> float:
    """The mean error of the values, or the mean share of a policy that goes to other actions if that is larger."""
    policies = [torch.softmax(torch.from_numpy(logits), dim=1).numpy() for logits, _ in (answers, exact)]
    shares = np.abs(policies[0] - policies[1]).sum(axis=1) / 2
    return max(float(shares.mean()), float(np.abs(answers[1] - exact[1]).mean()))
