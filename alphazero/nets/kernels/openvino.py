"""`OpenVinoInference`: a torch module's answers, computed by OpenVINO on the processor.

For the small networks of this project it is up to twice as fast as torch in large batches, and five to ten times as
fast for one position, where torch spends its time between the layers.
"""

from __future__ import annotations

import copy
import functools
import importlib
import math
import sys
import threading
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from alphazero.errors import NetError, is_out_of_memory
from alphazero.machine import without_warnings
from alphazero.nets.any_module import Answers, CannotConvert, answers_as
from alphazero.nets.devices import has_amx

SIZES = 128, 32, 8, 4, 2, 1
"""Rows of the compiled networks, into which a batch is cut: from 64 rows on, wide networks leave the second-level cache
and take up to twice as long for a row, so they have no parts of 128."""

NARROW = 1024
"""So many numbers in a row of its largest layer make a network narrow, at most."""

NEW_SIZE, NEW_SIZE_AMX = 3, 8
"""A call takes longer by the time of so many rows of a large batch if the call before had another size. Each size has
its own copy of the weights, which the second-level cache has lost by then. With AMX a row takes less time, so this is
more rows (docs/log.md)."""

CHECKED_SIZE = 4
"""Rows in which a conversion is checked: neither one, which any operation stretches, nor as many as were traced."""


@functools.cache
def _openvino() -> tuple[Any, Any]:
    """The library and its one `Core`; raises CannotConvert."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # it would tell what is converted
    try:
        library = importlib.import_module("openvino")
        importlib.import_module("openvino.tools.ovc.convert_impl")
    except ImportError as error:
        raise CannotConvert("OpenVINO is not installed: pip install openvino") from error
    return library, library.Core()


class _Compiled(NamedTuple):
    """A compiled network and the memory that it reads and writes."""

    request: Any
    rows: np.ndarray
    """`float32[size, P, H, W]`."""
    logits: np.ndarray
    """`float32[size, A]`."""
    values: np.ndarray
    """`float32[size]`, or `float32[size, V]`."""


class OpenVinoInference:
    """Answers by OpenVINO, on the thread that asks.

    Threads share compiled networks, as many of each of SIZES as were used at once. To compile one takes some 0.04 s.
    """

    name: ClassVar[str] = "openvino"

    def __init__(self, module: nn.Module, example: Tensor, bf16: bool):
        """`example float32[n, P, H, W]`; with `bf16` it multiplies bf16 numbers. Raises CannotConvert."""
        with without_warnings():  # it uses deprecated names itself; and one thread loads it
            self._library, self._core = _openvino()
        self._example = example.contiguous()
        self._precision = "bf16" if bf16 else "f32"
        self._new_size = NEW_SIZE_AMX if bf16 and has_amx() else NEW_SIZE
        self._lock = threading.Lock()
        self._idle: dict[int, list[_Compiled]] = {size: [] for size in SIZES}
        """The compiled networks of each size that no thread uses now."""
        self._take_over(module)
        self.set_weights(module)

    def set_weights(self, module: nn.Module) -> None:
        if _tables_of(module) != self._tables:  # they are part of the network
            self._take_over(module)
        for name, tensor in module.state_dict().items():
            if name in self._arrays:  # not another name of weights that have one
                self._arrays[name].reshape(-1)[:] = tensor.numpy().reshape(-1)  # biases have more dimensions there
        self._idle = {size: [] for size in SIZES}

    def __call__(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count, at = len(observations), 0
        logits = values = np.empty(0, np.float32)
        for size in parts_of(max(count, 1), self._new_size, self._most):  # no position has an answer of no rows
            try:
                compiled = self._idle[size].pop()
            except IndexError:  # other threads use all of that size
                compiled = self._compile(size, self._precision)
            if at == 0:
                logits = np.empty((count, compiled.logits.shape[1]), np.float32)
                values = np.empty((count, *compiled.values.shape[1:]), np.float32)
            end = min(at + size, count)
            compiled.rows[: end - at] = observations[at:end]
            compiled.rows[end - at :] = 0.0
            compiled.request.infer()
            logits[at:end], values[at:end] = compiled.logits[: end - at], compiled.values[: end - at]
            self._idle[size].append(compiled)
            at = end
        return logits, values

    def _take_over(self, module: nn.Module) -> None:
        """Converts the module, and compares its answers with the network's. Raises CannotConvert, which names it."""
        self._tables = _tables_of(module)
        try:
            self._model, self._arrays = self._convert(module)
            self._most = SIZES[0] if _width_of(self._model, self._example.shape[1:]) <= NARROW else SIZES[1]
            if not answers_as(module, self._example.shape[1:], self._answer):
                raise NetError("it computes something outside of torch, or at random, or uses a weight in another form")
        except Exception as error:  # those of a converter have no common class
            if is_out_of_memory(error):
                raise
            reason = " ".join(str(error).split())
            raise CannotConvert(f"OpenVINO cannot convert {type(module).__name__}: {reason:.200}") from error

    def _answer(self, module: nn.Module, observations: np.ndarray) -> Answers:
        """The answers of the module in float32."""
        self.set_weights(module)
        compiled = self._compile(CHECKED_SIZE, "f32")
        compiled.rows[: len(observations)] = observations
        compiled.request.infer()
        return compiled.logits[: len(observations)], compiled.values[: len(observations)]

    def _convert(self, module: nn.Module) -> tuple[Any, dict[str, np.ndarray]]:
        """The network for all weights, and the memory that it reads them from, by name.

        Converting takes half a second, and torch keeps two megabytes of each module that it has traced for ever. So it
        is done once, with random numbers by which each tensor is found in the result. Tables of whole numbers and masks
        keep their contents: random ones could not be told apart.
        """
        probe = copy.deepcopy(module)
        generator = torch.Generator().manual_seed(0)
        weights = {name: tensor for name, tensor in probe.state_dict().items() if tensor.is_floating_point()}
        with torch.no_grad():
            for tensor in weights.values():
                tensor.copy_(torch.rand(tensor.shape, generator=generator))
        names = {tensor.numpy().tobytes(): name for name, tensor in weights.items()}
        with without_warnings():  # of numbers of Python, which do not change here
            # frozen: what depends on weights alone is computed once, by torch
            traced = torch.jit.freeze(torch.jit.trace(probe, self._example, check_trace=False))
            model = self._library.convert_model(traced, example_input=self._example)
        arrays = dict[str, np.ndarray]()
        for node in model.get_ops():
            name = names.get(node.data.tobytes()) if node.get_type_name() == "Constant" else None
            if name is not None:
                array = arrays.setdefault(name, np.array(node.data, order="C"))
                constant = self._library.op.Constant(array.reshape(node.data.shape), shared_memory=True)
                for user in node.output(0).get_target_inputs():
                    user.replace_source_output(constant.output(0))
        return model, arrays

    def _compile(self, size: int, precision: str) -> _Compiled:
        with self._lock:
            model = self._model.clone()
        shape = [size, *self._example.shape[1:]]
        model.reshape(shape)
        options = {
            "INFERENCE_NUM_THREADS": 1,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,  # the networks of all threads would share one core
            # for latency it binds the weights' pages to a memory node: what they become later keeps that, and the
            # kernel cannot join it with its neighbours, of which a process has 65,530 at most
            "PERFORMANCE_HINT": "THROUGHPUT",
            "INFERENCE_PRECISION_HINT": precision,
        }
        compiled = self._core.compile_model(model, "CPU", options)
        request, rows = compiled.create_infer_request(), np.zeros(shape, np.float32)
        request.set_input_tensor(self._library.Tensor(rows, shared_memory=True))
        outputs = [np.zeros(list(output.shape), np.float32) for output in compiled.outputs]
        for i, output in enumerate(outputs):
            request.set_output_tensor(i, self._library.Tensor(output, shared_memory=True))
        values = outputs[1].reshape(size, -1)
        return _Compiled(request, rows, outputs[0], values[:, 0] if values.shape[1] == 1 else values)


def _tables_of(module: nn.Module) -> dict[str, bytes]:
    """The tensors of whole numbers and masks by name, without the counters of batch norms, which no answer uses."""
    return {
        name: tensor.numpy().tobytes()
        for name, tensor in module.state_dict().items()
        if not tensor.is_floating_point() and not name.endswith("num_batches_tracked")
    }


def _width_of(model: Any, row: tuple[int, ...]) -> int:
    """The most numbers that a layer has for a row of that shape."""
    shaped = model.clone()
    shaped.reshape([-1, *row])
    shapes = (list(output.get_partial_shape()) for node in shaped.get_ops() for output in node.outputs())
    layers = [shape[1:] for shape in shapes if len(shape) > 1 and shape[0].is_dynamic]
    return max(math.prod(side.get_length() for side in layer) for layer in layers)


def parts_of(count: int, new_size: int, most: int) -> tuple[int, ...]:
    """The sizes of the parts, up to `most`, into which `count` rows are cut; the last may be larger than what is left.

    They take the least time if a call takes as long as a row more, and one of another size than the call before takes
    `new_size` rows more.
    """
    whole = count // most
    return (most,) * whole + _parts_of_rest(count % most, most if whole else 0, new_size, most)[1]


@functools.cache
def _parts_of_rest(count: int, before: int, new_size: int, most: int) -> tuple[int, tuple[int, ...]]:
    """The same for fewer rows than `most`, after a call of `before` rows (0: none), behind the time that it takes."""
    if count <= 0:
        return 0, ()
    ways = []
    for size in SIZES:
        if size <= (before or most):
            time, rest = _parts_of_rest(count - size, size, new_size, most)
            ways.append((time + size + 1 + new_size * (size != before), (size, *rest)))
    return min(ways, key=lambda way: way[0])
