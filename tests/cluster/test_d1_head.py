"""D1: the head of a cluster is killed: the command ends with a sentence, and its run goes on with a new head."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from alphazero.storage.manifest import latest_manifest
from alphazero.training.run import TrainedRun
from tests.cluster.conftest import ENVIRONMENT, needs_ray
from tests.cluster.test_d1_faults import GAME

pytestmark = needs_ray
ROOT = Path(__file__).resolve().parents[2]
TIMES = 5
PARTS = "gcs_server", "raylet"
"""The processes of a head: the one that knows the cluster, and the one that runs workers."""
RUN = [
    "--net.blocks", "1", "--net.channels", "8", "--search.num-simulations", "4",
    "--self-play.games-per-generation", "48", "--self-play.num-slots", "8", "--gate.games", "4",
    "--gate.simulations", "2", "--evaluation.opponents", "random", "--evaluation.games", "4",
    "--replay.window-start", "1000", "--replay.window-max", "1000",
]  # fmt: skip


@contextmanager
def head(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """A head on this machine, by the command that people type; gives its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "ray.scripts.scripts"]
    options = ["--head", f"--port={port}", "--node-ip-address=127.0.0.1", "--include-dashboard=false", "--num-cpus=2"]
    options += ["--disable-usage-stats", "--object-store-memory=80000000", f"--temp-dir={folder}/ray"]
    subprocess.run([*command, "start", *options], env=environment, check=True, capture_output=True, timeout=120)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        kill(processes_of(folder))


def processes_of(folder: Path, *names: str) -> list[int]:
    """The processes of Ray that work in the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            words = path.read_text(errors="replace").split("\0")
            if any(str(folder) in word for word in words) and (not names or Path(words[0]).name in names):
                found.append(int(path.parent.name))
    return found


def kill(processes: list[int]) -> None:
    for number in processes:
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


@pytest.mark.slow
def test_a_run_survives_five_heads(tmp_path: Path):
    folder, run = Path(f"/tmp/az-head-{os.getpid()}"), tmp_path / "run"  # sockets need a short path
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT), "RAY_TMPDIR": str(folder)}
    (folder / "ray").mkdir(parents=True)

    def command(generations: int, *options: str) -> list[str]:
        resume = ["--resume"] if run.exists() else RUN
        words = [sys.executable, str(ROOT / "main.py"), "--game", "tictactoe", *resume, "--threads", "1"]
        return [*words, "--run", str(run), "--generations", str(generations), *options]

    def newest() -> int:
        manifest = latest_manifest(run) if run.exists() else None
        return manifest.generation if manifest else 0

    process = None
    try:
        for i in range(TIMES):
            with head(folder, environment) as address:
                wanted, begin = newest() + 2, time.monotonic()
                process = subprocess.Popen(
                    command(1_000_000, "--cluster", address), env=environment, cwd=tmp_path, text=True,
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                )  # fmt: skip
                while newest() < wanted:
                    assert process.poll() is None and time.monotonic() - begin < 200, process.communicate()
                    time.sleep(0.1)
                killed = processes_of(folder, *PARTS[: 1 + i % 2])
                assert len(killed) == 1 + i % 2
                kill(killed)
                _, said = process.communicate(timeout=150)
            assert process.returncode == 2 and "Traceback" not in said, said
            assert said.count("error: the head of the Ray cluster does not answer") == 1, said
        end = newest() + 1
        subprocess.run(command(end), env=environment, cwd=tmp_path, check=True, capture_output=True, timeout=200)
        assert newest() == end
    finally:
        if process is not None:
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)
    rows = TrainedRun(GAME, run).metrics
    numbers = [
        number
        for row in rows[:-1]  # the last one was played without a cluster, which keeps no numbers
        for number in np.load(run / f"played_{row['generation']:04d}.npz")["games"][:, 0].tolist()
    ]
    assert len(numbers) == len(set(numbers)) >= 48 * (end - 1)
    assert [row["generation"] for row in rows] == list(range(1, end + 1))
