"""Figures of a run are for people: whatever is wrong with their file is moved aside, and the run goes on."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from alphazero.errors import StorageError
from alphazero.storage.files import sealed_line
from alphazero.storage.metrics_file import read_metrics, split_metrics
from alphazero.storage.run_folder import RunFolder
from tests.storage.resealing import without_seals
from tests.storage.small_run import flip


@pytest.mark.parametrize("content", [b"{", b"[]\n", b'{"loss": 1}\n', b'{"generation": NaN}\n', b"[" * 10_000])
def test_damaged_metrics_are_moved_aside(folder, content, caplog):
    lines, before = read_metrics(folder), (folder / "metrics.jsonl").read_bytes()
    (folder / "metrics.jsonl").write_bytes(before + content)
    assert read_metrics(folder) == lines
    assert "damaged lines (1), which are left out" in caplog.text
    with RunFolder.open(folder) as run:
        assert "renamed to metrics.damaged.jsonl" in caplog.text
        assert run.metrics() == lines
        run.append_metrics({"generation": 4})
    assert (folder / "metrics.damaged.jsonl").read_bytes() == before + content
    assert read_metrics(folder) == [*lines, {"generation": 4}]


def test_a_line_whose_end_was_cut_off_is_not_joined_to_the_next(folder):
    lines, path = read_metrics(folder), folder / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    with RunFolder.open(folder) as run:
        run.append_metrics({"generation": 4})
        assert run.metrics() == [*lines, {"generation": 4}]


def folder_with_a_file(path):
    path.mkdir()
    (path / "file").write_text("precious")


def link_out_of_the_folder(path):
    (path.parent.parent / "secret").write_text("secret")
    path.symlink_to("../secret")


UNUSABLE = {
    "too large": lambda path: [path.touch(), os.truncate(path, 65 << 20)],
    "too many lines": lambda path: path.write_bytes(b"x\n" * 100_001),
    "a folder": folder_with_a_file,
    "a pipe": os.mkfifo,
    "a link": link_out_of_the_folder,
}


@pytest.mark.parametrize("make", UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_metrics_that_cannot_be_used_are_moved_aside(folder, caplog, make, when):
    path = folder / "metrics.jsonl"

    def spoil():
        path.unlink()
        make(path)
        return os.lstat(path).st_ino

    found = spoil() if when == "before" else 0
    with RunFolder.open(folder) as run:
        if when == "meanwhile":
            found = spoil()
        else:
            assert run.metrics() == []
        run.append_metrics({"generation": 4})
        assert run.metrics() == [{"generation": 4}] and run.newest_valid().generation == 3
    (aside,) = folder.glob("metrics.*.jsonl")
    assert os.lstat(aside).st_ino == found and path.read_bytes() == sealed_line({"generation": 4})
    assert f"renamed to {aside.name}, and " in caplog.text


def test_what_lies_where_damaged_lines_go_stays(folder):
    aside, lines = folder / "metrics.damaged.jsonl", read_metrics(folder)
    link_out_of_the_folder(aside)
    with open(folder / "metrics.jsonl", "ab") as file:
        file.write(b"damaged\n")
    with RunFolder.open(folder) as run:
        assert run.metrics() == lines
    assert aside.is_symlink() and (folder.parent / "secret").read_text() == "secret"
    assert (folder / "metrics.damaged-2.jsonl").read_bytes().endswith(b"}\ndamaged\n")


def test_readers_keep_no_list_of_millions_of_damaged_lines(folder):
    (folder / "metrics.jsonl").write_bytes(b"x\n" * (1 << 20))
    tracemalloc.start()
    with pytest.raises(StorageError, match="metrics.jsonl has 1,048,576 lines, and at most 100,000 are allowed"):
        read_metrics(folder)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_a_line_of_megabytes_is_not_parsed(folder):
    lines = read_metrics(folder)
    with open(folder / "metrics.jsonl", "ab") as file:
        file.write(b'{"generation": 4, ' + b", ".join(b'"%d": 1' % i for i in range(200_000)) + b"}\n")
    assert read_metrics(folder) == lines


def test_no_flipped_bit_of_a_figure_is_believed(folder, caplog):
    """Each line is sealed: 1,394 of 3,000 flips once gave other figures, as 52 games where there were 12."""
    path, lines = folder / "metrics.jsonl", read_metrics(folder)
    content = path.read_bytes()
    first = content.splitlines(keepends=True)[0]
    for bit in range(8 * len(first)):
        path.write_bytes(first)
        flip(path, bit)
        found, damaged = split_metrics(folder)
        whole = len(damaged) == 0 and found == lines[:1]  # the line break at the end alone may be another byte
        assert whole == (found != []) and (not whole or bit // 8 == len(first) - 1)
    path.write_bytes(content.replace(b'"generation": 2', b'"generation": 3'))
    assert read_metrics(folder) == [lines[0], lines[2]]
    assert "damaged lines (1), which are left out" in caplog.text and "lacks the generations 2: " in caplog.text


@pytest.mark.parametrize("lose", [Path.unlink, lambda path: path.write_bytes(b"")], ids=["gone", "empty"])
def test_figures_that_are_gone_are_said(folder, caplog, lose):
    lose(folder / "metrics.jsonl")
    assert read_metrics(folder) == []
    said = f"{folder / 'metrics.jsonl'} lacks the generations 1-3: tables and pictures have gaps, and the run is not"
    assert caplog.text.count(said) == 1
    with RunFolder.open(folder) as run:
        run.truncate_metrics(3)
        run.append_metrics({"generation": 4})
    assert caplog.text.count(said) == 2 and read_metrics(folder) == [{"generation": 4}]


def test_lines_of_an_older_version_are_read_and_go_on(folder):
    """They have no seal, and the next ones have."""
    path, lines = folder / "metrics.jsonl", read_metrics(folder)
    path.write_text(without_seals(path.read_text()))
    before = path.read_bytes()
    assert b"sha256" not in before and read_metrics(folder) == lines
    with RunFolder.open(folder) as run:
        run.truncate_metrics(3)
        run.append_metrics({"generation": 4})
        assert run.metrics() == [*lines, {"generation": 4}]
    assert path.read_bytes() == before + sealed_line({"generation": 4})
