"""A run killed at any point goes on exactly; damage is found and said; one process at a time.

The children below play a small run: three generations whose files follow from the seed and from what the
generation before them saved. They import no torch, so they start fast.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from alphazero.errors import CheckpointError, InputError, RunFolderError, StorageError
from alphazero.settings import settings_changed
from alphazero.storage import run_folder
from alphazero.storage.files import atomic_write, read_npz, write_npz, write_sealed_json
from alphazero.storage.run_folder import RunFolder, latest_manifest, read_config, read_metrics, resolve_checkpoint

ROOT = Path(run_folder.__file__).parents[2]

SCENARIO = """
import os, resource, sys
import numpy as np
from alphazero.storage import files as storage
from alphazero.errors import InputError
from alphazero.storage.run_folder import RunFolder
from alphazero.storage.files import atomic_write, read_npz, write_npz, write_sealed_json

def go_on(run, num_generations):
    manifest = run.newest_valid()
    rng = np.random.Generator(np.random.Philox(7))
    done, games = 0, np.empty((0, 5))
    if manifest:
        done = manifest.generation
        games = read_npz(run.path / f"replay_{done:04d}.npz", 1 << 20)["games"]
        state = manifest.state["rng"]
        state["state"] = {name: np.array(words, np.uint64) for name, words in state["state"].items()}
        rng.bit_generator.state = {**state, "buffer": np.array(state["buffer"], np.uint64)}
    run.truncate_metrics(done)
    for generation in range(done + 1, num_generations + 1):
        print(f"generation {generation}", flush=True)
        games = np.concatenate([games, rng.random((4, 5))])[-10:]
        net, card = f"generation_{generation:04d}.safetensors", f"generation_{generation:04d}.json"
        replay, learner = f"replay_{generation:04d}.npz", f"learner_{generation:04d}.npz"
        files = {replay: write_npz(run.path / replay, {"games": games})}
        files[learner] = write_npz(run.path / learner, {"momentum": rng.random(3)})
        files[net] = atomic_write(run.path / net, rng.bytes(1000))
        write_sealed_json(run.path / card, {"generation": generation}, "card_sha256")
        files[card] = storage.sha256_of(run.path / card)
        run.append_metrics({"generation": generation, "loss": rng.random()})
        state = rng.bit_generator.state
        state["buffer"] = state["buffer"].tolist()
        state["state"] = {name: words.tolist() for name, words in state["state"].items()}
        if os.environ.get("LIMIT") and generation == num_generations:
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(os.environ["LIMIT"]),) * 2)
        run.commit(generation, files, {"best": generation, "rng": state})

def main(folder, num_generations):
    begun = os.path.exists(os.path.join(folder, "config.json"))
    with RunFolder.open(folder) if begun else RunFolder.create(folder, {"seed": 7}) as run:
        go_on(run, num_generations)

if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]))
    except InputError as error:
        print(error)
        sys.exit(2)
    print({name: times for name, times in storage._times_reached.items()})
"""


def start(*arguments, code=SCENARIO, **environment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **environment}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def play(folder, num_generations=3, fault="", **environment):
    """Starts the run, or goes on with it; returns exit code and output."""
    child = start(folder, num_generations, ALPHAZERO_FAULT=fault, **environment)
    output, errors = child.communicate(timeout=60)
    assert "Traceback" not in errors, errors
    return child.returncode, output


def resume(folder, num_generations=3):
    """Goes on with the run (or begins one) in this process, which is faster than another child."""
    scenario = {"__name__": "scenario"}
    exec(SCENARIO, scenario)
    scenario["main"](folder, num_generations)


def checksums(folder):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A run of three generations that nothing happened to; look, do not touch."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    code, output = play(folder, fault="count only:1")
    assert code == 0
    return folder, json.loads(output.splitlines()[-1].replace("'", '"'))


@pytest.fixture
def folder(undisturbed, tmp_path):
    """A copy of that run, to damage."""
    return Path(shutil.copytree(undisturbed[0], tmp_path / "run"))


def flip(path, bit=400):
    with open(path, "r+b") as file:
        file.seek(bit // 8)
        byte = file.read(1)[0]
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


# Killed and resumed

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


@pytest.mark.parametrize("fault", FAULTS)
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


def kill_at_random(tmp_path, seed, undisturbed):
    folder, rng = tmp_path / "run", np.random.default_rng(seed)
    child = start(folder, 1000)  # it has far to go, so the kill cannot come too late
    for _ in range(rng.integers(1, 4)):
        child.stdout.readline()
    time.sleep(rng.uniform(0, 0.02))
    child.kill()
    child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    with RunFolder.open(folder) as run:
        manifest = run.newest_valid()
    done = max(3, 1 + (manifest.generation if manifest else 0))
    resume(folder, done)
    if done > 3:
        undisturbed = tmp_path / "undisturbed"
        resume(undisturbed, done)
    assert checksums(folder) == checksums(undisturbed)


@pytest.mark.parametrize("seed", range(4))
def test_killed_at_a_random_time_a_run_ends_like_one_that_was_not(tmp_path, undisturbed, seed):
    kill_at_random(tmp_path, seed, undisturbed[0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 100))
def test_killed_at_many_random_times_a_run_ends_like_one_that_was_not(tmp_path, undisturbed, seed):
    kill_at_random(tmp_path, seed, undisturbed[0])


# What a run folder holds


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


@pytest.mark.parametrize("content", [b"{", b"[]\n", b'{"loss": 1}\n', b'{"generation": NaN}\n', b"[" * 10_000])
def test_damaged_metrics_are_moved_aside(folder, content, caplog):
    lines = read_metrics(folder)
    with open(folder / "metrics.jsonl", "ab") as file:
        file.write(content)
    assert read_metrics(folder) == lines
    assert "damaged lines (1), which are left out" in caplog.text
    with RunFolder.open(folder) as run:
        assert "are now in metrics.damaged.jsonl" in caplog.text
        assert run.metrics() == lines
        run.append_metrics({"generation": 4})
    assert (folder / "metrics.damaged.jsonl").read_bytes() == content.rstrip() + b"\n"
    assert (folder / "metrics.jsonl").read_bytes().splitlines()[-1] == b'{"generation": 4}'


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


def test_settings_of_older_runs_have_no_seal(folder):
    content = json.loads((folder / "config.json").read_text())
    del content["config_sha256"]
    (folder / "config.json").write_text(json.dumps(content))
    assert read_config(folder) == content


# Damage


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
    "newer format": forged(format=2),
}


@pytest.mark.parametrize("manifest", HOSTILE_MANIFESTS.values(), ids=HOSTILE_MANIFESTS)
def test_hostile_manifests_are_passed_over(folder, caplog, manifest):
    (folder.parent / "generation_0004").write_bytes(b"secret")
    (folder / "generation_0004").symlink_to("../generation_0004")
    os.mkfifo(folder / "generation_pipe")
    write_sealed_json(folder / "manifest_0004.json", manifest, "manifest_sha256")
    started = time.monotonic()
    assert RunFolder.open(folder).newest_valid().generation == 3
    assert "generation 4 is unusable" in caplog.text
    assert time.monotonic() - started < 2
    assert (folder.parent / "generation_0004").read_bytes() == b"secret"


def test_the_manifest_that_the_forgeries_start_from_would_be_accepted(folder):
    (folder / "generation_0004").write_bytes(b"secret")
    files = {"generation_0004": forged()["files"]["../generation_0004"]}
    write_sealed_json(folder / "manifest_0004.json", forged(files=files), "manifest_sha256")
    assert RunFolder.open(folder).newest_valid().generation == 4


# Full disk, lost folder


@pytest.mark.parametrize("limit", [0, 100, 900])
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
        if case != "replaced by another run":
            with pytest.raises(StorageError, match="cannot write"):
                run.append_metrics({"generation": 4})
        assert not folder.is_dir() or not (folder / "manifest_0004.json").exists()


def test_a_closed_run_commits_nothing(folder):
    run = RunFolder.open(folder)
    run.close()
    run.close()
    with pytest.raises(RunFolderError):
        run.commit(4, {}, {})


# Creating, opening, locking


def test_a_folder_that_holds_a_run_is_not_begun_anew(folder):
    before = checksums(folder)
    for name in ("config.json", "manifest_0002.json", "manifest_0003.json", "metrics.jsonl"):
        with pytest.raises(RunFolderError, match="add --resume to go on, or choose another folder"):
            RunFolder.create(folder, {})
        assert checksums(folder) == before
        (folder / name).unlink()
        del before[name]


def test_an_empty_folder_and_a_missing_one_can_hold_a_new_run(tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "new" / "run"):
        with RunFolder.create(path, {"search": {"c_puct": 1.5}}) as run:
            assert run.config == {"search": {"c_puct": 1.5}}
        with RunFolder.open(path) as run:
            assert run.config == {"search": {"c_puct": 1.5}}


@pytest.mark.parametrize("case", ["missing", "file", "no config", "config damaged", "config a list", "config a pipe"])
def test_what_is_not_a_run_folder_is_not_opened(tmp_path, case):
    path = tmp_path / "run"
    if case == "file":
        path.write_bytes(b"")
    elif case != "missing":
        path.mkdir()
    if case == "config damaged":
        (path / "config.json").write_bytes(b'{"a"')
    elif case == "config a list":
        (path / "config.json").write_bytes(b"[]")
    elif case == "config a pipe":
        os.mkfifo(path / "config.json")
    with pytest.raises(InputError, match="run"):
        RunFolder.open(path)
    if case == "file":
        with pytest.raises(RunFolderError, match="cannot make the run folder"):
            RunFolder.create(path, {})
    if "config" not in case:
        with pytest.raises(RunFolderError):
            latest_manifest(path)
    assert not (path / "lock").exists() or case.startswith("config")
    if case == "config damaged":  # the failed try holds no lock
        (path / "config.json").write_bytes(b"{}")
        RunFolder.open(path).close()


HOLDER = """
import sys
from alphazero.errors import RunFolderError
from alphazero.storage.run_folder import RunFolder
import time
print("ready", flush=True)
sys.stdin.readline()
started = time.monotonic()
try:
    run = RunFolder.open(sys.argv[1])
except RunFolderError as error:
    print(f"{time.monotonic() - started:.3f}", error, flush=True)
    sys.exit(2)
print("won", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("num_starts", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_of_processes_that_start_together_exactly_one_gets_the_folder(folder, num_starts):
    children = [start(folder, code=HOLDER) for _ in range(num_starts)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    answers = [child.stdout.readline() for child in children]
    winner = children[answers.index("won\n")]
    losers = [answer for answer in answers if answer != "won\n"]
    assert len(losers) == num_starts - 1
    for answer in losers:
        seconds, _, message = answer.partition(" ")
        assert float(seconds) < 2
        assert f"{folder} is in use by process {winner.pid} on {socket.gethostname()}; " in message
    assert latest_manifest(folder).generation == 3  # readers need no lock
    assert resolve_checkpoint(str(folder)).name == "generation_0003.safetensors"
    winner.kill()
    for child in children:
        child.communicate(timeout=60)
        assert child.returncode == (-signal.SIGKILL if child is winner else 2)
    RunFolder.open(folder).close()


def test_a_second_opener_in_the_same_process_is_refused(folder):
    with RunFolder.open(folder):
        for attempt in (RunFolder.open, lambda path: RunFolder.create(path, {})):
            with pytest.raises(RunFolderError, match=f"in use by process {os.getpid()} on"):
                attempt(folder)
    RunFolder.open(folder).close()


def test_a_holder_that_has_not_written_its_name_is_another_process(folder):
    lock = FileLock(folder / "lock")
    with lock:
        started = time.monotonic()
        with pytest.raises(RunFolderError, match="in use by another process"):
            RunFolder.open(folder)
        assert time.monotonic() - started < 2
    RunFolder.open(folder).close()


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_the_name_of_the_holder_is_written_to_no_other_file(folder, kind):
    precious = folder.parent / "precious"
    precious.write_bytes(b"precious")
    if kind == "link":
        (folder / "lock_holder").symlink_to(precious)
    else:
        os.mkfifo(folder / "lock_holder")  # opened in the ordinary way it would wait for ever
    with RunFolder.open(folder):
        assert not (folder / "lock_holder").is_symlink() and (folder / "lock_holder").is_file()
        with pytest.raises(RunFolderError, match=f"in use by process {os.getpid()} on"):
            RunFolder.open(folder)
    assert precious.read_bytes() == b"precious"


def test_a_lock_that_was_removed_ends_the_run(folder):
    with RunFolder.open(folder) as run:
        (folder / "lock").unlink()
        with pytest.raises(RunFolderError, match="no longer this run's folder"):
            run.commit(4, {}, {})
        RunFolder.open(folder).close()  # another process may have it now


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_a_lock_that_is_no_file_is_refused_and_left_alone(folder, kind):
    (folder.parent / "precious").write_bytes(b"precious")
    (folder / "lock").unlink()
    if kind == "link":
        (folder / "lock").symlink_to("../precious")
    elif kind == "folder":
        (folder / "lock").mkdir()
    else:
        os.mkfifo(folder / "lock")
    with pytest.raises(RunFolderError, match="lock"):
        RunFolder.open(folder)
    assert (folder.parent / "precious").read_bytes() == b"precious"


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
        ("runs", "runs does not exist, . holds loose.safetensors"),
        ("run/best.safetensors", "does not exist, run holds generation_0001.safetensors, generation_0002"),
        ("run/config.json", "config.json is neither a .safetensors file nor a run folder, run holds"),
        ("empty", "neither a .safetensors file nor a run folder, empty holds no .safetensors file"),
        ("nets", r"neither .*, nets holds net00.safetensors ... net19.safetensors \(20 in all\)"),
        ("empty:3", "does not exist"),
        ("run:", "does not exist"),
        ("run:x", "does not exist"),
        ("run:" + "9" * 5000, "does not exist"),
        ("", "neither a .safetensors file nor a run folder|does not exist"),
        ("a\0b", "does not exist"),
        ("../" * 2000, "does not exist"),
    ],
    ids=lambda text: f"{text:.12}".replace("\0", "0"),
)
def test_a_name_that_means_nothing_is_answered_with_what_is_there(folder, monkeypatch, text, message):
    monkeypatch.chdir(folder.parent)
    Path("loose.safetensors").write_bytes(b"")
    Path("empty").mkdir()
    Path("nets").mkdir()
    for i in range(20):
        Path(f"nets/net{i:02d}.safetensors").write_bytes(b"")
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


def test_the_children_play_what_this_file_says(undisturbed):
    """The replay of generation 3 holds the ten newest of the twelve games, so a resume does depend on it."""
    games = read_npz(undisturbed[0] / "replay_0003.npz", 10_000)["games"]
    before = read_npz(undisturbed[0] / "replay_0002.npz", 10_000)["games"]
    assert games.shape == (10, 5) and before.shape == (8, 5)
    np.testing.assert_array_equal(games[:6], before[2:])


@pytest.fixture(autouse=True)
def hear_warnings(caplog):
    caplog.set_level(logging.WARNING, logger="alphazero.storage.run_folder")
