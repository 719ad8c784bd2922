"""Examines the installation: packages, processor, GPU, compiled code, memory and disk, and the speed of networks."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch.utils.benchmark import Timer

from alphazero._version import __version__
from alphazero.catalogue import registry
from alphazero.doctor.findings import Section, show_bytes
from alphazero.machine import count_cores, cpu_quota, free_memory
from alphazero.nets.devices import bf16_pays, wanted_inference
from alphazero.nets.neural_net import NeuralNet
from alphazero.players.contestants import load_net
from alphazero.search import cpu_kernels
from alphazero.storage.kernel_cache import folder_of, needs_compiling

NEEDED = "torch", "openvino", "numpy", "numba", "scipy", "safetensors"
OPTIONAL = {
    "matplotlib": ("plot", "pictures in reports and tournaments"),
    "tensorboard": ("tensorboard", "the events of a run"),
    "wandb": ("wandb", "--wandb PROJECT"),
    "fastapi": ("web", "the page in the browser"),
    "onnx": ("onnx", "alphazero export"),
    "ray": ("ray", "--cluster"),
    "open_spiel": ("openspiel", "--game openspiel:NAME"),
    "numba-cuda": ("cuda", "rules and search on an NVIDIA GPU"),
}
"""Distributions that are not needed: the extra that brings each, and what it is for."""
FEATURES = {"avx2": "AVX2", "avx512_f": "AVX-512", "avx512_bf16": "AVX-512 bf16", "amx_bf16": "AMX bf16"}
"""Instructions that networks use, by torch's names."""
LITTLE = 2 << 30
"""Free bytes below which a training may end early."""
BEST, SIZES = "best", {"blocks": 5, "channels": 64}
"""The shipped net that is measured, and the sizes of a plain residual network."""
BATCH = 64
"""Positions that a network is asked about at once."""
PRODUCT = 1024
"""Rows and columns of the matrices that are multiplied."""
TURNS, SECONDS = 8, 0.05
"""Each is measured so often, in turns, and so long; the best turn counts, since other programs only slow it down."""
SLOW = 0.2
"""A network below this share of the product's speed is slower than it should be."""


def examine_installation() -> list[Section]:
    """All sections about the installation; measures for some seconds."""
    return [_packages(), _processor(), _gpu(), _room(), _speed()]


def version_of(name: str) -> str | None:
    """The installed version of a distribution; None if it is not installed."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(name)
    return None


def _packages() -> Section:
    section = Section("packages")
    section.add("alphazero", f"{__version__}, in {Path(__file__).parents[1]}")
    section.add("Python", f"{platform.python_version()}, on {platform.system()} {platform.machine()}")
    for name in NEEDED:
        section.add(name, version_of(name) or "not installed by pip")
    for name, (extra, purpose) in OPTIONAL.items():
        section.add(name, version_of(name) or f"not installed: it is for {purpose} (extra {extra})")
    if version_of("openvino") is None:
        section.advice.append(
            "install OpenVINO (pip install openvino), if there is a package for this system: networks then answer up "
            "to twice as fast on the processor, and single positions up to eight times"
        )
    return section


def _processor() -> Section:
    section, found = Section("processor"), torch.cpu.get_capabilities()
    section.add("name", found.get("cpu_name") or platform.processor() or "unknown")
    there = [words for name, words in FEATURES.items() if found.get(name)]
    section.add("instructions", ", ".join(there) or "none of those that networks use")
    cores, usable = os.cpu_count() or 1, count_cores()
    section.add("cores", f"{cores}, of which this process may use {usable}; --threads is {usable} unless it is given")
    if (quota := cpu_quota()) is not None:
        section.add("limit", f"this container gets the time of {quota:g} cores")
    with contextlib.suppress(OSError, AttributeError):  # a system without that figure
        load = os.getloadavg()[0]
        section.add("load", f"{load:.1f} programs wanted a core in the last minute")
        if load > 1.5 * cores:
            section.advice.append(
                f"other programs keep the processor busy ({load:.1f} for {cores} cores): training shares it with them, "
                "and the speeds below are too low"
            )
    return section


def _gpu() -> Section:
    section = Section("GPU")
    if not torch.cuda.is_available():
        built = torch.version.cuda
        section.add("torch", f"finds none{'' if built else ', and was built for processors alone'}")
        if shutil.which("nvidia-smi"):
            section.wrong.append(
                "there seems to be an NVIDIA GPU that torch cannot use: "
                + ("check its driver by nvidia-smi" if built else "install torch with CUDA, as pytorch.org says")
            )
        return section
    for number in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(number)
        bf16 = "with" if found.major >= 8 else "without"
        section.add(f"cuda:{number}", f"{found.name}, {show_bytes(found.total_memory)}, {bf16} bf16")
    section.add("CUDA", torch.version.cuda)
    if version_of("numba-cuda") is None:
        section.advice.append("install numba-cuda by the extra cuda: rules and search then run on the GPU as well")
    return section


def _room() -> Section:
    section, folder = Section("compiled code, memory and disk"), folder_of(cpu_kernels.read_roots)
    memory, disk = free_memory(), shutil.disk_usage(Path.cwd()).free
    section.add("compiled code", folder or "none")
    if folder is None:
        section.wrong.append("compiled code cannot be kept, so every start compiles for some 20 seconds: set "
                             "the environment variable NUMBA_CACHE_DIR to a folder that you can write to")  # fmt: skip
    elif needs_compiling(cpu_kernels.read_roots):
        section.advice.append("nothing is compiled yet: the first game takes some 20 seconds more, once")
    section.add("free memory", "unknown" if memory is None else show_bytes(memory))
    section.add("free disk", f"{show_bytes(disk)}, in {Path.cwd()}")
    if memory is not None and memory < LITTLE:
        section.advice.append(f"{show_bytes(memory)} of memory are free, and a training takes 1 to 3 GB: end programs")
    if disk < LITTLE:
        section.advice.append(f"{show_bytes(disk)} are free on the disk, and a long run takes gigabytes: make room")
    return section


def _speed() -> Section:
    """Measures for some seconds, on one core, a product of two matrices and two networks."""
    section = Section("speed on one core")
    # the game that most nets come with
    loaded = max((registry.load(name) for name in registry.NAMES), key=lambda loaded: len(loaded.nets))
    nets: dict[str, NeuralNet] = {"{blocks}x{channels}".format(**SIZES): loaded.make_net(loaded.game, SIZES)}
    if BEST in loaded.nets:
        nets[f"{loaded.name}/{BEST}"] = load_net(BEST, loaded, "cpu")
    libraries = {name: net.use_inference(wanted_inference()) for name, net in nets.items()}
    planes = np.repeat(loaded.game.start().observation[None], BATCH, axis=0)
    masks = np.ones((BATCH, loaded.game.num_actions), bool)
    kind = torch.bfloat16 if bf16_pays(torch.device("cpu")) else torch.float32
    matrix = torch.ones(PRODUCT, PRODUCT, dtype=kind)
    product = f"product of matrices, {str(kind).removeprefix('torch.')}"

    calls: dict[str, Callable[[], Any]] = {product: lambda: matrix @ matrix}
    calls |= {name: functools.partial(net.evaluate, planes, masks) for name, net in nets.items()}
    with torch.inference_mode():
        seconds = _best_times(calls)
    reference = 2 * PRODUCT**3 / seconds[product]
    section.add(product, f"{reference / 1e9:,.0f} GFLOP/s, for comparison")
    for name, net in nets.items():
        rate = BATCH / seconds[name]
        share = rate * net.card["flops_per_position"] / reference
        section.add(name, f"{rate:,.0f} positions/s by {libraries[name]}, {share:.0%} of that")
        if share < SLOW and sys.platform != "darwin":  # where a unit multiplies matrices that no convolution uses
            section.advice.append(
                f"the network {name} reaches {share:.0%} of this core's speed, and {SLOW:.0%} at least are usual: "
                "end other programs and try again; if that does not help, try another --inference"
            )
    return section


def _best_times(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of one call of each on one thread, the best turn's mean."""
    # they take one thread; their own clock would wait for a GPU, which may be full
    timers = {name: Timer("call()", globals={"call": call}, timer=perf_counter) for name, call in calls.items()}
    turns = [
        {name: timer.blocked_autorange(min_run_time=SECONDS).mean for name, timer in timers.items()}
        for _ in range(TURNS)
    ]
    return {name: min(turn[name] for turn in turns) for name in calls}
