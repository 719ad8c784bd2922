"""R4: a run of the real program is killed three times in a row, twice of them while it goes on."""

from __future__ import annotations

import functools
import time
from pathlib import Path

import numpy as np
import pytest

from tests.reliability.killing import assert_whole, finish, has_lock, kill, results, start, wait_until

TIMES = 20
LONGEST = 0.5
"""Seconds after which a resumed run is killed at most: it needs longer to read everything and to go on."""


def kill_thrice(folder: Path, rng: np.random.Generator) -> bool:
    """Kills a run in its second generation, and then twice while it goes on; false if it ended before a kill."""
    process = start(folder)
    wait_until((folder / "manifest_0001.json").exists, process)
    if not kill(process):
        return False
    for _ in range(2):
        process = start(folder)
        wait_until(functools.partial(has_lock, folder, process), process)
        time.sleep(rng.uniform(0, LONGEST))
        if not kill(process):
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(TIMES))
def test_three_kills_in_a_row_lose_nothing(seed: int, undisturbed: Path, tmp_path: Path):
    folder, rng = tmp_path / "run", np.random.default_rng(1000 + seed)
    while not kill_thrice(folder, rng):
        folder.rename(tmp_path / f"ended-{len(list(tmp_path.iterdir()))}")
    finish(folder)
    assert_whole(folder)
    assert results(folder) == results(undisturbed)
