"""The devices that networks compute on: names from the command line, which GPU a process sees, and bf16.

torch is imported when a function needs it, so that commands can check their options without it.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from alphazero.errors import InvalidSetting, UnknownName, quote, shorten
from alphazero.invocation import option

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

DEVICES = "auto", "cpu", "cuda"
"""Where the networks of players compute: `auto` is a GPU if there is one."""

INFERENCES = "auto", "torch", "openvino", "winograd"
"""The libraries that run networks on the processor: `auto` is the fastest, measured; `winograd` are our own kernels."""
INFERENCE_VARIABLE = "ALPHAZERO_INFERENCE"
"""The environment variable that chooses one of them for this process and those that it starts."""

_lock = threading.Lock()
_types: list[Any] = []
"""torch's type of new tensors as each thread found it that is inside `usual_torch`."""


def describe_inference(library: str) -> str:
    """The library that runs networks on the processor, for a sentence."""
    return "alphazero's own kernels (winograd)" if library == "winograd" else library


@functools.cache
def say_once(text: str) -> None:
    """Logs the text the first time that this process says it, since runs and matches have many networks."""
    logger.info(text)


@contextlib.contextmanager
def _in_float32() -> Iterator[None]:
    """Has torch make tensors of float32, in all threads, as long as one thread is inside."""
    import torch

    with _lock:
        _types.append(torch.get_default_dtype())
        torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        with _lock:
            first = _types.pop()  # the last thread to leave takes what the first one has found
            if not _types:
                torch.set_default_dtype(first)


@contextlib.contextmanager
def usual_torch(in_all_threads: bool = True) -> Iterator[None]:
    """Inside, tensors are float32 and on the processor, and have gradients, whatever the caller has chosen.

    Every function that is called from outside and computes by torch is inside. The type of new tensors is that of all
    threads: False leaves it, for what runs beside the caller's own program.
    """
    import torch

    with contextlib.ExitStack() as stack:
        if in_all_threads:
            stack.enter_context(_in_float32())
        # the others only where they differ, since each takes time
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            stack.enter_context(torch.enable_grad())
        if torch.get_default_device() != (processor := torch.device("cpu")):
            stack.enter_context(processor)
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield


def wanted_inference() -> str:
    """One of INFERENCES, as the environment asks for; raises InvalidSetting."""
    name = os.environ.get(INFERENCE_VARIABLE, "auto")
    if name not in INFERENCES:
        raise InvalidSetting(f"{INFERENCE_VARIABLE} must be one of {', '.join(INFERENCES)}, not {quote(name, 100)}")
    return name


def want_inference(name: str) -> None:
    """Chooses the library for all networks that are loaded from now on; raises UnknownName."""
    if name not in INFERENCES:
        raise UnknownName("inference", name, INFERENCES)
    os.environ[INFERENCE_VARIABLE] = name


def has_amx() -> bool:
    """The processor multiplies tiles of bf16 numbers."""
    import torch

    return bool(torch.cpu.get_capabilities().get("amx_bf16", False))


def check_device(name: str, known: Sequence[str] = DEVICES) -> None:
    """Raises UnknownName unless the device is one of those."""
    if name not in known:
        raise UnknownName("device", name, known, meant=re.sub("^gpu", "cuda", str(name).lower()))


def choose_device(name: str) -> str:
    """`cpu` or `cuda`, as one of DEVICES means here; raises InputError."""
    check_device(name)
    return choose_devices(name)[0].partition(":")[0]


def choose_devices(names: str) -> tuple[str, ...]:
    """The devices of a run: every GPU for `auto`, else those that `names` lists, as `cuda:0,cuda:1`; raises InputError.

    `cpu,cpu` is two processes on the processor.
    """
    gpus = tuple(f"cuda:{i}" for i in range(len(_gpus())))
    if names == "auto":
        return gpus if len(gpus) > 1 else ("cuda",) if gpus else ("cpu",)
    chosen = tuple(str(names).split(","))
    for name in chosen:
        if not gpus and re.fullmatch(r"cuda(:\d{1,9})?", name):
            raise InvalidSetting(
                f"{option('device', name)}: torch finds no CUDA device here; leave it out to use the CPU"
            )
        check_device(name, ("auto", "cpu", "cuda", *gpus))
    distinct = {"cuda:0" if name == "cuda" else name for name in chosen}
    if len({name[:4] for name in chosen}) > 1 or (chosen[0] != "cpu" and len(distinct) < len(chosen)):
        raise InvalidSetting(f"{option('device')} takes different devices of one kind, not {shorten(names)}")
    return chosen


@functools.cache
def _gpus() -> tuple[str, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES showed this process first, each by its number or name on this machine."""
    import torch

    visible, count = os.environ.get("CUDA_VISIBLE_DEVICES", ""), torch.cuda.device_count()
    return tuple(visible.split(",") if visible else map(str, range(count)))[:count]


def name_devices(devices: Sequence[str]) -> list[str]:
    """The devices with the numbers of this machine, as `see_only` takes them."""
    kinds = [device.partition(":") for device in devices]
    return [f"{kind}:{_gpus()[int(number)]}" if number else kind for kind, _, number in kinds]


def see_only(device: str) -> str:
    """Makes `cuda:NUMBER` the only GPU that this process sees; returns its name from then on, `cuda`.

    Call it before the process uses a GPU. With several, each thread would have to choose one for torch and for numba.
    """
    kind, _, number = device.partition(":")
    if number:
        os.environ["CUDA_VISIBLE_DEVICES"] = number
    return kind


def take_gpu(device: str) -> None:
    """As `see_only`, in a program that may train again: later runs can name all GPUs that it began with.

    Raises InvalidSetting if the process computes on another GPU already, as it cannot leave that.
    """
    import torch

    _gpus()  # before the others are hidden
    number = device.partition(":")[2]
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
    if number and torch.cuda.is_initialized() and number != first:
        raise InvalidSetting(
            f"this program computes on GPU {first} already, and cannot train on GPU {number} as well: begin another "
            "program for that"
        )
    see_only(device)


def bf16_pays(device: torch.device) -> bool:
    """The device multiplies bf16 in hardware."""
    import torch

    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.backends.mkldnn.is_available() and bool(torch.cpu._is_avx512_bf16_supported())
