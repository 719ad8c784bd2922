"""Cores are counted as a container has them; the C library keeps as many pools of free memory as it is told to.

What all threads share is changed by one of them at a time.
"""

import os
import subprocess
import sys
import threading
import warnings

import pytest
import torch

from alphazero import machine
from alphazero.machine import count_cores, without_draws, without_warnings

PROGRAM = """
import ctypes, sys, threading
from alphazero.machine import limit_arenas

if sys.argv[1] != "-":
    limit_arenas(int(sys.argv[1]))
library = ctypes.CDLL(None)
library.malloc.restype = library.fopen.restype = ctypes.c_void_p
barrier = threading.Barrier(16)

def work():
    library.malloc(ctypes.c_size_t(1000))
    barrier.wait()

threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
file = library.fopen(b"arenas.xml", b"w")
library.malloc_info(0, ctypes.c_void_p(file))
library.fclose(ctypes.c_void_p(file))
print(open("arenas.xml").read().count("<heap nr="))
"""


def arenas(limit, folder, **environment):
    return int(
        subprocess.run(
            [sys.executable, "-c", PROGRAM, limit], cwd=folder, env={**os.environ, **environment},
            capture_output=True, text=True, check=True, timeout=100,
        ).stdout
    )  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is Linux's")
def test_threads_share_the_pools_that_are_allowed(tmp_path):
    assert arenas("-", tmp_path) > 3
    assert arenas("3", tmp_path) <= 3
    assert arenas("3", tmp_path, MALLOC_ARENA_MAX="6") > 3, "what the user has set holds"


RETURNING = """
import ctypes, os
from alphazero.machine import return_free_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
blocks = [library.malloc(ctypes.c_size_t(100_000)) for _ in range(1000)]
for block in blocks:
    ctypes.memset(block, 1, 100_000)
for block in blocks[:-1]:  # the last one keeps the end of the heap where it is
    library.free(ctypes.c_void_p(block))
before = resident()
return_free_memory()
print(before - resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is Linux's")
def test_free_memory_between_used_memory_is_given_back():
    said = subprocess.run([sys.executable, "-c", RETURNING], capture_output=True, text=True, check=True, timeout=100)
    assert float(said.stdout) > 80, "megabytes of 100 that were free"


KEEPING = """
import resource, sys
import numpy as np
from alphazero.machine import keep_free_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):  # as the layers of a network: each block lives on while the next ones are taken
        blocks = [np.empty(1_000_000, np.uint8) for _ in range(40)]
        for block in blocks:
            block[::4096] = 1
        del blocks, block
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "kept":
    keep_free_memory()
faults()
print(faults())
"""


def faults_of_a_loop(kept, **environment):
    command, environment = [sys.executable, "-c", KEEPING, kept], {**os.environ, **environment}
    return int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=100).stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is Linux's")
def test_memory_that_is_taken_and_freed_again_and_again_stays():
    assert faults_of_a_loop("kept") < 1000, "new pages, of 195,000 that are written to"
    assert faults_of_a_loop("kept", MALLOC_TRIM_THRESHOLD_="131072") > 50_000, "what the user has set holds"


@pytest.mark.parametrize(
    ("limit", "cores"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("20000 100000", 1),
        ("6400000 100000", 8),
        ("x", 8),
    ],
)
def test_a_container_has_as_many_cores_as_it_gets_the_time_of(limit, cores, tmp_path, monkeypatch):
    """A run in a container with two cores' time once began a thread for each of its machine's 64 cores."""
    (tmp_path / "cpu.max").write_text(f"{limit}\n")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    assert count_cores() == cores


def test_cores_are_limited_by_all_groups_that_a_job_lies_in(tmp_path, monkeypatch):
    """Slurm, systemd and containers without a view of their own limit a group deep in the tree."""
    (tmp_path / "groups").write_text("0::/slurm/job_7/step\n")
    (tmp_path / "slurm" / "job_7").mkdir(parents=True)
    (tmp_path / "slurm" / "job_7" / "cpu.max").write_text("200000 100000\n")
    monkeypatch.setattr(machine, "CGROUP", tmp_path)
    monkeypatch.setattr(machine, "OWN_GROUPS", tmp_path / "groups")
    assert machine.cpu_quota() == 2.0


class Turn:
    """A lock that tells who asks for it."""

    def __init__(self) -> None:
        self.lock, self.asked = threading.Lock(), threading.Semaphore(0)

    def __enter__(self) -> None:
        self.asked.release()
        self.lock.acquire()

    def __exit__(self, *error: object) -> None:
        self.lock.release()


@pytest.mark.parametrize(
    ("block", "work", "look"),
    [
        (without_warnings, lambda: None, lambda: list(warnings.filters)),
        (without_draws, lambda: torch.rand(1), lambda: torch.get_rng_state().tolist()),
    ],
)
def test_blocks_of_two_threads_leave_all_as_it_was(block, work, look, monkeypatch):
    """The first leaves while the second is inside, or waits: it once brought the filters of the first back for good."""
    turn, first_is_over = Turn(), threading.Event()
    monkeypatch.setattr(machine, "_turn", turn)

    def second() -> None:
        with block():
            work()
            assert first_is_over.wait(60)

    before, thread = look(), threading.Thread(target=second)
    with block():
        work()
        thread.start()
        both_have_asked = [turn.asked.acquire(timeout=60) for _ in range(2)]
    first_is_over.set()
    thread.join()
    assert all(both_have_asked) and look() == before


def test_inside_nothing_is_shown_and_draws_change_nothing():
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with without_warnings():
            warnings.warn("inside", stacklevel=1)
        warnings.warn("outside", stacklevel=1)
    assert [str(warning.message) for warning in shown] == ["outside"]
    state = torch.get_rng_state()
    with without_draws():
        torch.rand(1)
    assert torch.equal(torch.get_rng_state(), state)


BESIDE = """
import functools, os, sys, threading, time
from pathlib import Path
from alphazero import machine

machine.count_cores = lambda: 2

def work(name):
    with open(name, "a") as file:
        print(os.getpid(), file=file, flush=True)
    time.sleep(float(sys.argv[1]))

if sys.argv[2:]:
    threading.Thread(target=time.sleep, args=(1,)).start()
with machine.done_beside([functools.partial(work, str(number)) for number in range(5)]) as finish:
    while not sys.argv[2:] and not (Path("0").exists() and Path("0").read_text()):
        time.sleep(0.01)
    child = int(Path("0").read_text() or 0) if not sys.argv[2:] else 0
    if float(sys.argv[1]) < 1:
        finish()
print(os.getpid(), child, Path(f"/proc/{child}").exists())
"""


def beside(folder, *words):
    """The ids of both processes, whether the other is there at the end, and which did each work."""
    done = subprocess.run(
        [sys.executable, "-c", BESIDE, *words], cwd=folder, capture_output=True, text=True, check=True, timeout=100
    )
    here, there, remains = done.stdout.split()
    return here, there, remains == "True", [path.read_text().split() for path in sorted(folder.iterdir())]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a process is not forked")
def test_another_process_does_part_of_the_work_and_is_gone_afterwards(tmp_path):
    here, there, remains, did = beside(tmp_path, "0.1")
    assert len(did) == 5 and did[0] == [there] and [here] in did and not remains
    assert all(len(who) == 1 for who in did)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere a process is not forked")
def test_another_process_ends_when_its_work_is_not_needed(tmp_path):
    _, there, remains, did = beside(tmp_path, "100")
    assert did == [[there]] and not remains


def test_where_threads_may_hold_locks_no_process_is_forked(tmp_path):
    assert beside(tmp_path, "0", "with a thread")[3] == []
