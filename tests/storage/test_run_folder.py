"""What a run folder holds: generations, metrics, settings, names of checkpoints; a full disk and a lost folder."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from alphazero.errors import CheckpointError, InvalidSetting, RunFolderError, Stopped, StorageError
from alphazero.settings import settings_changed
from alphazero.storage import run_folder, run_names
from alphazero.storage.arrays import write_npz
from alphazero.storage.files import atomic_write
from alphazero.storage.manifest import latest_manifest, read_config
from alphazero.storage.metrics_file import read_metrics
from alphazero.storage.run_folder import RunFolder
from alphazero.storage.run_names import new_folder, resolve_checkpoint
from tests.storage.small_run import checksums, play, resume

# What a run folder holds


def test_every_kind_of_file_is_documented(undisturbed):
    kinds = {re.sub(r"\d{4}.*", "", name) for name in checksums(undisturbed[0])}
    kinds |= {*re.findall(r"[a-z_]{4,}", run_folder._PRUNED.pattern), "never_committed", "arrived_", "shown_"}
    assert {"manifest_", "played"} <= kinds
    told = (Path(run_folder.__file__).parents[2] / "docs" / "reference" / "files.md").read_text()
    assert [kind for kind in kinds if f"`{kind}" not in told] == []


def test_the_two_newest_generations_can_be_resumed_and_all_nets_stay(undisturbed):
    cards = {f"generation_{i:04d}.{suffix}" for i in (1, 2, 3) for suffix in ("safetensors", "json")}
    resume = {f"{name}_{i:04d}.{suffix}" for i in (2, 3) for name, suffix in [("replay", "npz"), ("learner", "npz")]}
    manifests = {"manifest_0002.json", "manifest_0003.json"}
    assert set(checksums(undisturbed[0])) == cards | resume | manifests | {"config.json", "metrics.jsonl", "lock"}


def test_files_that_a_newer_manifest_still_names_are_kept(tmp_path):
    """A replay in pieces: every generation adds one and names the last three."""
    with RunFolder.create(tmp_path / "run", {}) as run:
        pieces = {}
        for i in range(1, 7):
            pieces[f"games_{i:04d}.npz"] = write_npz(run.path / f"games_{i:04d}.npz", {"i": np.array(i)})
            run.commit(i, dict(list(pieces.items())[-3:]), {"best": i})
        assert sorted(file.name for file in run.path.glob("games_*")) == [f"games_{i:04d}.npz" for i in (3, 4, 5, 6)]
        assert run.newest_valid().files == dict(list(pieces.items())[-3:])


def test_a_manifest_returns_what_was_committed(tmp_path):
    with RunFolder.create(tmp_path / "run", {}) as run:
        assert run.newest_valid() is None and latest_manifest(run.path) is None
        sha256 = atomic_write(run.path / "generation_0000.safetensors", b"net")
        run.commit(0, {"generation_0000.safetensors": sha256}, {"best": 0, "elo": [1.5, None]})
        manifest = run.newest_valid()
        assert manifest == latest_manifest(run.path)
    assert manifest.generation == 0 and manifest.state == {"best": 0, "elo": [1.5, None]}
    assert manifest.files == {"generation_0000.safetensors": sha256}


@pytest.mark.parametrize("case", ["missing", "changed", "elsewhere", "folder", "not finite"])
def test_a_generation_whose_files_are_not_sound_is_not_committed(folder, case):
    (folder.parent / "net").write_bytes(b"net")
    with RunFolder.open(folder) as run:
        sha256 = atomic_write(folder / "net", b"net")
        name, state = "net", {}
        if case == "missing":
            (folder / "net").unlink()
        elif case == "changed":
            (folder / "net").write_bytes(b"nat")
        elif case == "elsewhere":
            name = "../net"
        elif case == "folder":
            (folder / "net").unlink()
            (folder / "net").mkdir()
        else:
            state = {"loss": float("nan")}
        before = checksums(folder) if case != "folder" else None
        with pytest.raises(StorageError):
            run.commit(4, {name: sha256}, state)
        assert not (folder / "manifest_0004.json").exists()
        assert case == "folder" or checksums(folder) == before
        assert run.newest_valid().generation == 3


def test_metrics_are_kept_line_by_line_and_cut_on_resume(folder):
    with RunFolder.open(folder) as run:
        lines = run.metrics()
        assert [line["generation"] for line in lines] == [1, 2, 3]
        run.append_metrics({"generation": 4, "loss": 0.5})
        assert run.metrics() == [*lines, {"generation": 4, "loss": 0.5}]
        run.truncate_metrics(2)
        assert run.metrics() == lines[:2]
        assert len((folder / "metrics.jsonl").read_bytes().splitlines()) == 2
        assert read_metrics(folder) == lines[:2]


# Settings


def test_settings_are_sealed(folder):
    path, content = folder / "config.json", (folder / "config.json").read_bytes()
    config = read_config(folder)
    assert "config_sha256" not in config
    for offset in range(len(content)):  # every byte, one bit of it
        path.write_bytes(content[:offset] + bytes([content[offset] ^ 1 << offset % 7]) + content[offset + 1 :])
        try:
            assert set(read_config(folder)) != set(config)  # a bit of the seal's own name: no settings of this version
        except StorageError as error:
            assert len(str(error)) < 400
        else:
            assert offset in range(content.index(b"config_sha256"), content.index(b"config_sha256") + 13)


def unseal(folder):
    """Makes the run one of an older version, which sealed no settings; returns them."""
    content = json.loads((folder / "config.json").read_text())
    del content["config_sha256"]
    (folder / "config.json").write_text(json.dumps(content))
    return content


def test_settings_of_older_runs_have_no_seal_and_get_one(folder):
    content = json.loads((folder / "config.json").read_text())
    del content["config_sha256"]
    (folder / "config.json").write_text(json.dumps(content | {"seed": 8}))
    assert read_config(folder) == {"seed": 8}
    with RunFolder.open(folder) as run:
        run.write_config({"seed": 9})
        assert run.config == read_config(folder) == {"seed": 9} and run.newest_valid().generation == 3
    assert "config_sha256" in (folder / "config.json").read_text()


# Full disk, lost folder


@pytest.mark.parametrize("limit", [0, 900])
def test_when_the_disk_is_full_the_last_generation_stays(tmp_path, undisturbed, limit):
    folder = tmp_path / "run"
    code, output = play(folder, LIMIT=str(limit))
    assert code == 2
    message = output.splitlines()[-1]
    assert f"cannot write {folder}/manifest_0003.json" in message and "bytes needed" in message
    assert not list(folder.glob(".*.tmp"))
    assert latest_manifest(folder).generation == 2
    resume(folder)
    assert checksums(folder) == checksums(undisturbed[0])


@pytest.mark.parametrize("case", ["removed", "replaced by a file", "replaced by another run"])
def test_a_folder_lost_during_the_run_is_a_loud_error(folder, case):
    with RunFolder.open(folder) as run:
        folder.rename(folder.with_name("away"))
        if case == "replaced by a file":
            folder.write_bytes(b"")
        elif case == "replaced by another run":
            RunFolder.create(folder, {}).close()
        with pytest.raises(RunFolderError, match="no longer this run's folder"):
            run.commit(4, {}, {})
        with pytest.raises(RunFolderError, match="no longer this run's folder"):
            run.append_metrics({"generation": 4})
        run.log.add("lost")
        assert not folder.is_dir() or set(os.listdir(folder)) == {"config.json", "lock", "never_committed"}


# Names of checkpoints, settings


def test_the_names_of_a_checkpoint(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    for text, name in {
        "run": "generation_0003.safetensors",
        "run/": "generation_0003.safetensors",
        "run:2": "generation_0002.safetensors",
        "run:0001": "generation_0001.safetensors",
        "run/generation_0001.safetensors": "generation_0001.safetensors",
        str(folder): "generation_0003.safetensors",
        f"{folder}:1": "generation_0001.safetensors",
    }.items():
        assert resolve_checkpoint(text).resolve() == folder / name, text


def test_a_folder_means_its_best_generation(tmp_path):
    with RunFolder.create(tmp_path / "run:1", {}) as run:
        with pytest.raises(CheckpointError, match="not finished a generation yet"):
            resolve_checkpoint(str(run.path))
        files = {}
        for i in (1, 2, 3):
            name = f"generation_{i:04d}.safetensors"
            files[name] = atomic_write(run.path / name, b"net")
            run.commit(i, files, {"best": min(i, 2)})
        assert resolve_checkpoint(str(run.path)) == run.path / "generation_0002.safetensors"
        run.commit(4, {}, {"best": 9})
        with pytest.raises(CheckpointError, match=r"no generation 9; choose one that it has \(1, 2, 3\)"):
            resolve_checkpoint(str(run.path))
        run.commit(5, {}, {})
        with pytest.raises(CheckpointError, match="no generation None"):
            resolve_checkpoint(str(run.path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run:7", r"run has no generation 7; choose one that it has \(1, 2, 3\)"),
        ("runs", "'runs' is no file or folder here: name a"),
        ("run/best.safetensors", "is no file or folder"),
        ("run/config.json", "config.json' is neither a .safetensors file nor a run folder"),
        ("empty", "neither a .safetensors file nor a run folder"),
        ("run:x", "is no file or folder"),
        ("run:" + "9" * 5000, "is no file or folder"),
        ("a\0b", "is no file or folder"),
        ("../" * 2000, "is no file or folder"),
    ],
    ids=lambda text: f"{text:.12}".replace("\0", "0"),
)
def test_a_name_that_means_nothing_is_refused(folder, monkeypatch, text, message):
    monkeypatch.chdir(folder.parent)
    Path("empty").mkdir()
    with pytest.raises(CheckpointError, match=message):
        resolve_checkpoint(text)


def test_changed_settings_are_listed():
    saved = {"game": "othello", "search": {"num_simulations": 64, "noise": {"alpha": 0.3}}, "sizes": [1, 2], "old": 1}
    now = {"game": "othello", "search": {"num_simulations": 32, "noise": {"alpha": 1}}, "sizes": (1, 2), "new": True}
    assert settings_changed(saved, now) == [
        "new: (none) -> true",
        "old: 1 -> (none)",
        "search.noise.alpha: 0.3 -> 1",
        "search.num_simulations: 64 -> 32",
    ]
    assert settings_changed(saved, saved) == []


# The beginning of a run


def test_folders_that_are_chosen_together_differ_and_those_of_mistakes_are_gone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with new_folder("tictactoe") as first, new_folder("tictactoe") as second:
        assert (first, second) == (Path("runs/tictactoe-1"), Path("runs/tictactoe-2"))
        assert first.is_dir() and second.is_dir()
        RunFolder.create(second, {}).close()
    assert not first.exists() and (second / "config.json").exists()
    with pytest.raises(InvalidSetting), new_folder("nim"):
        raise InvalidSetting("a mistake")
    shutil.rmtree("runs")
    with pytest.raises(InvalidSetting), new_folder("nim"):
        raise InvalidSetting("a mistake")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_and_not_counted_is_passed_over(tmp_path, monkeypatch):
    """As `Nim-1` is on a file system to which it is the same name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_names, "choose_folder", lambda name, resume: Path("runs/nim-1"))
    (tmp_path / "runs" / "nim-1").mkdir(parents=True)
    with new_folder("nim") as folder:
        assert folder == Path("runs/nim-2")


def test_no_folder_can_be_chosen_where_nobody_can_write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").write_text("no folder")
    with (
        pytest.raises(RunFolderError, match=r"cannot make the run folder runs/nim-1: .*; choose another one"),
        new_folder("nim"),
    ):
        pass


def begin(path: Path, error: type[Exception], generation: int | None = None) -> None:
    """A new run that ends with an error, before its generation 0 if there is none."""
    with pytest.raises(error), RunFolder.create(path, {}) as run:
        run.log.add("it begins")
        (path / "wandb").mkdir()
        names = {name: atomic_write(path / name, b"x") for name in ("wandb.json", "learner_0000.json")}
        if generation is not None:
            run.commit(generation, names, {})
        raise error("a mistake")


def test_a_mistake_before_generation_0_leaves_no_run(tmp_path):
    begin(tmp_path / "run", InvalidSetting)
    assert not (tmp_path / "run").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    begin(tmp_path / "mine", InvalidSetting)
    assert (tmp_path / "mine" / "notes.txt").exists()
    RunFolder.create(tmp_path / "mine", {}).close()  # it may begin again


@pytest.mark.parametrize(("error", "generation"), [(Stopped, None), (ValueError, None), (InvalidSetting, 0)])
def test_all_else_leaves_it(tmp_path, error, generation):
    begin(tmp_path / "run", error, generation)
    assert (tmp_path / "run" / "config.json").exists() and (tmp_path / "run" / "run.log").exists()


def test_a_run_that_had_begun_before_stays(tmp_path):
    RunFolder.create(tmp_path / "run", {}).close()
    begin(tmp_path / "run", InvalidSetting)
    assert (tmp_path / "run" / "config.json").exists()
