"""The generations of a run: those that its files name, gaps among them, and those whose nets stay on disk."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable
from pathlib import Path

from alphazero.errors import listed

_NUMBERED = {
    "generation": re.compile(r"generation_(\d{4,9})\.safetensors", re.ASCII),
    "manifest": re.compile(r"manifest_(\d{4,9})\.json", re.ASCII),
}


def names_in(folder: Path) -> list[str]:
    """The entries of `folder`, sorted; none if it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def generations_of(folder: str | Path, kind: str) -> list[int]:
    """The numbers of a run's files of a kind, `manifest` or `generation` (nets), in ascending order."""
    found = [_NUMBERED[kind].fullmatch(name) for name in names_in(Path(folder))]
    return sorted(int(match[1]) for match in found if match)


def gaps(numbers: Iterable[int], newest: int) -> list[tuple[int, int]]:
    """The ranges (first, last) between 1 and `newest` that `numbers` lacks; its cost does not depend on `newest`."""
    known = [0, *sorted({number for number in numbers if 0 < number <= newest}), newest + 1]
    return [(before + 1, after - 1) for before, after in itertools.pairwise(known) if after - before > 1]


def in_words(ranges: Iterable[tuple[int, int]]) -> str:
    """`1-3, 7` for the ranges (1, 3) and (7, 7); `none` for nothing."""
    return listed((f"{first}" if first == last else f"{first}-{last}" for first, last in ranges), 10) or "none"


def kept_generations(generations: Iterable[int], newest: int, keep: int) -> set[int]:
    """The generations whose nets stay: the `keep` newest, and at most `keep` others, evenly spaced, as milestones.

    Milestones are the multiples of the smallest power of two that gives no more of them; so each that is one today has
    been one ever since, and 0, the net that the run began with, is always one.
    """
    step = 1
    while newest // step >= keep:
        step *= 2
    return {number for number in generations if number > newest - keep or number % step == 0}
