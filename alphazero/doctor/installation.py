"""Examines the installation: packages, processor, GPU, compiled code, memory and disk."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import shutil
from pathlib import Path

import torch

from alphazero._version import __version__
from alphazero.doctor.findings import Section, show_bytes
from alphazero.machine import count_cores, cpu_quota, free_memory
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


def examine_installation() -> list[Section]:
    """All but the speed, which `speed.examine_speed` measures."""
    return [_packages(), _processor(), _gpu(), _room()]


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
    """The folder of compiled code, memory and disk."""
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
