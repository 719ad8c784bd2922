"""Nets that are large and take no space: their cards vouch for them, and nobody should read or make them."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from alphazero.storage.files import sha256_of, to_json, write_sealed_json


def vouched_for(tensors: list[int], num_bytes: int, **sizes: int) -> Callable[[Path], None]:
    """Weights of one tensor of float32, and nothing but zeros: sparse, with a card that vouches for them."""

    def spoil(path: Path) -> None:
        weights = path.with_suffix(".safetensors")
        offsets = [0, 4 * int(np.prod(tensors))]
        header = to_json({"a": {"dtype": "F32", "shape": tensors, "data_offsets": offsets}}, None)
        weights.write_bytes(struct.pack("<Q", len(header)) + header)
        os.truncate(weights, 8 + len(header) + num_bytes)
        card = json.loads(path.with_suffix(".json").read_text())
        card["net"].update(sizes)
        card["weights"]["bytes"] = 8 + len(header) + num_bytes
        if num_bytes < 1 << 27:
            card["weights"]["sha256"] = sha256_of(weights)
        write_sealed_json(path.with_suffix(".json"), card, "card_sha256")

    return spoil


def sparse_nets() -> Iterator[tuple[str, str, Callable[[Path], None]]]:
    """The format, the attack, and what spoils a file of it."""
    wide = {"channels": 1, "head_channels": 4096, "value_hidden": 4096}
    yield ("card", "a wide head, and a file of 34 MB", vouched_for([8_500_000], 34_000_000, **wide))
    yield ("card", "a tensor of 100 MB for a small net", vouched_for([25_000_000], 100_000_000))
    for name in ("card", "weights"):
        yield (name, "40 GB that its card vouches for", vouched_for([10_000_000_000], 40_000_000_000))
        yield (name, "300 MB beyond its header", vouched_for([2], 300_000_000))
        yield (name, "300 MB less than its header", vouched_for([200_000_000], 500_000_000))
