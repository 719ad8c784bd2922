"""Damage in a run folder is found and said, the newest sound generation is taken, forged manifests are passed over."""

from __future__ import annotations

import hashlib
import os
import time

import numpy as np
import pytest

from alphazero.errors import CheckpointError, StorageError
from alphazero.storage import manifest as manifests
from alphazero.storage.arrays import write_npz
from alphazero.storage.files import atomic_write, sha256_of, write_sealed_json
from alphazero.storage.manifest import latest_manifest, verify_manifest
from alphazero.storage.run_folder import RunFolder
from alphazero.storage.run_names import resolve_checkpoint
from tests.storage.resealing import reseal_manifest
from tests.storage.small_run import checksums, flip, play, resume

RUINED = {
    "replay cut": lambda folder: os.truncate(folder / "replay_0003.npz", 100),
    "replay gone": lambda folder: (folder / "replay_0003.npz").unlink(),
    "net gone": lambda folder: (folder / "generation_0003.safetensors").unlink(),
    "net flipped": lambda folder: flip(folder / "generation_0003.safetensors"),
    "card gone": lambda folder: (folder / "generation_0003.json").unlink(),
    "learner empty": lambda folder: (folder / "learner_0003.npz").write_bytes(b""),
    "manifest gone": lambda folder: (folder / "manifest_0003.json").unlink(),
    "manifest cut": lambda folder: os.truncate(folder / "manifest_0003.json", 100),
    "manifest flipped": lambda folder: flip(folder / "manifest_0003.json"),
    "manifest a folder": lambda folder: [
        (folder / "manifest_0003.json").unlink(),
        (folder / "manifest_0003.json").mkdir(),
    ],
}


@pytest.mark.parametrize("ruin", RUINED.values(), ids=RUINED)
def test_a_damaged_generation_is_passed_over_and_said(folder, undisturbed, caplog, ruin, request):
    ruin(folder)
    with RunFolder.open(folder) as run:
        assert run.newest_valid().generation == 2
    case = request.node.callspec.id
    if case == "manifest gone":
        assert not caplog.records  # nothing tells that there ever was one
    else:
        assert f"{case.split()[0].replace('net', 'generation').replace('card', 'generation')}_0003" in caplog.text
        assert "generation 3 is unusable" in caplog.text and "going back to generation 2" in caplog.text
    if case != "manifest a folder":
        resume(folder)
        assert checksums(folder) == checksums(undisturbed[0])


@pytest.mark.parametrize("num_cuts", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_every_cut_of_a_manifest_is_found(folder, num_cuts):
    size = (folder / "manifest_0003.json").stat().st_size
    for cut in np.linspace(size - 1, 0, num_cuts).astype(int):
        os.truncate(folder / "manifest_0003.json", cut)
        assert latest_manifest(folder).generation == 2


@pytest.mark.parametrize("num_flips", [40, pytest.param(400, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["manifest_0003.json", "generation_0003.safetensors", "generation_0003.json"])
def test_every_flipped_bit_is_found(folder, name, num_flips):
    for bit in np.random.default_rng(3).integers(8 * (folder / name).stat().st_size, size=num_flips):
        flip(folder / name, bit)
        assert latest_manifest(folder).generation == 2
        flip(folder / name, bit)
    assert latest_manifest(folder).generation == 3


@pytest.fixture
def reads_little(monkeypatch):
    """No large file is hashed: a terabyte of nothing takes hours."""
    hashed = manifests.sha256_of_open

    def small(file):
        assert os.fstat(file.fileno()).st_size < 1 << 20
        return hashed(file)

    monkeypatch.setattr(manifests, "sha256_of_open", small)


@pytest.mark.parametrize("name", ["generation_0003.safetensors", "replay_0003.npz"])
@pytest.mark.parametrize("size", [1 << 30, 1 << 40])
def test_a_file_of_another_size_is_not_hashed(folder, reads_little, name, size):
    os.truncate(folder / name, size)
    with RunFolder.open(folder) as run:
        assert run.newest_valid().generation == 2


@pytest.mark.parametrize(("name", "size"), [("generation_0003.safetensors", 1 << 31), ("replay_0003.npz", 1 << 40)])
def test_a_manifest_that_vouches_for_an_absurd_file_is_passed_over_unread(folder, reads_little, caplog, name, size):
    os.truncate(folder / name, size)
    entry = {"bytes": size, "sha256": "0" * 64}
    reseal_manifest(folder / "manifest_0003.json", lambda manifest: manifest["files"].update({name: entry}))
    with RunFolder.open(folder) as run:
        assert run.newest_valid().generation == 2
        with pytest.raises(StorageError, match="is larger than any such file"):
            run.commit(4, {name: "0" * 64}, {})
    assert f"{name} is larger than any such file" in caplog.text


def test_older_replays_that_are_damaged_or_gone_are_left_out(folder, caplog):
    older = ["replay_0001.npz", "replay_0002.npz"]
    for name in older:
        write_npz(folder / name, {"games": np.ones(3)})
    sealed = {name: {"bytes": os.path.getsize(folder / name), "sha256": sha256_of(folder / name)} for name in older}
    reseal_manifest(folder / "manifest_0003.json", lambda manifest: manifest["files"].update(sealed))
    flip(folder / older[0])
    (folder / older[1]).unlink()
    manifest = verify_manifest(folder, 3)
    assert list(manifest.lost) == older and not manifest.lost.keys() & manifest.files.keys()
    with RunFolder.open(folder) as run:
        assert run.newest_valid() == manifest
    assert "replay_0001.npz is damaged" in caplog.text and "replay_0002.npz" in caplog.text


@pytest.mark.parametrize("ending", ["safetensors", "json"])
def test_the_newest_net_stands_in_for_a_damaged_best_one(folder, caplog, ending):
    flip(folder / f"generation_0001.{ending}")
    names = [f"generation_0001.{ending}" for ending in ("safetensors", "json")]
    sealed = {name: {"bytes": os.path.getsize(folder / name), "sha256": "0" * 64} for name in names}
    reseal_manifest(
        folder / "manifest_0003.json",
        lambda manifest: manifest["files"].update(sealed) or manifest["state"].update(best=1),
    )
    manifest = latest_manifest(folder)
    assert manifest.generation == manifest.state["best"] == 3
    assert "generation_0001" in caplog.text and "the net of generation 3 stands in for the best one" in caplog.text
    assert resolve_checkpoint(str(folder)) == folder / "generation_0003.safetensors"


def test_readers_do_not_mind_a_pruned_replay(folder):
    (folder / "replay_0003.npz").unlink()
    assert latest_manifest(folder).generation == 3


def test_a_run_never_starts_from_nothing_by_itself(folder):
    flip(folder / "generation_0002.safetensors")
    flip(folder / "replay_0003.npz")
    with RunFolder.open(folder) as run:
        with pytest.raises(CheckpointError, match="generation_0002.safetensors is damaged") as caught:
            run.newest_valid()
        assert "replay_0003.npz is damaged" in str(caught.value)
        for name in ("manifest_0002.json", "manifest_0003.json"):
            (folder / name).unlink()
        with pytest.raises(CheckpointError, match="the manifests of .* are gone"):
            run.newest_valid()
    before = checksums(folder)
    code, output = play(folder)
    assert code == 2
    assert "are gone" in output and output.count("\n") == 1
    assert checksums(folder) == before


def test_a_run_that_died_before_its_first_commit_starts_again(tmp_path):
    with RunFolder.create(tmp_path / "run", {}) as run:
        atomic_write(run.path / "generation_0001.safetensors", b"net")
    with RunFolder.open(tmp_path / "run") as run:
        assert run.newest_valid() is None
    with RunFolder.create(tmp_path / "run", {"seed": 2}) as run:  # nothing is lost by other settings either
        assert run.config == {"seed": 2} and run.newest_valid() is None


def test_files_left_behind_are_removed_and_said(folder, caplog):
    (folder / ".replay_0004.npz.999999999.tmp").write_bytes(b"half")
    (folder / "replay_0004.npz").write_bytes(b"half")  # of a generation that was not finished: ignored
    (folder / "replay_0001.npz").write_bytes(b"old")
    before = checksums(folder)
    with RunFolder.open(folder) as run:
        assert run.newest_valid().generation == 3
    assert before.keys() - checksums(folder).keys() == {".replay_0004.npz.999999999.tmp", "replay_0001.npz"}
    assert ".replay_0004.npz.999999999.tmp" in caplog.text


def test_nothing_is_pruned_on_the_word_of_a_damaged_manifest(folder):
    flip(folder / "manifest_0003.json")
    before = checksums(folder)
    with RunFolder.open(folder):
        pass
    assert checksums(folder) == before


def forged(**changes):
    entry = {"bytes": 6, "sha256": hashlib.sha256(b"secret").hexdigest()}
    return {"format": 1, "generation": 4, "files": {"../generation_0004": entry}, "state": {}} | changes


HOSTILE_MANIFESTS = {
    "path upwards": forged(),
    "path upwards, disguised": forged(
        files={"generation_/../../generation_0004": forged()["files"]["../generation_0004"]}
    ),
    "absolute path": forged(files={"/etc/passwd": {"bytes": 1, "sha256": ""}}),
    "link outside": forged(files={"generation_0004": forged()["files"]["../generation_0004"]}),
    "pipe": forged(files={"generation_pipe": {"bytes": 0, "sha256": hashlib.sha256().hexdigest()}}),
    "absurd size": forged(files={"generation_0003.json": {"bytes": 10**30, "sha256": ""}}),
    "files a list": forged(files=["generation_0003.json"]),
    "file without size": forged(files={"generation_0003.json": None}),
    "state a list": forged(state=[]),
    "another generation": forged(generation=3),
    "older format": forged(format=0),
}


@pytest.mark.parametrize("manifest", HOSTILE_MANIFESTS.values(), ids=HOSTILE_MANIFESTS)
def test_hostile_manifests_are_passed_over(folder, caplog, manifest):
    (folder.parent / "generation_0004").write_bytes(b"secret")
    (folder / "generation_0004").symlink_to("../generation_0004")
    os.mkfifo(folder / "generation_pipe")
    write_sealed_json(folder / "manifest_0004.json", manifest, "manifest_sha256")
    begin = time.process_time()
    assert RunFolder.open(folder).newest_valid().generation == 3
    assert "generation 4 is unusable" in caplog.text
    assert time.process_time() - begin < 2
    assert (folder.parent / "generation_0004").read_bytes() == b"secret"


def test_the_manifest_that_the_forgeries_start_from_would_be_accepted(folder):
    (folder / "generation_0004").write_bytes(b"secret")
    files = {"generation_0004": forged()["files"]["../generation_0004"]}
    write_sealed_json(folder / "manifest_0004.json", forged(files=files), "manifest_sha256")
    assert RunFolder.open(folder).newest_valid().generation == 4
