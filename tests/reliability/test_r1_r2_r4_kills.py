"""R1, R2, R4: a run of the real program, killed at a write, at a random moment or again and again, goes on exactly."""

from __future__ import annotations

import functools
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from tests.reliability.killing import (
    GENERATIONS,
    PATIENCE,
    assert_whole,
    finish,
    has_lock,
    kill,
    log_of,
    results,
    start,
    wait_until,
)


def expect_as_undisturbed(folder: Path, undisturbed: Path) -> None:
    """Goes on with the run that was killed, to its end."""
    finish(folder)
    assert_whole(folder)
    assert results(folder) == results(undisturbed)


# --- R1: at a write, and once more at a random moment ---

AT_ONCE = "manifest.before:3"
LONGEST = 0.6
"""Seconds after a generation at which a kill comes at most: longer than a generation takes, so that every moment of
one is hit."""


def all_faults() -> list[str]:
    """A few of the moments in CI, all of them in the slow suite."""
    # such a run writes 46 files and 5 manifests
    numbers = {"write.within": range(1, 47, 3), "rename.before": range(2, 47, 3), "manifest.before": range(1, 6),
               "manifest.after": range(1, 6)}  # fmt: skip
    faults = [f"{name}:{number}" for name, range_ in numbers.items() for number in range_]
    return [pytest.param(fault, marks=() if fault == AT_ONCE else pytest.mark.slow) for fault in faults]


@pytest.mark.parametrize("fault", all_faults())
def test_killed_at_a_write_and_once_more_the_run_goes_on_exactly(fault: str, undisturbed: Path, tmp_path: Path):
    folder = tmp_path / "run"
    process = start(folder, fault)
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL, log_of(folder).read_text()
    process = start(folder)
    wait_until((folder / f"manifest_{GENERATIONS - 1:04d}.json").exists, process)
    time.sleep(np.random.default_rng(len(fault)).uniform(0, LONGEST))
    kill(process)
    expect_as_undisturbed(folder, undisturbed)


def test_a_run_ends_with_its_matches_and_the_command_to_play_against_the_net(undisturbed: Path):
    said = log_of(undisturbed).read_text()
    assert "against random" in said and "python pit.py" in said


# --- R2: at a random moment ---


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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_killed_at_a_random_moment_the_run_ends_as_if_undisturbed(seed: int, undisturbed: Path, tmp_path: Path):
    folder = tmp_path / "run"
    kill_at_random(folder, np.random.default_rng(seed))
    expect_as_undisturbed(folder, undisturbed)


# --- R4: three times in a row ---

TIMES = 20
LONGEST_RESUME = 0.5
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
        time.sleep(rng.uniform(0, LONGEST_RESUME))
        if not kill(process):
            return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(TIMES))
def test_three_kills_in_a_row_lose_nothing(seed: int, undisturbed: Path, tmp_path: Path):
    folder, rng = tmp_path / "run", np.random.default_rng(1000 + seed)
    while not kill_thrice(folder, rng):
        folder.rename(tmp_path / f"ended-{len(list(tmp_path.iterdir()))}")
    expect_as_undisturbed(folder, undisturbed)
