"""R5, R6: a run whose disk is full, or whose folder is lost, ends with a sentence."""

import os
import resource
import shutil
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from alphazero.commands.shared import run_command
from alphazero.commands.train import main
from alphazero.storage.manifest import latest_manifest
from alphazero.storage.run_folder import LOG
from tests.reliability.killing import PATIENCE, begin, log_of, wait_until

TINY = [
    "--net.blocks", "1", "--net.channels", "8", "--threads", "1", "--search.num-simulations", "4",
    "--self-play.games-per-generation", "8", "--self-play.num-slots", "4", "--gate.games", "4", "--gate.simulations",
    "2", "--evaluation.games", "4", "--evaluation.opponents", "random",
]  # fmt: skip
ENDLESS = [*TINY, "--generations", "100000"]


def wait_for(words: str, process: BaseProcess, folder: Path) -> None:
    """Waits until the log of the run has a line with these words."""
    wait_until(lambda: (folder / LOG).exists() and words in (folder / LOG).read_text(), process)
    assert process.is_alive(), log_of(folder).read_text()


def end_of(process: BaseProcess, folder: Path) -> tuple[int | None, str]:
    """The exit code, and the one sentence that says why; fails if there is a traceback or another number of them."""
    process.join(PATIENCE)
    end = time.monotonic() + 10
    while "error: " not in (said := log_of(folder).read_text()) and time.monotonic() < end:
        time.sleep(0.05)  # another program may write it
    assert "Traceback" not in said, said
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, said
    return process.exitcode, errors[0]


# --- R5: when no more can be written, the last generation can go on ---

SLOW = [0, 1, 500, 3000, 6000, 8000, 12_000, 16_000, 20_000, 30_000, 40_000]


@pytest.mark.parametrize("limit", [2000, *(pytest.param(limit, marks=pytest.mark.slow) for limit in SLOW)])
def test_a_full_disk_ends_the_run_and_harms_nothing(limit: int, tmp_path: Path, caplog):
    run = tmp_path / "run"
    process = begin(ENDLESS, run, piped=True)
    wait_for("generation 2: saved", process, run)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))  # no file may grow beyond so many bytes
    code, sentence = end_of(process, run)
    assert code == 2 and f"cannot write {run}/" in sentence and "bytes needed" in sentence and "bytes free" in sentence
    assert not list(run.glob(".*.tmp"))
    found = latest_manifest(run)
    assert found is not None and found.generation >= 2
    again = ["--game", "tictactoe", "--run", str(run), "--resume", "--generations", str(found.generation + 1)]
    with caplog.at_level("INFO"):
        assert run_command(main, [*TINY, *again]) == 0
    assert f"going on after generation {found.generation} " in caplog.text


# --- R6: a folder that is lost, or may not be written to ---


@pytest.mark.parametrize(
    "case",
    ["replaced by a copy", *(pytest.param(case, marks=pytest.mark.slow) for case in ("removed", "moved", "replaced"))],
)
def test_a_run_that_has_lost_its_folder_says_so_and_writes_to_no_other(case: str, tmp_path: Path):
    run, away = tmp_path / "run", tmp_path / "away"
    process = begin(ENDLESS, run)
    wait_for("generation 2: saved", process, run)
    run.rename(away)
    there: set[str] = set()
    if case == "removed":
        shutil.rmtree(away)
    elif case == "replaced":
        run.mkdir()
    elif case == "replaced by a copy":
        shutil.copytree(away, tmp_path / "copy")
        there = set(os.listdir(tmp_path / "copy"))
        (tmp_path / "copy").rename(run)  # in one piece
    code, sentence = end_of(process, run)
    assert code == 2 and f"{run} is no longer this run's folder: it was closed, removed or replaced" in sentence
    assert (set(os.listdir(run)) if run.exists() else set()) == there
    if case == "moved":
        found = latest_manifest(away)
        assert found is not None and found.generation >= 2


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["generation 2: saved", "generation 2: gate"])
def test_a_run_that_may_no_longer_write_says_so(phase: str, tmp_path: Path):
    run = tmp_path / "run"
    process = begin(ENDLESS, run, obeys=True)
    wait_for(phase, process, run)
    run.chmod(0o555)
    try:
        code, sentence = end_of(process, run)
    finally:
        run.chmod(0o755)
    assert code == 2 and f"cannot write {run}/" in sentence and "make the folder writable" in sentence
    assert not [name for name in os.listdir(run) if name.endswith(".tmp")]
    assert latest_manifest(run) is not None


def test_a_read_only_folder_is_refused(tmp_path: Path):
    (tmp_path / "closed").mkdir()
    run = tmp_path / "closed" / "run"
    log_of(run).touch()
    run.parent.chmod(0o555)
    code, sentence = end_of(begin(ENDLESS, run, obeys=True), run)
    assert code == 2 and "cannot make the run folder" in sentence and "Permission denied" in sentence
