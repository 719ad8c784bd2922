"""R2: a run of the real program, killed at a random moment, goes on as if nothing had happened."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from tests.reliability.killing import GENERATIONS, assert_whole, finish, kill, results, start, wait_until

QUICK, ALL = 1, 200
LONGEST = 0.6
"""Seconds after a generation at which a kill comes at most: longer than a generation takes, so that every moment of
one is hit."""


def kill_at_random(folder: Path, rng: np.random.Generator) -> None:
    """Kills a new run: in its start, or up to `LONGEST` seconds after a random one of its generations."""
    while True:
        process = start(folder)
        generation = int(rng.integers(-1, GENERATIONS))
        begun = folder / ("lock" if generation < 0 else f"manifest_{generation:04d}.json")
        wait_until(begun.exists, process)
        time.sleep(rng.uniform(0, 3 * LONGEST if generation < 0 else LONGEST))
        if kill(process):
            return
        # the run had ended before: that is no kill, so another folder is taken
        folder.rename(folder.with_name(f"{folder.name}-too-late-{rng.integers(1 << 30)}"))


@pytest.mark.parametrize("seed", [pytest.param(n, marks=() if n < QUICK else pytest.mark.slow) for n in range(ALL)])
def test_killed_at_a_random_moment_the_run_ends_as_if_undisturbed(seed: int, undisturbed: Path, tmp_path: Path):
    folder = tmp_path / "run"
    kill_at_random(folder, np.random.default_rng(seed))
    finish(folder)
    assert_whole(folder)
    assert results(folder) == results(undisturbed)
