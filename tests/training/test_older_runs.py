"""Runs that another version of the framework has written: an older one goes on as it was, a newer one is left alone."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from alphazero.doctor.run import examine_run
from alphazero.errors import CheckpointError, RunFolderError
from alphazero.storage.manifest import latest_manifest, read_settings
from alphazero.training.run import read_saved, train
from tests.storage.resealing import reseal_config, reseal_manifest
from tests.training.test_hostile_runs import finished  # noqa: F401 (a fixture)

LOADED = registry.load("tictactoe")


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:  # noqa: F811
    return shutil.copytree(finished, tmp_path / "run")


def test_a_run_that_kept_every_net_keeps_every_net(folder, caplog):
    """Before there was a number of nets to keep; the number of today once took its place, and removed nets."""
    reseal_config(folder, lambda config: config["settings"].pop("keep"))
    assert read_settings(folder)["settings"]["keep"] == 0
    saved = read_saved(folder, "tictactoe")
    assert saved.config.keep == 0
    train(LOADED, replace(saved.config, generations=2), folder, threads=1, resume=True)
    assert "keep" not in caplog.text and read_settings(folder)["settings"]["keep"] == 0


@pytest.mark.parametrize("which", [[1], [0, 1]], ids=["the newest", "both"])
def test_what_a_newer_version_wrote_is_left_alone(folder, which):
    """It once was taken for damage, and overwritten by what followed the generation before."""
    for generation in which:
        reseal_manifest(folder / f"manifest_{generation:04d}.json", lambda manifest: manifest.update(format=2))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for use in (
        latest_manifest,
        examine_run,
        lambda path: train(LOADED, read_saved(path, "tictactoe").config, path, resume=True),
    ):
        with pytest.raises(RunFolderError, match=r"manifest_000[01].json has format 2, .* reads 1: update alphazero$"):
            use(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "run.log"} == {
        name: content for name, content in before.items() if name != "run.log"
    }


def test_a_state_with_more_in_it_is_refused(folder):
    """What the newer version needs would be missing from the next generation."""
    reseal_manifest(folder / "manifest_0001.json", lambda manifest: manifest["state"].update(averages=[1, 2]))
    with pytest.raises(CheckpointError, match=r"averages.*; if a newer version wrote it, update alphazero$"):
        train(LOADED, read_saved(folder, "tictactoe").config, folder, threads=1, resume=True)
