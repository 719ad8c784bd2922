"""R5: when no more can be written, a run ends with a sentence, leaves no stump, and its last generation can go on."""

import resource
from pathlib import Path

import pytest

from alphazero.storage.manifest import latest_manifest
from tests.reliability.training import ALL, end_of, start, wait_for

SLOW = [0, 1, 500, 3000, 6000, 8000, 12_000, 16_000, 20_000, 30_000, 40_000]


@pytest.mark.parametrize("limit", [2000, *(pytest.param(limit, marks=pytest.mark.slow) for limit in SLOW)])
def test_a_full_disk_ends_the_run_and_harms_nothing(limit: int, tmp_path: Path):
    run = tmp_path / "run"
    process = start(run, *ALL)
    wait_for(process, run, "generation 2: saved")
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))  # no file may grow beyond so many bytes
    code, sentence = end_of(process)
    assert code == 2 and f"cannot write {run}/" in sentence and "bytes needed" in sentence and "bytes free" in sentence
    assert not list(run.glob(".*.tmp"))
    found = latest_manifest(run)
    assert found is not None and found.generation >= 2
    resumed = start(run, "--resume", "--generations", str(found.generation + 1))
    _, said = resumed.communicate(timeout=120)
    assert resumed.returncode == 0 and f"going on after generation {found.generation} " in said
