"""R7: of trainings in one folder exactly one goes on; the others say whose it is; readers need not wait."""

import socket
from pathlib import Path

import pytest

from alphazero.storage.manifest import latest_manifest
from alphazero.storage.metrics_file import read_metrics
from alphazero.storage.run_names import resolve_checkpoint
from tests.reliability.training import ALL, end_of, start, wait_for


@pytest.mark.slow
@pytest.mark.parametrize("others", [2, 8])
def test_one_training_has_the_folder(others: int, tmp_path: Path):
    run = tmp_path / "run"
    holder = start(run, *ALL)
    try:
        wait_for(holder, run, "generation 1: saved")
        for process in [start(run, *ALL, "--resume") for _ in range(others)]:
            code, sentence = end_of(process, 300)
            assert code == 2
            assert f"{run} is in use by process {holder.pid} on {socket.gethostname()}; stop that run" in sentence
        found = latest_manifest(run)
        assert found is not None and read_metrics(run) and resolve_checkpoint(str(run)).exists()
        assert holder.poll() is None
        assert (run / "run.log").read_text().count("begins") == 1, "refused trainings leave no line"
    finally:
        holder.kill()
        holder.communicate()
