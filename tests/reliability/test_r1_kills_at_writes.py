"""R1: a run of the real program, killed before or within a write, a rename or a manifest, goes on exactly."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.reliability.killing import PATIENCE, assert_whole, finish, log_of, results, start

QUICK = {"manifest.before:3"}


def all_faults() -> list[str]:
    """A few of the moments in CI, all of them in the slow suite."""
    # such a run writes 46 files and 5 manifests
    numbers = {"write.within": range(1, 47, 3), "rename.before": range(2, 47, 3), "manifest.before": range(1, 6),
               "manifest.after": range(1, 6)}  # fmt: skip
    faults = {f"{name}:{number}" for name, range_ in numbers.items() for number in range_} | QUICK
    return [pytest.param(fault, marks=() if fault in QUICK else pytest.mark.slow) for fault in sorted(faults)]


@pytest.mark.parametrize("fault", all_faults())
def test_killed_at_a_write_the_run_goes_on_exactly(fault: str, undisturbed: Path, tmp_path: Path):
    folder = tmp_path / "run"
    process = start(folder, fault)
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL, log_of(folder).read_text()
    finish(folder)
    assert_whole(folder)
    assert results(folder) == results(undisturbed)


def test_a_run_ends_with_its_matches_and_the_command_to_play_against_the_net(undisturbed: Path):
    said = log_of(undisturbed).read_text()
    assert "against random" in said and "python pit.py" in said
