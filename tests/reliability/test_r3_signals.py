"""R3: Ctrl-C and SIGTERM end a command at any moment, soon, with one sentence, and lose nothing that was finished."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from alphazero.storage.manifest import latest_manifest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 10
"""A command ends 1.5 s after the signal at the latest; a busy machine takes longer to notice."""
LIMIT = 300
"""Seconds until the moment must have come."""
NET = ["--net.blocks", "1", "--net.channels", "8", "--threads", "1"]
SHORT = [
    "--game", "tictactoe", *NET, "--search.num-simulations", "4", "--self-play.games-per-generation", "8",
    "--self-play.num-slots", "4", "--gate.games", "4", "--gate.simulations", "2", "--evaluation.games", "4",
    "--evaluation.opponents", "random", "--generations", "100000",
]  # fmt: skip
PLAYER = """
from pathlib import Path

def policy(observations):
    Path("asked").touch()
    return observations.flatten(1)[:, :9]
"""


@dataclass
class Moment:
    """A command, and the sign that the moment has come: it gets the folder and the process."""

    command: list[str]
    has_come: Callable[[Path, int], bool]
    then: tuple[float, float] = (0.0, 0.0)
    """The signal is sent so many seconds later."""
    resumes: bool = False
    """A run is left that can go on."""
    environment: dict[str, str] = field(default_factory=dict)


def logged(words: str) -> Callable[[Path, int], bool]:
    """The log of the run has a line with these words."""
    return lambda folder, pid: (folder / "run/run.log").exists() and words in (folder / "run/run.log").read_text()


def loaded(library: str) -> Callable[[Path, int], bool]:
    """The process has loaded that library."""

    def has_come(folder: Path, pid: int) -> bool:
        try:
            return library in Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            return False

    return has_come


def exists(pattern: str) -> Callable[[Path, int], bool]:
    return lambda folder, pid: any(folder.glob(pattern))


TRAIN, PIT = [str(ROOT / "main.py"), *SHORT, "--run", "run"], [str(ROOT / "pit.py")]
MANY = ["--game", "tictactoe", "--games", "1000000"]
MOMENTS = {
    "imports": Moment(TRAIN, loaded("_multiarray_umath"), (0, 1)),
    "imports of pit": Moment([*PIT, "random", "greedy", *MANY], loaded("_multiarray_umath"), (0, 1)),
    "imports of a module": Moment(["-m", "alphazero", "check", "nim"], loaded("_multiarray_umath"), (0, 0.3)),
    "compiling": Moment(TRAIN, logged("begins"), (0, 8), environment={"NUMBA_CACHE_DIR": "cache"}),
    "self-play": Moment(
        [*TRAIN, "--self-play.games-per-generation", "10000000"], logged("generation 1: self-play"), (0, 2), True
    ),
    "learning": Moment(
        [*TRAIN, "--learner.sample-reuse", "1000", "--self-play.games-per-generation", "1000"],
        logged("generation 1: learning"), (0, 2), True,
    ),
    "gate": Moment(
        [*TRAIN, "--gate.games", "1000000", "--gate.simulations", "50"], logged("generation 1: gate"), (0, 2), True
    ),
    "between generations": Moment(TRAIN, logged("generation 3: saved"), (0, 1), True),
    "matches at the end": Moment(
        [*TRAIN, "--generations", "1", "--evaluation.games", "1000000"], logged("matches at the end"), (0, 2), True
    ),
    "match": Moment([*PIT, "python:player.py:policy", "greedy", *MANY], exists("asked"), (0, 2)),
    "tournament": Moment(
        [*PIT, "random", "greedy", "minimax:9", *MANY, "--folder", "games"], exists("games/all_games.jsonl"), (0, 2)
    ),
}  # fmt: skip


def start(moment: Moment, folder: Path) -> subprocess.Popen[str]:
    (folder / "player.py").write_text(PLAYER)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **moment.environment}
    command = [sys.executable, *moment.command]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    begin = time.monotonic()
    while not moment.has_come(folder, process.pid):
        if process.poll() is not None or time.monotonic() - begin > LIMIT:
            process.kill()
            pytest.fail(f"the moment has not come: {process.communicate()}")
        time.sleep(0.01)
    return process


def sentences(said: str) -> list[str]:
    """The parts of stderr that tell of the end."""
    return [line for line in said.splitlines() if line.startswith(("interrupted", "terminated", "stopped; "))]


def interrupt(moment: Moment, folder: Path, number: signal.Signals, rng: random.Random) -> None:
    """Sends the signal at that moment, and looks at the end of the process."""
    process = start(moment, folder)
    time.sleep(rng.uniform(*moment.then))
    process.send_signal(number)
    begin = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - begin < SECONDS, said
    assert process.returncode == 128 + number and len(sentences(said)) == 1, said
    assert "Traceback" not in said and "ignored" not in said, said
    assert not list(folder.glob("run/.*.tmp"))
    if moment.resumes:
        manifest = latest_manifest(folder / "run")
        assert "--run run --resume" in said and manifest is not None
        done = said.partition("up to generation ")[2].split()
        assert int(done[0]) == manifest.generation if done else manifest.generation == 0, said
        assert f"asked to end by {number.name}" in (folder / "run/run.log").read_text()


def test_a_signal_ends_a_command_with_one_sentence(tmp_path):
    interrupt(MOMENTS["compiling"], tmp_path, signal.SIGINT, random.Random(1))  # a second after it begins


@pytest.mark.slow
@pytest.mark.parametrize("name", MOMENTS)
def test_many_signals_end_commands_with_one_sentence(name, tmp_path):
    rng = random.Random(1)
    for i in range(20):
        (tmp_path / str(i)).mkdir()
        interrupt(MOMENTS[name], tmp_path / str(i), rng.choice((signal.SIGINT, signal.SIGTERM)), rng)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_stopped_worker_does_not_outlive_the_command(tmp_path):
    """It answers nothing, so the command leaves after 1.5 s, and kills what it has begun."""
    game = str(ROOT / "tests" / "training" / "slow_game.py")
    words = [*NET[:-1], "2", "--game", game, "--self-play.games-per-generation", "100000", "--evaluation.games", "2"]
    moment = Moment(
        [str(ROOT / "main.py"), *words, "--run", "run"],
        lambda folder, pid: logged("generation 1: self-play")(folder, pid) and len(children_of(pid)) >= 2,
    )
    process = start(moment, tmp_path)
    children = children_of(process.pid)
    os.kill(children[-1], signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    end = time.monotonic() + 60
    while (left := [child for child in children if is_there(child)]) and time.monotonic() < end:
        time.sleep(0.1)
    for child in left:
        os.kill(child, signal.SIGKILL)
    assert (process.returncode, left) == (143, [])


def children_of(pid: int) -> list[int]:
    """The processes that a process has begun and that run Python of ours; the last one is a worker."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    found = [int(child) for each in lists for child in each.read_text().split()]
    return sorted(child for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes())


def is_there(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("self-play", 2),
        *(
            pytest.param(name, seed, marks=pytest.mark.slow)
            for name in ("self-play", "learning", "gate", "between generations", "matches at the end")
            for seed in range(3, 7)
        ),
    ],
)
def test_a_second_signal_leaves_the_last_checkpoint_intact(name: str, seed: int, tmp_path: Path):
    folder, rng = tmp_path, random.Random(seed)
    process = start(MOMENTS[name], folder)
    time.sleep(rng.uniform(0, 1))
    process.send_signal(signal.SIGINT)
    time.sleep(rng.uniform(0, 0.1))
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and time.monotonic() - begin < SECONDS
    assert "Traceback" not in said and len(sentences(said)) <= 1, said
    manifest = latest_manifest(folder / "run")
    assert manifest is not None
    assert manifest.generation >= (3 if name == "between generations" else 0)


SWALLOWED = """
import ctypes, sys, time
from alphazero.commands.shared import run_command
from alphazero.progress import Progress

def main(argv):
    with Progress("work") as progress:
        print("ready", flush=True)
        hook = ctypes.CFUNCTYPE(None)(wait)  # an exception in a callback of C is printed and forgotten
        hook()
        while True:
            pass

def wait():
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass

sys.exit(run_command(main))
"""


def test_an_exception_that_a_callback_swallows_is_not_the_last_word():
    process = subprocess.Popen(
        [sys.executable, "-c", SWALLOWED], env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and said.endswith("\ninterrupted\n") and time.monotonic() - begin < SECONDS
