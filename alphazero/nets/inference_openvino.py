"""`OpenVinoInference`: a torch module's answers, computed by OpenVINO on the processor.

For the small networks of this project it is up to twice as fast as torch in large batches, and five to ten times as
fast for one position, where torch spends its time between the layers.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from alphazero.errors import NetError, is_out_of_memory

SIZES = 64, 32, 8, 1
"""Rows of the compiled networks. A batch is cut into these; its last part is filled up with zeros to 8 rows."""


TELEMETRY = "openvino_telemetry"
"""OpenVINO's package that reports conversions to its makers; where it is missing, nothing is reported."""


class CannotConvert(NetError):
    """OpenVINO is not installed, or cannot take over this module."""


@functools.cache
def _openvino() -> tuple[Any, Any]:
    """The library and its one `Core`; raises CannotConvert."""
    try:
        with warnings.catch_warnings(), _without(TELEMETRY):
            warnings.simplefilter("ignore")  # it uses deprecated names itself
            library = importlib.import_module("openvino")
            importlib.import_module("openvino.tools.ovc.convert_impl")
    except ImportError as error:
        raise CannotConvert('OpenVINO is not installed: pip install "alphazero-framework[fast]"') from error
    return library, library.Core()


@contextlib.contextmanager
def _without(module: str) -> Iterator[None]:
    """Inside, the module cannot be imported."""
    there = sys.modules.get(module)
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]
        if there is not None:
            sys.modules[module] = there


class OpenVinoInference:
    """Answers for a frozen module: `observations float32[n, P, H, W]` to `(logits float32[n, A], values float32[n])`.

    Each thread compiles networks of its own, one for each of SIZES that it meets, in some 0.05 s; they compute on that
    thread alone. The same batch has the same answers, bit for bit.
    """

    def __init__(self, module: nn.Module, example: Tensor, bf16: bool):
        """`example float32[n, P, H, W]`; with `bf16` it multiplies bf16 numbers. Raises CannotConvert."""
        self._library, self._core = _openvino()
        self._example = example.contiguous()
        self._precision = "bf16" if bf16 else "f32"
        self._lock = threading.Lock()
        self._own = threading.local()
        self._arrays: dict[str, np.ndarray] | None = None
        """The weights in the memory that the converted network reads them from, by name."""
        self._next: nn.Module | None = module
        self._model = self._convert_with_arrays(module)

    def set_weights(self, module: nn.Module) -> None:
        """Answers by this module from now on; nothing may be asking now."""
        self._next = module

    def __call__(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count, at = len(observations), 0
        logits, values = [], []
        while at < count:
            left = count - at
            size = next(size for size in SIZES if size <= left)
            if size == 1 < left:
                size = SIZES[-2]
            request, rows = self._request(size)
            taken = min(size, left)
            rows[:taken] = observations[at : at + taken]
            rows[taken:] = 0.0
            request.infer()
            logits.append(request.get_output_tensor(0).data[:taken].copy())
            values.append(request.get_output_tensor(1).data.reshape(size)[:taken].copy())
            at += taken
        return np.concatenate(logits), np.concatenate(values)

    def _convert(self, module: nn.Module) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # tracing warns of numbers of Python, which do not change here
                # frozen: what depends on weights alone is computed once, by torch
                traced = torch.jit.freeze(torch.jit.trace(module, self._example, check_trace=False))
                return self._library.convert_model(traced, example_input=self._example)
        except Exception as error:  # the errors of a converter have no common class
            if is_out_of_memory(error):
                raise
            reason = " ".join(str(error).split())
            raise CannotConvert(f"OpenVINO cannot convert {type(module).__name__}: {reason:.200}") from error

    def _convert_with_arrays(self, module: nn.Module) -> Any:
        """Converts the module once for all weights, if each of its tensors is found in the result as it is.

        Converting takes half a second. Tensors are told apart by random numbers; one that is found nowhere is used in
        another form, as filters made of it are, and then new weights are converted anew.
        """
        probe = copy.deepcopy(module)
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for tensor in probe.state_dict().values():
                tensor.copy_(torch.rand(tensor.shape, generator=generator))
        names = {tensor.numpy().tobytes(): name for name, tensor in probe.state_dict().items()}
        model, arrays = self._convert(probe), dict[str, np.ndarray]()
        for node in model.get_ops():
            name = names.get(node.data.tobytes()) if node.get_type_name() == "Constant" else None
            if name is not None:
                arrays[name] = np.array(node.data, order="C")
                constant = self._library.op.Constant(arrays[name], shared_memory=True)
                for user in node.output(0).get_target_inputs():
                    user.replace_source_output(constant.output(0))
        if len(arrays) < len(probe.state_dict()):
            return self._convert(module)
        self._arrays = arrays
        return model

    def _take_weights(self, module: nn.Module) -> Any:
        """The network with the weights of the module."""
        if self._arrays is None:
            return self._convert(module)
        for name, tensor in module.state_dict().items():
            self._arrays[name].reshape(-1)[:] = tensor.numpy().reshape(-1)  # biases have more dimensions there
        return self._model.clone()

    def _request(self, size: int) -> tuple[Any, np.ndarray]:
        """This thread's network of that size, and the array of its rows."""
        own = self._own
        with self._lock:
            if self._next is not None:
                self._model, self._next = self._take_weights(self._next), None
        if getattr(own, "model", None) is not self._model:
            own.model, own.requests = self._model, {}
        if size not in own.requests:
            own.requests[size] = self._compile(size)
        return own.requests[size]

    def _compile(self, size: int) -> tuple[Any, np.ndarray]:
        shape = [size, *self._example.shape[1:]]
        with self._lock:
            model = self._model.clone()
        model.reshape(shape)
        options = {
            "INFERENCE_NUM_THREADS": 1,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,  # the networks of all threads would share one core
            "INFERENCE_PRECISION_HINT": self._precision,
        }
        request = self._core.compile_model(model, "CPU", options).create_infer_request()
        rows = np.zeros(shape, np.float32)
        request.set_input_tensor(self._library.Tensor(rows, shared_memory=True))
        return request, rows
