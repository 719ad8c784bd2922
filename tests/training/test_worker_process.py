"""Self-play in other processes: the same games as on threads, and what happens when one dies or a game is faulty."""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from alphazero.catalogue import registry
from alphazero.errors import CheckpointError, InvalidSetting, Stopped, TrainingError
from alphazero.game.kernels import Kernels
from alphazero.nets.resnet import NetConfig
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import RunConfig, SelfPlayConfig
from alphazero.training.selfplay import SelfPlay, Until
from alphazero.training.worker_process import WorkerProcess, WorkerSettings, check_sendable, end_all, make_net
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
FILE = str(Path(__file__).parents[1] / "catalogue" / "general_games.py")
NET = asdict(NetConfig(blocks=1, channels=8, head_channels=4, value_hidden=8))
CONFIG = SelfPlayConfig(games_per_generation=10, temperature_plies=4, random_plies=2)
SEARCH = SearchConfig(num_simulations=6)


def work(name: str = "MoveAgainGame") -> WorkerSettings:
    return WorkerSettings(
        load=functools.partial(registry.load, f"{FILE}:{name}"), parts={}, playing_net=NET,
        config=RunConfig(net=NET, self_play=CONFIG, search=SEARCH, cache_size=1 << 10), device="cpu", inference="torch",
        deterministic=False, threads=1, num_slots=4, seed=7, first_game=1, game_stride=2,
    )  # fmt: skip


def begin(settings: WorkerSettings, weights: Path, stop: threading.Event | None = None) -> WorkerProcess:
    return WorkerProcess(settings, lambda: weights, stop or threading.Event())


@contextlib.contextmanager
def running(settings: WorkerSettings, weights: Path, stop: threading.Event | None = None) -> Iterator[WorkerProcess]:
    process = begin(settings, weights, stop)
    try:
        yield process
    finally:
        end_all([process])


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.manual_seed(3)
    loaded = registry.load(f"{FILE}:MoveAgainGame")
    loaded.make_net(loaded.game, NET).save(tmp_path / "net.safetensors", {"generation": 0})
    return tmp_path / "net.safetensors"


def on_a_thread(weights: Path) -> SelfPlay:
    loaded = registry.load(f"{FILE}:MoveAgainGame")
    kernels, net = Kernels(loaded.game), loaded.make_net(loaded.game, NET)
    net.load(weights)
    return SelfPlay(kernels, CONFIG, SEARCH, Evaluator(kernels, net, 1 << 10), 4, 7, 1, 2)


def test_a_process_plays_what_a_thread_would_and_its_death_is_said_and_not_waited_for(weights: Path):
    thread = on_a_thread(weights)
    with running(work(), weights) as process:
        for _ in range(2):
            here, there = thread.play(6), process.play(6)
            for name, array in here.arrays().items():
                np.testing.assert_array_equal(there.arrays()[name], array)
        there, here = process.counts(), thread.counts()
        assert there == replace(here, evaluations=there.evaluations)
        assert here.requests >= there.evaluations >= here.evaluations > 0  # its cache is cleared in between
        states = thread.state(), process.state()
        for name, array in states[0].items():
            np.testing.assert_array_equal(states[1][name], array)
        process.play(3)
        process.restore(states[0])
        np.testing.assert_array_equal(process.play(5).states, thread.play(5).states)
        missing = weights.with_name("missing.safetensors")
        with pytest.raises(CheckpointError, match="missing"):  # its faults are sentences
            process.ask("play_by", missing, 1, 1.0, 1.0)
        process.process.kill()
        with pytest.raises(TrainingError, match="has died"):
            process.play(5)


SPAWNING = """
import sys, threading
from pathlib import Path
from alphazero.training.worker_process import end_all
from tests.training.test_worker_process import begin, work
if __name__ == "__main__":
    process = begin(work(), Path(sys.argv[1]))
    print(len(process.state()["games"]))
    end_all([process])
"""


@pytest.mark.slow
def test_a_process_runs_no_file_of_the_current_folder_and_finds_the_users_modules(weights: Path, tmp_path: Path):
    """Python puts that folder first on the path of a program that is begun by `-c`, as a process is."""
    here = tmp_path / "here"
    here.mkdir()
    for name in ("signal", "socket", "random", "selectors"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')\nraise ImportError('shadowed')\n")
    script = tmp_path / "elsewhere" / "program.py"
    script.parent.mkdir()
    script.write_text(SPAWNING)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONSAFEPATH", None)
    done = subprocess.run(
        [sys.executable, str(script), str(weights)], cwd=here, env=environment, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("file", "name", "is_found"),
    [(__file__, None, True), ("<stdin>", None, False), (__file__, "package.module", True),
     (__file__, "package.__main__", False)],
)  # fmt: skip
def test_a_function_of_the_program_is_sent_where_a_process_finds_it(file, name, is_found, monkeypatch):
    """A process runs the program's file, but for one that was piped in, and the `__main__.py` of a package."""
    main = ModuleType("__main__")
    exec("def make_net(game, settings): ...", vars(main))
    main.__file__, main.__spec__ = file, name and ModuleSpec(name, None)
    monkeypatch.setitem(sys.modules, "__main__", main)
    with contextlib.nullcontext() if is_found else pytest.raises(InvalidSetting, match=r"a module \(a .py file\)"):
        check_sendable(main.make_net, "net")


@pytest.mark.slow
def test_a_game_beside_the_program_is_found_in_a_process(weights: Path, tmp_path: Path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "game.py").write_text(Path(FILE).read_text(encoding="utf-8"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as Python does when it begins in that folder
    settings = replace(work(), load=functools.partial(registry.load, "mine.game:MoveAgainGame"))
    with running(settings, weights) as process:
        assert len(process.state()["games"]) == 4
    assert "PYTHONSAFEPATH" not in os.environ


@pytest.mark.slow
def test_a_process_that_is_gone_after_a_wish_to_stop_is_no_fault(weights: Path):
    stop = threading.Event()
    with running(work(), weights, stop) as process:
        process.state()
        stop.set()
        process.process.terminate()
        with pytest.raises(Stopped):
            process.state()


STARTING = """
import os, time
if __name__ == "__mp_main__":  # in the process, which runs this file first
    print(os.getpid(), flush=True)
    time.sleep({patience})
from multiprocessing import Pipe
from alphazero.players.child_processes import start_worker
if __name__ == "__main__":
    process = start_worker(print, *Pipe())
    time.sleep({patience})
"""


def test_a_process_that_still_starts_ends_with_its_parent(tmp_path: Path):
    """Its imports take seconds, or as long as the program's own."""
    script = tmp_path / "parent.py"
    script.write_text(STARTING.format(patience=PATIENCE))
    command, environment = [sys.executable, str(script)], os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
        expect_gone(child)


def expect_gone(pid: int) -> None:
    """The process ends soon; it may wait for its new parent to take note."""
    end = time.monotonic() + PATIENCE / 10
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < end:
            os.kill(pid, 0)
            with contextlib.suppress(FileNotFoundError):
                if "State:\tZ" in Path(f"/proc/{pid}/status").read_text():
                    return
            time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)
        raise AssertionError(f"process {pid} goes on")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="the system stops no processes")
def test_a_process_that_does_not_answer_is_not_waited_for_for_ever(weights: Path, monkeypatch):
    monkeypatch.setattr("alphazero.training.worker_process.SECONDS_TO_ANSWER", 0.1)
    monkeypatch.setattr("alphazero.training.worker_process.SECONDS_TO_LEAVE", 0.1)
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool, running(work(), weights, stop) as process:
        process.state()
        assert process.process.pid is not None
        os.kill(process.process.pid, signal.SIGSTOP)
        answer = pool.submit(process.play, 2, Until(stop.is_set))
        stop.set()
        with pytest.raises(Stopped):
            answer.result(PATIENCE / 10)
    assert process.process.exitcode == -signal.SIGKILL


@pytest.mark.slow
def test_being_asked_to_stop_ends_the_games_early(weights: Path):
    stop = threading.Event()
    with running(work(), weights) as process:
        process.play(2)  # it is ready
        threading.Timer(1.0, stop.set).start()
        assert len(process.play(10**9, Until(stop.is_set))) > 0, "else it would have gone on for days"
        assert len(process.play(2)) > 0


def test_a_process_computes_in_a_fixed_order_if_the_run_does():
    before = torch.are_deterministic_algorithms_enabled()
    try:
        make_net(replace(work(), deterministic=True), NET)
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(before)
