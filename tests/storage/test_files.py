"""Writing is all or nothing whatever happens, and reading survives any file."""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from alphazero.errors import StorageError
from alphazero.storage import files as storage
from tests.storage.bounds import assert_bounded, assert_refused
from tests.storage.small_run import flip

ROOT = Path(storage.__file__).parents[2]
ALL_FAULTS = ["write.before", "write.within", "write.after", "rename.before", "rename.after"]


def run_child(code, *arguments, fault=""):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "ALPHAZERO_FAULT": fault}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def names(folder):
    return sorted(os.listdir(folder))


# Writing


def test_written_content_is_read_back_and_its_checksum_returned(tmp_path):
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # of "abc", FIPS 180-2
    path = tmp_path / "a.bin"
    assert storage.atomic_write(path, b"abc") == storage.sha256_of(path) == known
    assert path.read_bytes() == b"abc" and names(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EIO])
def test_file_systems_that_sync_no_folders_are_written_to(tmp_path, monkeypatch, number):
    sync = os.fsync

    def refuse(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageError) if number == errno.EIO else contextlib.nullcontext():
        storage.atomic_write(tmp_path / "a.bin", b"new")
    assert (tmp_path / "a.bin").read_bytes() == b"new"


def test_a_folder_that_may_be_written_but_not_read_is_written_to(tmp_path, monkeypatch):
    """The superuser may read every folder, so the answer is given here."""
    open_file = os.open

    def refuse(path, *arguments, **options):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return open_file(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    storage.atomic_write(tmp_path / "a.bin", b"new")
    storage.append(tmp_path / "a.jsonl", b"{}\n")
    assert names(tmp_path) == ["a.bin", "a.jsonl"]


@pytest.mark.parametrize("fault", ALL_FAULTS)
def test_killed_while_writing_leaves_the_old_file_or_the_new_one(tmp_path, fault):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old" * 1000)
    code = "import sys; from alphazero.storage.files import atomic_write; atomic_write(sys.argv[1], b'new' * 1000)"
    assert run_child(code, path, fault=f"{fault}:1").returncode == -9
    assert path.read_bytes() == (b"new" if fault == "rename.after" else b"old") * 1000
    stray = [name for name in names(tmp_path) if name != "a.bin"]
    assert len(stray) == (fault in ("write.within", "write.after", "rename.before"))
    if fault == "write.within":
        assert (tmp_path / stray[0]).stat().st_size == 1500
    assert storage.remove_stray_temporary_files(tmp_path) == stray
    assert names(tmp_path) == ["a.bin"]


LIMITED = """
import resource, sys
from alphazero.errors import InputError
from alphazero.storage.files import atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    atomic_write(sys.argv[1], b"n" * 100_000)
except InputError as error:
    print(error)
    sys.exit(2)
"""


@pytest.mark.parametrize("limit", [0, 50_000])
def test_a_full_disk_is_said_and_leaves_no_stump(tmp_path, limit):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    child = run_child(LIMITED, path, limit)
    assert child.returncode == 2 and not child.stderr
    assert re.search(rf"{path}.*100,000 bytes needed.*bytes free.*ulimit -f", child.stdout)
    assert names(tmp_path) == ["a.bin"] and path.read_bytes() == b"old"


def test_a_disk_that_alters_the_content_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    monkeypatch.setattr(storage, "sync", lambda number: os.pwrite(number, b"x", 0))
    with pytest.raises(StorageError, match="reads back differently"):
        storage.atomic_write(path, b"new")
    assert path.read_bytes() == b"old" and names(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("case", ["folder gone", "file as folder", "folder in place", "name too long"])
def test_what_cannot_be_written_is_said(tmp_path, case):
    path = tmp_path / "run" / ("a" * (300 if case == "name too long" else 5))
    if case == "file as folder":
        path.parent.write_bytes(b"")
    elif case != "folder gone":
        path.parent.mkdir()
    if case == "folder in place":
        path.mkdir()
    before = list(tmp_path.rglob("*"))
    with pytest.raises(StorageError, match=rf"cannot write {path}: .*\(3 bytes needed.*\); ."):
        storage.atomic_write(path, b"new")
    assert list(tmp_path.rglob("*")) == before


def test_a_link_at_the_temporary_name_is_not_followed(tmp_path, monkeypatch):
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    (tmp_path / "run").mkdir()
    monkeypatch.setattr(storage.secrets, "token_hex", lambda length: "guessed")
    (tmp_path / "run" / f".a.bin.guessed.{os.getpid()}.tmp").symlink_to(outside)
    with pytest.raises(StorageError, match="File exists"):
        storage.atomic_write(tmp_path / "run" / "a.bin", b"new")
    assert outside.read_bytes() == b"precious"
    assert names(tmp_path / "run") == []


def test_a_write_is_whole_while_another_thread_writes_the_same_file(tmp_path, monkeypatch):
    """The other begins and ends while this one's temporary file is open and empty."""
    path, copy_mode = tmp_path / "a.bin", storage._copy_mode

    def write_another(old, new):
        monkeypatch.setattr(storage, "_copy_mode", copy_mode)
        other = threading.Thread(target=storage.atomic_write, args=(path, b"another"))
        other.start()
        other.join()
        assert path.read_bytes() == b"another"

    monkeypatch.setattr(storage, "_copy_mode", write_another)
    storage.atomic_write(path, b"new")
    assert path.read_bytes() == b"new" and names(tmp_path) == ["a.bin"]


def test_only_the_temporary_files_of_dead_processes_are_removed(tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    stray = [f".a.bin.{dead.pid}.tmp", ".b.json.999999999.tmp", f".c.{os.getpid()}.tmp", ".d.0f.999999999.tmp"]
    kept = [f".a.bin.{os.getppid()}.tmp", ".hidden.tmp", "a.bin", f"a.{dead.pid}.tmp"]
    for name in stray + kept:
        (tmp_path / name).write_bytes(b"x")
    assert storage.remove_stray_temporary_files(tmp_path) == sorted(stray)
    assert names(tmp_path) == sorted(kept)


# JSON


@pytest.mark.parametrize(
    "value", [float("nan"), [float("inf")], "x" * storage.MAX_JSON_BYTES], ids=["nan", "inf", "big"]
)
def test_json_that_could_not_be_read_back_is_not_written(tmp_path, value):
    with pytest.raises(StorageError):
        storage.write_json(tmp_path / "a.json", value)
    assert names(tmp_path) == []


HOSTILE_JSON = {
    "empty": b"",
    "half": b'{"a": 1, "b',
    "deep lists": b"[" * 500_000,
    "deep dicts": b'{"a":' * 150_000,
    "nan": b'{"a": NaN}',
    "infinity": b"[-Infinity]",
    "endless integer": b"1" * 1_000_000,
    "not text": bytes(range(128, 256)),
    "zero bytes": bytes(1000),
    "too large": b"{}" + b" " * storage.MAX_JSON_BYTES,
    "pickle": pickle.dumps({"a": 1}),
}


@pytest.mark.parametrize("content", HOSTILE_JSON.values(), ids=HOSTILE_JSON)
def test_hostile_json_is_refused(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert_refused(lambda: storage.read_json(path), StorageError, "a.json")
    assert_refused(lambda: storage.read_sealed_json(path, "seal"), StorageError, "a.json")


def test_the_most_expensive_json_stays_within_bounds(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"[" + b"{}," * (storage.MAX_JSON_BYTES // 3 - 2) + b"{}]")
    assert len(storage.read_json(path)) == storage.MAX_JSON_BYTES // 3 - 1
    assert_bounded(lambda: storage.read_json(path))


def make_unreadable(path, kind):
    """Puts something that is no file of its own at `path`."""
    outside = path.parent.parent / "outside.json"
    outside.write_bytes(b"{}")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link outside":
        path.symlink_to(outside)
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    elif kind == "link to itself":
        path.symlink_to(path)
    elif kind == "socket name":
        path.symlink_to("/proc/self/fd/0")


UNREADABLE = ["missing", "pipe", "folder", "link outside", "link to a device", "link to itself", "socket name"]


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("read", [storage.read_json, storage.sha256_of, lambda path: [*storage.read_lines(path)]])
def test_only_regular_files_are_read(tmp_path, kind, read):
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "a.json"
    make_unreadable(path, kind)
    assert_refused(lambda: read(path), StorageError, "a.json")


def test_a_link_within_the_folder_and_a_linked_folder_are_fine(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.json").write_bytes(b"[1]")
    (tmp_path / "run" / "best.json").symlink_to("a.json")
    (tmp_path / "link").symlink_to("run")
    assert storage.read_json(tmp_path / "link" / "best.json") == [1]


@pytest.mark.parametrize("name", ["../a", "a/b", "/etc/passwd", "..", ".", "", ".hidden", "a\0b", "a\nb", "ä", 7, None])
def test_names_that_lead_elsewhere_are_refused(tmp_path, name):
    with pytest.raises(StorageError, match="plain file name"):
        storage.file_in(tmp_path, name)


def test_sealed_json_comes_back_even_with_numbers_as_keys(tmp_path):
    written = storage.write_sealed_json(tmp_path / "a.json", {"elo": {2: 1.5, 10: -1e-7}, "seal": "old"}, "seal")
    assert written["elo"] == {"2": 1.5, "10": -1e-7}
    assert storage.read_sealed_json(tmp_path / "a.json", "seal") == written


def test_every_flipped_bit_of_a_sealed_file_is_found(tmp_path):
    path = tmp_path / "a.json"
    storage.write_sealed_json(path, {"rate": 1e-05, "é": [1, True]}, "seal")
    for bit in range(8 * path.stat().st_size):
        flip(path, bit)
        with pytest.raises(StorageError):
            storage.read_sealed_json(path, "seal")
        flip(path, bit)
    storage.read_sealed_json(path, "seal")


# Lines


def test_lines_are_added_and_a_torn_one_is_cut_off(tmp_path):
    path = tmp_path / "lines"
    storage.drop_torn_line(path)  # no file is no fault
    storage.append(path, b"one\ntwo\n")
    storage.append(path, b"three\n")
    storage.drop_torn_line(path)
    assert path.read_bytes() == b"one\ntwo\nthree\n"
    for torn in (b"f", b"four is cut off he", b"\x00\x00"):
        with open(path, "ab") as file:
            file.write(torn)
        storage.drop_torn_line(path)
        assert path.read_bytes() == b"one\ntwo\nthree\n"
    (tmp_path / "torn").write_bytes(b"nothing whole")
    storage.drop_torn_line(tmp_path / "torn")
    assert (tmp_path / "torn").read_bytes() == b""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_line_for_which_the_disk_has_no_room_is_said_and_leaves_nothing(tmp_path):
    """A call of the system writes the part that fits and reports no error."""
    import resource

    path, line = tmp_path / "lines", b"x" * 99 + b"\n"
    storage.append(path, b"one\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (80, limits[1]))
    try:
        with pytest.raises(StorageError):
            storage.append(path, line)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    storage.append(path, b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"


def test_what_cannot_be_added_is_said(tmp_path):
    for call in (lambda path: storage.append(path, b"x\n"), storage.drop_torn_line):
        with pytest.raises(StorageError, match="is not a regular file, so it is left alone"):
            call(tmp_path)
    with pytest.raises(StorageError, match="its folder is gone"):
        storage.append(tmp_path / "none" / "x", b"x\n")


@pytest.mark.parametrize("call", [lambda path: storage.append(path, b"x\n"), storage.drop_torn_line])
def test_lines_are_not_added_to_what_a_link_leads_to(tmp_path, call):
    outside = tmp_path / "outside"
    outside.write_bytes(b"whole\ntorn")
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "games.jsonl"
    path.symlink_to(outside)
    with pytest.raises(StorageError, match="is not a regular file"):
        call(path)
    assert outside.read_bytes() == b"whole\ntorn"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StorageError, match="is not a regular file"):
        call(path)


def test_a_file_that_ends_in_no_line_is_left_as_it_is(tmp_path):
    """A terabyte of nothing, of which the end alone is looked at."""
    path = tmp_path / "lines"
    path.write_bytes(b"one\n")
    os.truncate(path, 1 << 40)
    with pytest.raises(StorageError, match="ends in a line of more than .* bytes; it was not written by alphazero"):
        storage.drop_torn_line(path)
    assert path.stat().st_size == 1 << 40
    with pytest.raises(StorageError, match="line 2 is too long: at most 1,048,576 bytes are allowed"):
        list(storage.read_lines(path))


def test_lines_are_read_one_by_one(tmp_path):
    path = tmp_path / "lines"
    longest = b"x" * (storage.MAX_LINE_BYTES - 1)
    path.write_bytes(b"one\r\n\n" + longest + b"\nlast")
    assert list(storage.read_lines(path)) == [b"one", b"", longest, b"last"]
    path.write_bytes(longest + b"xx\n")
    with pytest.raises(StorageError, match="line 1 is too long"):
        list(storage.read_lines(path))


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_replaced_stays_as_private_as_it_was(tmp_path, mode):
    path = tmp_path / "file"
    storage.atomic_write(path, b"old")
    path.chmod(mode)
    storage.atomic_write(path, b"new")
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == mode


def test_a_link_that_is_replaced_leaves_its_file_alone(tmp_path):
    private = tmp_path / "private"
    private.write_bytes(b"private")
    private.chmod(0o600)
    (tmp_path / "link").symlink_to(private)
    storage.atomic_write(tmp_path / "link", b"new")
    assert private.read_bytes() == b"private" and private.stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "link").is_symlink() and (tmp_path / "link").read_bytes() == b"new"
