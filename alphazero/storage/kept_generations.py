"""The nets of a run that stay on disk."""

from __future__ import annotations

from collections.abc import Iterable


def kept_generations(generations: Iterable[int], newest: int, keep: int) -> set[int]:
    """The generations whose nets stay: the `keep` newest, and at most `keep` others, evenly spaced, as milestones.

    Milestones are the multiples of the smallest power of two that gives no more of them; so each that is one today has
    been one ever since, and 0, the net that the run began with, is always one.
    """
    step = 1
    while newest // step >= keep:
        step *= 2
    return {number for number in generations if number > newest - keep or number % step == 0}
