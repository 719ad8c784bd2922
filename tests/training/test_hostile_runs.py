"""A run of somebody else, or of another version, is resumed: its files do not say how much memory that takes."""

from __future__ import annotations

import shutil
import tracemalloc
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.doctor.run import examine_run
from alphazero.errors import CheckpointError, InvalidSetting, RunFolderError, StorageError
from alphazero.storage.arrays import write_npz
from alphazero.storage.files import sha256_of
from alphazero.storage.manifest import latest_manifest, read_settings
from alphazero.storage.run_folder import RunFolder
from alphazero.training.parts.arrivals import most_games
from alphazero.training.run import TrainedRun, read_saved, train
from alphazero.training.selfplay.games import saved_arrays
from tests.storage.resealing import reseal_config, reseal_manifest
from tests.training.test_coach import TINY

LOADED = registry.load("tictactoe")
CONFIG = replace(TINY, generations=1, evaluation=replace(TINY.evaluation, opponents=()))


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "run"
    train(LOADED, CONFIG, path, threads=1)
    return path


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    """A run of one generation, to be changed."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def resume(folder: Path, **changes: object) -> TrainedRun:
    return train(LOADED, replace(CONFIG, generations=2, **changes), folder, threads=1, resume=True)


def vouch_for(folder: Path, name: str, **state: object) -> None:
    """The manifest names the file as it is now, and has that state."""
    path = folder / name
    entry = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    for manifest in folder.glob("manifest_*.json"):
        reseal_manifest(manifest, lambda m: (m["files"].__setitem__(name, entry), m["state"].update(state)))


def test_a_replay_holds_no_more_samples_than_the_settings_allow(folder: Path):
    n = 8 * most_games(LOADED.game, 1) * LOADED.game.max_plies // 7
    zeros = np.zeros(n, np.float32)
    arrays = {"states": np.zeros((n, 2), np.uint64), "policies": np.zeros((n, 9), np.float32)}
    write_npz(folder / "replay_0001.npz", arrays | {"outcomes": zeros, "values": zeros})
    del arrays, zeros
    vouch_for(folder, "replay_0001.npz", samples=[n])
    tracemalloc.start()
    with pytest.raises(StorageError, match=r"replay_0001.npz is damaged, or was not written by alphazero: .*n <= "):
        resume(folder)
    assert tracemalloc.get_traced_memory()[1] < 60 << 20
    tracemalloc.stop()


def test_games_in_progress_are_no_more_than_the_settings_allow(folder: Path):
    n = most_games(LOADED.game, 1) * 8 // 7
    arrays = {f"{name}_0": array.zeros() for name, array in saved_arrays(LOADED.game, n).items()}
    write_npz(folder / "games_0001.npz", arrays)
    del arrays
    vouch_for(folder, "games_0001.npz", slots=n)
    with pytest.raises(StorageError, match=r"games_0001.npz is damaged, or was not written by alphazero: .*slots <= "):
        resume(folder)


def test_a_run_goes_on_with_fewer_games_than_before(folder: Path):
    """Its replay has more than the new settings ask for."""
    run = resume(folder, self_play=replace(CONFIG.self_play, games_per_generation=6, num_slots=6))
    before, after = run.metrics
    assert after["generation"] == 2 and after["games"] < before["games"]


def test_a_run_without_a_net_does_not_say_how_large_it_is(tmp_path: Path, monkeypatch):
    """Nothing is there to hold its sizes against: the sensible is the limit."""
    path = tmp_path / "run"
    net = replace(CONFIG.net, channels=4096, blocks=4096)
    settings = {"game": "tictactoe", "seed": 0, "threads": 1, "settings": asdict(replace(CONFIG, net=net))}
    RunFolder.create(path, settings).close()
    config = read_saved(path, "tictactoe", CONFIG).config
    monkeypatch.setattr("alphazero.nets.resnet.ResNet.__init__", lambda *arguments: pytest.fail("the net is made"))
    with pytest.raises(InvalidSetting, match="has 4,947,.* bytes or more, and at most 536,870,912 are allowed"):
        train(LOADED, config, path, threads=1, resume=True)
    with pytest.raises(InvalidSetting, match="choose smaller sizes"):
        train(LOADED, config, tmp_path / "new", threads=1)
    assert not (tmp_path / "new").exists()


# --- another version: an older run goes on as it was, a newer one is left alone ---


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
