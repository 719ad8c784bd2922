"""The speed of networks on one processor core, beside that of a plain matrix product."""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from alphazero.catalogue import registry
from alphazero.doctor.findings import Section
from alphazero.nets.devices import bf16_pays, wanted_inference
from alphazero.nets.neural_net import NeuralNet
from alphazero.players.contestants import load_net

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


def examine_speed() -> Section:
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
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            seconds = _best_times(calls)
    finally:
        torch.set_num_threads(before)
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
    """Seconds of one call of each, the best turn's mean."""
    best = dict.fromkeys(calls, math.inf)
    for call in calls.values():
        call()  # the first one prepares
    for _ in range(TURNS):
        for name, call in calls.items():
            count, begin = 0, time.perf_counter()
            while time.perf_counter() - begin < SECONDS or count < 3:
                call()
                count += 1
            best[name] = min(best[name], (time.perf_counter() - begin) / count)
    return best
