"""`run.log`: lines that say when what began, in a file of the run's own, of bounded size."""

import logging
import os
import re

import pytest

from alphazero.errors import StorageError
from alphazero.storage import run_folder
from alphazero.storage.run_folder import LOG, OLDER_LOG, RunFolder, RunLog


def lines(folder):
    return (folder / LOG).read_text().splitlines()


def test_each_line_has_its_time_and_control_characters_are_escaped(tmp_path):
    log = RunLog(tmp_path, lambda: True)
    log.add("generation 1: gate")
    log.add("two\nlines \x1b[2J\ud800")
    first, second, third = lines(tmp_path)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}  generation 1: gate", first)
    assert second.endswith("  two") and third == r"    lines \x1b[2J\ud800"


def test_a_full_log_is_moved_aside_once(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "MOST_LOG_BYTES", 1000)
    log = RunLog(tmp_path, lambda: True)
    for i in range(200):
        log.add(f"line {i}")
    assert sorted(os.listdir(tmp_path)) == [LOG, OLDER_LOG]
    assert all((tmp_path / name).stat().st_size < 1100 for name in (LOG, OLDER_LOG))
    both = (tmp_path / OLDER_LOG).read_text() + (tmp_path / LOG).read_text()
    numbers = [int(line.rpartition(" ")[2]) for line in both.splitlines()]
    assert numbers == list(range(numbers[0], 200)) and len(numbers) > 25


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_log_that_is_no_file_is_left_alone_and_stops_nothing(tmp_path, kind, caplog):
    (tmp_path / "precious").write_bytes(b"precious")
    if kind == "link":
        (tmp_path / LOG).symlink_to(tmp_path / "precious")
    elif kind == "pipe":
        os.mkfifo(tmp_path / LOG)  # opened in the ordinary way it would wait for ever
    else:
        (tmp_path / LOG).mkdir()
    log = RunLog(tmp_path, lambda: True)
    with log.recording():
        log.add("first")
        log.add("second")
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert [record.getMessage().count("cannot be written") for record in caplog.records] == [1]


def test_nothing_is_written_where_the_folder_is_not_the_runs(tmp_path):
    with RunFolder.create(tmp_path / "run", {}) as run:
        run.log.add("here")
    run.log.add("closed")
    assert len(lines(tmp_path / "run")) == 1


def test_warnings_and_errors_are_logged_and_bugs_with_their_traceback(tmp_path):
    log = RunLog(tmp_path, lambda: True)
    with pytest.raises(StorageError), log.recording():
        logging.getLogger("alphazero.training.health").warning("%d is odd", 3)
        raise StorageError("no space")
    with pytest.raises(ZeroDivisionError), log.recording():
        1 / 0  # noqa: B018
    said = [line[27:] if line[:4].isdigit() else line for line in lines(tmp_path)]
    assert said[:3] == ["warning: 3 is odd", "error: no space", "error"]
    assert said[3] == "    Traceback (most recent call last):" and said[-1] == "    ZeroDivisionError: division by zero"
    logging.getLogger("alphazero").warning("later")
    assert len(lines(tmp_path)) == len(said)
