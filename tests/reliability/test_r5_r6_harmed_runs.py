"""R5, R6: a run whose disk is full, or whose folder is lost, ends with a sentence."""

import ctypes
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from alphazero.commands.shared import run_command
from alphazero.commands.train import main
from alphazero.storage.manifest import latest_manifest
from alphazero.storage.run_log import LOG

ROOT = Path(__file__).resolve().parents[2]
TINY = [
    "--game", "tictactoe", "--net.blocks", "1", "--net.channels", "8", "--threads", "1", "--search.num-simulations",
    "4", "--self-play.games-per-generation", "8", "--self-play.num-slots", "4", "--gate.games", "4",
    "--gate.simulations", "2", "--evaluation.games", "4", "--evaluation.opponents", "random",
]  # fmt: skip
ALL = ["--generations", "100000"]


def start(folder: Path, *flags: str, **options) -> subprocess.Popen[str]:
    """Trains in the folder; `options` are those of Popen."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "main.py"), *TINY, "--run", str(folder), *flags],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **options,
    )  # fmt: skip


def wait_for(process: subprocess.Popen[str], folder: Path, words: str, seconds: float = 300) -> None:
    """Waits until the log of the run has a line with these words."""
    end = time.monotonic() + seconds
    while not ((folder / LOG).exists() and words in (folder / LOG).read_text()):
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.01)


def end_of(process: subprocess.Popen[str], seconds: float = 300) -> tuple[int, str]:
    """The exit code, and the one sentence that says why; fails if there is a traceback or another number of them."""
    _, said = process.communicate(timeout=seconds)
    assert "Traceback" not in said, said
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, said
    return process.returncode, errors[0]


# --- R5: when no more can be written, the last generation can go on ---

SLOW = [0, 1, 500, 3000, 6000, 8000, 12_000, 16_000, 20_000, 30_000, 40_000]


@pytest.mark.parametrize("limit", [2000, *(pytest.param(limit, marks=pytest.mark.slow) for limit in SLOW)])
def test_a_full_disk_ends_the_run_and_harms_nothing(limit: int, tmp_path: Path, caplog):
    run = tmp_path / "run"
    process = start(run, *ALL)
    wait_for(process, run, "generation 2: saved")
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))  # no file may grow beyond so many bytes
    code, sentence = end_of(process)
    assert code == 2 and f"cannot write {run}/" in sentence and "bytes needed" in sentence and "bytes free" in sentence
    assert not list(run.glob(".*.tmp"))
    found = latest_manifest(run)
    assert found is not None and found.generation >= 2
    with caplog.at_level("INFO"):
        assert (
            run_command(main, [*TINY, "--run", str(run), "--resume", "--generations", str(found.generation + 1)]) == 0
        )
    assert f"going on after generation {found.generation} " in caplog.text


# --- R6: a folder that is lost, or may not be written to ---

DROP_FROM_BOUNDING_SET, MAY_WRITE_ANYWHERE = 24, 1
"""Of prctl and of Linux's capabilities."""


def obey_permissions() -> None:
    """Lets a process of root obey the permissions of files, as those of other users do."""
    if os.getuid() == 0:
        assert ctypes.CDLL(None).prctl(DROP_FROM_BOUNDING_SET, MAY_WRITE_ANYWHERE, 0, 0, 0) == 0


@pytest.mark.parametrize(
    "case",
    ["replaced by a copy", *(pytest.param(case, marks=pytest.mark.slow) for case in ("removed", "moved", "replaced"))],
)
def test_a_run_that_has_lost_its_folder_says_so_and_writes_to_no_other(case: str, tmp_path: Path):
    run, away = tmp_path / "run", tmp_path / "away"
    process = start(run, *ALL)
    wait_for(process, run, "generation 2: saved")
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
    code, sentence = end_of(process)
    assert code == 2 and f"{run} is no longer this run's folder: it was closed, removed or replaced" in sentence
    assert (set(os.listdir(run)) if run.exists() else set()) == there
    if case == "moved":
        found = latest_manifest(away)
        assert found is not None and found.generation >= 2


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["generation 2: saved", "generation 2: gate"])
def test_a_run_that_may_no_longer_write_says_so(phase: str, tmp_path: Path):
    run = tmp_path / "run"
    process = start(run, *ALL, preexec_fn=obey_permissions)
    wait_for(process, run, phase)
    run.chmod(0o555)
    try:
        code, sentence = end_of(process)
    finally:
        run.chmod(0o755)
    assert code == 2 and f"cannot write {run}/" in sentence and "make the folder writable" in sentence
    assert not [name for name in os.listdir(run) if name.endswith(".tmp")]
    assert latest_manifest(run) is not None


def test_a_read_only_folder_is_refused(tmp_path: Path):
    (tmp_path / "closed").mkdir(mode=0o555)
    code, sentence = end_of(start(tmp_path / "closed" / "run", *ALL, preexec_fn=obey_permissions))
    assert code == 2 and "cannot make the run folder" in sentence and "Permission denied" in sentence
