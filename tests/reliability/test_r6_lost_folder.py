"""R6: a run that loses its folder, or the right to write to it, ends with a sentence and writes nowhere else."""

import ctypes
import os
import shutil
from pathlib import Path

import pytest

from alphazero.storage.manifest import latest_manifest
from tests.reliability.training import ALL, end_of, start, wait_for

DROP_FROM_BOUNDING_SET, MAY_WRITE_ANYWHERE = 24, 1
"""Of prctl and of Linux's capabilities."""


def obey_permissions() -> None:
    """Lets a process of root obey the permissions of files, as those of other users do."""
    if os.getuid() == 0:
        assert ctypes.CDLL(None).prctl(DROP_FROM_BOUNDING_SET, MAY_WRITE_ANYWHERE, 0, 0, 0) == 0


@pytest.mark.parametrize(
    "case",
    ["replaced by a copy", *(pytest.param(case, marks=pytest.mark.slow) for case in ("removed", "moved", "replaced"))],
)
def test_a_run_that_has_lost_its_folder_says_so_and_writes_to_no_other(case: str, tmp_path: Path):
    run, away = tmp_path / "run", tmp_path / "away"
    process = start(run, *ALL)
    wait_for(process, run, "generation 2: saved")
    run.rename(away)
    there: set[str] = set()
    if case == "removed":
        shutil.rmtree(away)
    elif case == "replaced":
        run.mkdir()
    elif case == "replaced by a copy":
        shutil.copytree(away, tmp_path / "copy")
        there = set(os.listdir(tmp_path / "copy"))
        (tmp_path / "copy").rename(run)  # in one piece
    code, sentence = end_of(process)
    assert code == 2 and f"{run} is no longer this run's folder: it was closed, removed or replaced" in sentence
    assert (set(os.listdir(run)) if run.exists() else set()) == there
    if case == "moved":
        found = latest_manifest(away)
        assert found is not None and found.generation >= 2


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["generation 2: saved", "generation 2: gate"])
def test_a_run_that_may_no_longer_write_says_so(phase: str, tmp_path: Path):
    run = tmp_path / "run"
    process = start(run, *ALL, preexec_fn=obey_permissions)
    wait_for(process, run, phase)
    run.chmod(0o555)
    try:
        code, sentence = end_of(process)
    finally:
        run.chmod(0o755)
    assert code == 2 and f"cannot write {run}/" in sentence and "make the folder writable" in sentence
    assert not [name for name in os.listdir(run) if name.endswith(".tmp")]
    assert latest_manifest(run) is not None


def test_a_read_only_folder_is_refused(tmp_path: Path):
    (tmp_path / "closed").mkdir(mode=0o555)
    code, sentence = end_of(start(tmp_path / "closed" / "run", *ALL, preexec_fn=obey_permissions))
    assert code == 2 and "cannot make the run folder" in sentence and "Permission denied" in sentence
