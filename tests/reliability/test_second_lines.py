"""Protections that stand behind others, each tested by itself: what reaches the disk, and when; no pickle."""

from __future__ import annotations

import os
import pickle
import re
import stat
import zipfile
from pathlib import Path

import pytest

from alphazero.errors import StorageError
from alphazero.storage import arrays
from alphazero.storage import files as storage


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Every fsync as ("file" or "folder", inode, bytes), and every replacement as ("replace", 0, 0), in their order."""
    seen: list[tuple[str, int, int]] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        found = os.fstat(descriptor)
        seen.append(("folder" if stat.S_ISDIR(found.st_mode) else "file", found.st_ino, found.st_size))
        fsync(descriptor)

    def noted_replace(source: object, target: object) -> None:
        seen.append(("replace", 0, 0))
        replace(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    return seen


def test_a_file_is_on_disk_before_it_takes_its_place_and_its_name_after(tmp_path: Path, events):
    storage.atomic_write(tmp_path / "a.bin", b"x" * 1000)
    found = (tmp_path / "a.bin").stat()
    assert events == [("file", found.st_ino, 1000), ("replace", 0, 0), ("folder", tmp_path.stat().st_ino, events[2][2])]


def test_lines_are_on_disk_when_they_are_added_and_so_is_the_name_of_a_new_file(tmp_path: Path, events):
    storage.append(tmp_path / "a.jsonl", b"one\n")
    storage.append(tmp_path / "a.jsonl", b"three\n")
    inode = (tmp_path / "a.jsonl").stat().st_ino
    folder = ("folder", tmp_path.stat().st_ino, tmp_path.stat().st_size)
    assert events == [("file", inode, 4), folder, ("file", inode, 10)]


class Gadget:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace: Path):
        self.trace = str(trace)

    def __reduce__(self):
        return os.mkdir, (self.trace,)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive with an array of objects, whose header is otherwise as ours and agrees with the size."""
    content = pickle.dumps(Gadget(tmp_path / "trace"))
    content += bytes(-len(content) % 8)  # as if it held numbers of eight bytes
    header = f"{{'descr': '|O8', 'fortran_order': False, 'shape': ({len(content) // 8},), }}\n".encode()
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.npy", arrays._NPY_MAGIC + len(header).to_bytes(2, "little") + header + content)
    return tmp_path / "a.npz"


def test_an_array_of_objects_is_refused_by_its_header(archive: Path):
    with pytest.raises(StorageError, match="has no header of ours"):
        arrays.read_npz(archive, {"a": arrays.Array(object, ("n",))})


def test_no_array_is_unpickled_even_if_its_header_were_taken(archive: Path, monkeypatch):
    """Headers of arrays of objects are refused; here they pass, and the objects are still not made."""
    header = re.compile(arrays._NPY_HEADER.pattern.replace("[biuf]", "[biufO]"))
    monkeypatch.setattr(arrays, "_NPY_HEADER", header)
    with pytest.raises(StorageError, match="OBJECT array"):
        arrays.read_npz(archive, {"a": arrays.Array(object, ("n",))})
    assert not (archive.parent / "trace").exists()
