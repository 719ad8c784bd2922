"""A run folder is created once, opened by one process at a time, and its lock is a plain file."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading

import pytest

from alphazero.errors import InputError, RunFolderError
from alphazero.storage.folder_lock import FolderLock
from alphazero.storage.manifest import latest_manifest
from alphazero.storage.run_folder import RunFolder
from alphazero.storage.run_names import resolve_checkpoint
from tests.storage.small_run import checksums, start


def test_a_folder_that_holds_a_run_is_not_begun_anew(folder):
    before = checksums(folder)
    for name in ("config.json", "manifest_0002.json", "manifest_0003.json", "metrics.jsonl"):
        there = (folder / "config.json").exists()
        said = "add resume=True to go on, or choose another folder" if there else "restore the file"
        with pytest.raises(InputError, match=said):
            RunFolder.create(folder, {})
        assert checksums(folder) == before
        (folder / name).unlink()
        del before[name]


@pytest.mark.parametrize("config", [None, b'{"a"', b"[]"])
def test_what_is_not_a_run_folder_is_not_opened(tmp_path, config):
    path = tmp_path / "run"
    if config is not None:
        path.mkdir()
        (path / "config.json").write_bytes(config)
    with pytest.raises(InputError, match="run"):
        RunFolder.open(path)
    if config is not None:  # the failed try holds no lock
        (path / "config.json").write_bytes(b"{}")
        RunFolder.open(path).close()
    else:
        with pytest.raises(RunFolderError):
            latest_manifest(path)
        path.write_bytes(b"")
        with pytest.raises(RunFolderError, match="cannot make the run folder"):
            RunFolder.create(path, {})


HOLDER = """
import sys
from alphazero.errors import RunFolderError
from alphazero.storage.run_folder import RunFolder
print("ready", flush=True)
sys.stdin.readline()
try:
    run = RunFolder.open(sys.argv[1])
except RunFolderError as error:
    print(error, flush=True)
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
        assert f"{folder} is in use by process {winner.pid} on {socket.gethostname()}; " in answer
    assert latest_manifest(folder).generation == 3  # readers need no lock
    assert resolve_checkpoint(str(folder)).name == "generation_0003.safetensors"
    winner.kill()
    for child in children:
        child.communicate(timeout=60)
        assert child.returncode == (-signal.SIGKILL if child is winner else 2)
    RunFolder.open(folder).close()


@pytest.mark.parametrize(("host", "shown"), [("b\u00fcro-pc", r"b\xfcro-pc"), ("b\udcfcro", r"b\udcfcro")])
def test_a_computer_may_have_any_name(tmp_path, monkeypatch, host, shown):
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    with RunFolder.create(tmp_path / "run", {}) as run:
        run.check()
        for attempt in (RunFolder.open, lambda path: RunFolder.create(path, {})):
            with pytest.raises(RunFolderError, match=re.escape(f"in use by process {os.getpid()} on {shown}; ")):
                attempt(tmp_path / "run")
    assert not (tmp_path / "run" / "lock_holder").exists()


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_the_name_of_the_holder_is_written_to_no_other_file(folder, kind):
    precious = folder.parent / "precious"
    precious.write_bytes(b"precious")
    if kind == "link":
        (folder / "lock_holder").symlink_to(precious)
    else:
        os.mkfifo(folder / "lock_holder")  # opened in the ordinary way it would wait for ever
    with RunFolder.open(folder), pytest.raises(RunFolderError, match=f"in use by process {os.getpid()} on"):
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


def test_the_lock_is_held_in_every_thread(tmp_path):
    """Signals are logged by a thread of their own, into a folder that must still be ours."""
    with RunFolder.create(tmp_path / "run", {}) as run:
        found = []
        thread = threading.Thread(target=lambda: (run.check(), run.log.add("from a thread"), found.append(True)))
        thread.start()
        thread.join()
        assert found == [True] and "from a thread" in (tmp_path / "run" / "run.log").read_text()


def test_a_lock_with_the_number_of_a_closed_stdin_is_held(tmp_path):
    before = os.dup(0)
    os.close(0)
    try:
        lock = FolderLock(tmp_path)
        assert lock._lock._context.lock_file_fd == 0 and lock.is_held()
        lock.release()
    finally:
        os.dup2(before, 0)
        os.close(before)
