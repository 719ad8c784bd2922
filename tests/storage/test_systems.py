"""What files and processes do on Windows and macOS, played by stand-ins, and here."""

import contextlib
import os
import subprocess
import sys

import pytest
from filelock import FileLock

from alphazero.errors import StorageError
from alphazero.storage import files, kernel_cache, systems
from alphazero.storage.files import atomic_write
from alphazero.storage.systems import PAUSES, is_locked, process_is_alive, sync


@pytest.fixture
def windows(monkeypatch):
    for module in (systems, files, kernel_cache):
        monkeypatch.setattr(module, "WINDOWS", True)


@pytest.fixture
def pauses(monkeypatch):
    """The seconds of each pause, which end at once."""
    taken: list[float] = []
    monkeypatch.setattr(systems.time, "sleep", taken.append)
    return taken


def open_elsewhere(times: int, monkeypatch):
    """`os.replace` fails so often, as while another program has the file open."""
    replace, left = os.replace, [times]

    def try_to_replace(source, target):
        if left[0]:
            left[0] -= 1
            raise PermissionError(13, "Access is denied", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", try_to_replace)


def test_a_file_that_is_open_elsewhere_for_a_moment_is_replaced_on_windows(windows, pauses, monkeypatch, tmp_path):
    open_elsewhere(3, monkeypatch)
    atomic_write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new" and pauses == [0.01, 0.02, 0.04]


def test_a_file_that_stays_open_elsewhere_is_told_on_windows(windows, pauses, monkeypatch, tmp_path):
    open_elsewhere(1_000, monkeypatch)
    with pytest.raises(StorageError, match=r"cannot write .*/a: .*end what else has it open \(a virus scanner"):
        atomic_write(tmp_path / "a", b"new")
    assert list(tmp_path.iterdir()) == [] and pauses == PAUSES


def test_elsewhere_a_refusal_is_told_at_once(pauses, monkeypatch, tmp_path):
    open_elsewhere(1, monkeypatch)
    with pytest.raises(StorageError, match="make the folder writable"):
        atomic_write(tmp_path / "a", b"new")
    assert pauses == []


def test_macos_empties_the_cache_of_the_disk(monkeypatch, tmp_path):
    asked, synced = [], []
    monkeypatch.setattr(systems.fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(systems.fcntl, "fcntl", lambda descriptor, command: asked.append((descriptor, command)))
    monkeypatch.setattr(os, "fsync", synced.append)
    sync(7)
    assert asked == [(7, 51)] and synced == []

    def refuse(descriptor, command):
        raise OSError(25, "Inappropriate ioctl for device")

    monkeypatch.setattr(systems.fcntl, "fcntl", refuse)
    sync(7)
    assert synced == [7]


def test_elsewhere_the_file_is_synced(monkeypatch):
    synced: list[int] = []
    monkeypatch.delattr(systems.fcntl, "F_FULLFSYNC", raising=False)
    monkeypatch.setattr(os, "fsync", synced.append)
    sync(7)
    assert synced == [7]


def test_a_lock_of_another_process_is_seen_and_left(tmp_path):
    path = tmp_path / "lock"
    code = f"from filelock import FileLock as L; lock = L({str(path)!r}); lock.acquire(); print(flush=True); input()"
    with (
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(other.kill)
        assert other.stdout is not None
        other.stdout.readline()
        with open(path, "rb") as file:
            assert is_locked(file.fileno())
            other.kill()
            other.wait()
            assert not is_locked(file.fileno())
        with FileLock(path, timeout=1):
            pass


class LocksOfWindows:
    """`msvcrt`, for one byte of each file."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self, held: bool):
        self.held, self.calls = held, []

    def locking(self, descriptor: int, mode: int, num_bytes: int) -> None:
        self.calls.append((descriptor, mode, num_bytes))
        if self.held and mode == self.LK_NBLCK:
            raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("held", [True, False])
def test_a_lock_is_seen_on_windows(held: bool, monkeypatch):
    locks = LocksOfWindows(held)
    monkeypatch.setattr(systems, "fcntl", None)
    monkeypatch.setattr(systems, "msvcrt", locks)
    assert is_locked(3) == held
    assert locks.calls == [(3, 2, 1)] + [(3, 0, 1)] * (not held)


def test_processes_that_live_and_that_have_ended():
    with subprocess.Popen([sys.executable, "-c", ""]) as other:
        assert process_is_alive(other.pid)
    assert process_is_alive(os.getpid()) and not process_is_alive(other.pid) and not process_is_alive(1 << 40)
