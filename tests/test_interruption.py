"""Ctrl-C: the second one ends a command at once, and programs begun meanwhile do not get it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from alphazero.machine import held_back

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)


COMPUTING = """
import contextlib, hashlib, os, sys
from alphazero import interruption
from alphazero.commands.shared import run_command

interruption.PATIENCE = 600.0

def main(argv):
    with interruption.listening(lambda number: os.write(1, b"asked\\n")):  # a print may be under way
        print("ready", flush=True)
        while True:
            with contextlib.suppress(KeyboardInterrupt):  # of a first signal that came before it computes
                hashlib.pbkdf2_hmac("sha256", b"", b"", (1 << 31) - 1)  # in C, where no handler of Python's runs

sys.exit(run_command(main))
"""


def test_a_second_signal_ends_a_command_at_once_whatever_it_does():
    with subprocess.Popen(
        [sys.executable, "-c", COMPUTING], env=ENVIRONMENT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            for line in ("ready\n", "asked\n"):
                assert process.stdout.readline() == line
                process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130 and said == "\ninterrupted\n"


LEAVING = """
import os, signal, sys
from alphazero import interruption
from alphazero.commands.shared import run_command

class Library:
    def __del__(self, write=os.write):
        write(1, b"unloaded\\n")

def main(argv):
    print("begun")
    os.kill(os.getpid(), signal.SIGINT)

kept = Library()
signal.signal(signal.SIGINT, signal.{before})
sys.exit(run_command(main))
"""


@pytest.mark.parametrize(
    ("before", "ended"), [("default_int_handler", (130, "begun\n")), ("SIG_IGN", (0, "begun\nunloaded\n"))]
)
def test_an_interrupted_process_leaves_libraries_as_they_are(before: str, ended: tuple[int, str]):
    """One that computed on a thread, as when `serve` loads its first net, aborted the process as it was unloaded.

    What was ignored before stays so, as Ctrl-C for a job in the background of a script.
    """
    done = run(LEAVING.format(before=before))
    assert (done.returncode, done.stdout) == ended, done.stderr


def test_a_program_that_is_begun_while_signals_are_held_back_does_not_get_them():
    code = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    arrived = list[int]()
    before = signal.signal(signal.SIGINT, lambda number, frame: arrived.append(number))
    try:
        with held_back():
            os.kill(os.getpid(), signal.SIGINT)
            held = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout
        assert arrived == [signal.SIGINT]  # at the latest now: other threads, if there are any, hear it at once
    finally:
        signal.signal(signal.SIGINT, before)
    assert held == "True\n"


FORKING = """
import os, signal, sys, time
from alphazero import interruption
from alphazero.commands.shared import run_command

interruption.PATIENCE = 0.1

def main(argv):
    begun, begins = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(begins, b"!")
        while True:
            time.sleep(1)
    os.read(begun, 1)
    os.kill(child, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    time.sleep(1)  # the child has written to what this process listens to, if it could

sys.exit(run_command(main))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_signal_to_a_child_made_by_fork_does_not_end_the_command():
    """As a game's own pool of processes ends."""
    done = run(FORKING)
    assert (done.returncode, done.stdout) == (0, f"{-signal.SIGTERM}\n"), done.stderr


FORKED_AFTER_A_SIGNAL = """
import os, signal, sys
from alphazero import interruption
from alphazero.commands.shared import run_command

def main(argv):
    with interruption.listening(lambda number: None, raises=False):
        os.kill(os.getpid(), signal.SIGTERM)
        while not interruption.asked():
            pass
        child = os.fork()
        if child == 0:
            os._exit(interruption.asked())
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

sys.exit(run_command(main))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_made_by_fork_was_not_asked_to_end_because_its_parent_was():
    """A game's own process would stop in the middle of what the command still waits for."""
    done = run(FORKED_AFTER_A_SIGNAL)
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "0\n"), done.stderr


SLOW_SENTENCE = """
import os, signal, sys, threading, time
from alphazero import interruption
from alphazero.commands.shared import run_command

interruption.PATIENCE = 0.2

def main(argv):
    interruption.State.sentence = threading.Event().wait  # as of a run in a folder that does not answer
    print("begun")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

sys.exit(run_command(main))
"""


def test_a_command_ends_though_its_last_sentence_never_comes():
    done = subprocess.run(
        [sys.executable, "-c", SLOW_SENTENCE], env=ENVIRONMENT, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 143


def test_what_a_stopped_command_has_printed_is_written():
    """Also where it ends by an exit code of its own, as a training that was stopped does."""
    code = "import os, signal, sys\nfrom alphazero.commands.shared import run_command\ndef main(argv):\n"
    code += "    print('begun')\n    try: os.kill(os.getpid(), signal.SIGINT)\n"
    code += "    except KeyboardInterrupt: sys.exit(130)\nsys.exit(run_command(main))"
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (130, "begun\n")


SLOW_LISTENER = """
import atexit, os, signal, sys, threading, time
from alphazero import interruption
from alphazero.commands.shared import run_command

note = interruption._note

def note_late(number):  # in the thread that listens, as on a machine that is busy
    time.sleep(0.4 if threading.current_thread().name == "signals" else 0)
    note(number)

interruption._note = note_late

def main(argv):
    atexit.register(time.sleep, 0.8)  # as a library that is unloaded slowly
    print("begun")
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        sys.exit(130)

sys.exit(run_command(main))
"""


def test_a_command_that_ends_by_itself_is_not_ended_before_it_has_written():
    """The thread that listens for a signal may run only when the command that it met is over."""
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-c", SLOW_LISTENER], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (130, "begun\n")
