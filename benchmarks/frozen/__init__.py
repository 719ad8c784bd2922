"""Makers of the frozen data of games: positions whose exact result is known, and Connect Four's opening book."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

import numpy as np

from alphazero.commands.options import Threads, check_options
from alphazero.game.kernels import Kernels
from alphazero.machine import count_cores
from alphazero.progress import Progress

Item = TypeVar("Item")


@dataclass(frozen=True)
class LabelConfig:
    """Makes the frozen positions of a game's benchmark anew."""

    threads: Threads = field(default_factory=count_cores)

    def __post_init__(self) -> None:
        check_options(self)


def take(items: Iterator[Item], count: int, title: str) -> list[Item]:
    """The first `count` items, with a progress bar."""
    found: list[Item] = []
    with Progress(title) as progress:
        for item in islice(items, count):
            found.append(item)
            progress.show(len(found) / count, f"{len(found)} of {count}")
    return found


def canonical_keys(kernels: Kernels, states: np.ndarray) -> list[tuple[int, ...]]:
    """For each position a key that it shares with its mirror images, in a game that has a `transform`."""
    assert kernels.canonicalize is not None
    return [tuple(key) for key in kernels.canonical(states)[0].tolist()]
