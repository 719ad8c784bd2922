"""A run killed at any point goes on exactly."""

from __future__ import annotations

import signal

import pytest

from tests.storage.small_run import checksums, play, resume

FAULTS = [
    "write.within:2",  # config.json
    "write.before:3",  # before anything of the first generation
    "write.after:3",
    "rename.before:5",
    "rename.after:6",  # all files of the first generation but no metrics
    "manifest.before:1",
    "write.within:8",  # the first manifest
    "manifest.after:1",
    "prune.before:1",
    "rename.after:14",  # the second manifest, whose folder is not yet synced
    "rename.before:20",  # the third manifest
    "prune.before:4",  # the oldest manifest is gone, its files are not
    "manifest.after:3",
]


def kill_and_resume(tmp_path, undisturbed, fault):
    folder = tmp_path / "run"
    assert play(folder, fault=fault)[0] == -signal.SIGKILL
    resume(folder)
    assert checksums(folder) == checksums(undisturbed[0])


@pytest.mark.parametrize("fault", FAULTS[::3])
def test_a_killed_run_ends_like_one_that_was_not(tmp_path, undisturbed, fault):
    kill_and_resume(tmp_path, undisturbed, fault)


@pytest.mark.slow
def test_killed_at_every_point_a_run_ends_like_one_that_was_not(tmp_path, undisturbed):
    faults = [f"{name}:{i + 1}" for name, times in undisturbed[1].items() for i in range(times)]
    assert len(faults) > 100 and set(FAULTS) <= set(faults)
    for fault in faults:
        kill_and_resume(tmp_path / fault, undisturbed, fault)


def test_three_kills_in_a_row_and_one_while_resuming(tmp_path, undisturbed):
    folder = tmp_path / "run"
    for fault in ("write.within:6", "manifest.before:2", "prune.before:1", "write.within:3"):
        assert play(folder, fault=fault)[0] == -signal.SIGKILL
    resume(folder)
    assert checksums(folder) == checksums(undisturbed[0])
