"""Ctrl-C and SIGTERM: a command ends in order, soon, and always.

The first signal raises KeyboardInterrupt or Terminated in the main thread, unless a listener says that it need not. An
exception in a callback of a C library is forgotten, and a C library that computes is not interrupted: long work asks
`check` or `asked` between its steps, and a thread ends the process PATIENCE seconds later. A second signal ends it at
once, and so does any signal before and after a command. Without `install` nothing in here does anything.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from alphazero.errors import Terminated

PATIENCE = 1.5
"""Seconds that a command has to end in order."""
SIGNALS: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""The signals, and what Python does about them by itself."""
last_acts: list[Callable[[], object]] = []
"""Called, in any thread, before this process ends without cleaning up."""
_saying = threading.RLock()


class State:
    """All that is known about the signals of this process."""

    command_runs = False  # which is to end in order
    number = 0  # the first signal received; 0 if there was none
    handled = 0  # signals that the main thread has seen
    listeners: tuple[tuple[Callable[[int], object], bool], ...] = ()
    sentence: Callable[[], str] | None = None  # about an end; runs in any thread, and must wait for nothing
    said = False
    stderr = 2  # the descriptor for the sentence: that of stderr when the handlers were installed


def asked() -> bool:
    """The process was asked to end."""
    return State.number != 0


def check() -> None:
    """Raises KeyboardInterrupt or Terminated if the process was asked to end; long work calls it between its steps."""
    if asked():
        raise KeyboardInterrupt if State.number == signal.SIGINT else Terminated(exit_code())


def exit_code() -> int:
    """128 + the number of the signal, as shells have it; that of SIGINT if none was received."""
    return 128 + (State.number or signal.SIGINT)


def install() -> None:
    """Handles both signals until the process ends: at once, except while a command runs."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    # written by C code as soon as a signal arrives, whatever the main thread is doing
    signal.set_wakeup_fd(theirs.detach(), warn_on_full_buffer=False)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as Ctrl-C is for a job in the background of a script
            signal.signal(number, _handle)
    with contextlib.suppress(OSError):  # it is closed
        State.stderr = os.dup(2)  # another file may stand in for it when the process ends
    threading.Thread(target=_listen, args=(ours,), name="signals", daemon=True).start()
    atexit.register(_end_process)
    if hasattr(os, "register_at_fork"):  # a child's signals would be written to the connection of its parent
        os.register_at_fork(after_in_child=_uninstall)


def _uninstall() -> None:
    State.number, State.handled, State.listeners = 0, 0, ()  # the parent's own
    signal.set_wakeup_fd(-1)
    for number, default in SIGNALS.items():
        if signal.getsignal(number) is _handle:
            signal.signal(number, default)


def _end_process() -> None:
    """The last function of Python: then the system's handlers take over, with other exit codes, and a library that
    still computes on a thread, as when the page loads its first net, would abort the process while it is unloaded."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if asked():
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(exit_code())


@contextlib.contextmanager
def listening(listener: Callable[[int], object], raises: bool = True) -> Iterator[None]:
    """Calls `listener(number)` when the first signal arrives, in any thread, once or twice at the same time.

    If it `raises` no exception, the work must look about every second at what the listener sets.
    """
    before, State.listeners = State.listeners, (*State.listeners, (listener, raises))
    try:
        if asked():  # and the exception was swallowed
            listener(State.number)
        yield
    finally:
        State.listeners = before


def _handle(number: int, frame: FrameType | None) -> None:
    """Runs in the main thread between two instructions of Python."""
    State.handled += 1
    _note(number)
    if not State.command_runs or State.handled > 1:
        _leave()
    # the compiler asks `check`: an exception in one of its callbacks would be printed and forgotten
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] not in ("numba", "llvmlite"):
        frame = frame.f_back
    if frame is None and all(raises for _, raises in State.listeners):
        check()


def _listen(connection: socket.socket) -> None:
    """Runs in a thread of its own, beside C code that the main thread waits for."""
    while (number := connection.recv(1)[0]) not in SIGNALS:
        pass  # signals of somebody else's
    _note(number)
    # the main thread may have met the signal in a command that is over by now: it ends by itself, and still writes
    connection.settimeout(PATIENCE if State.command_runs or State.handled else 0)
    with contextlib.suppress(OSError):  # no other signal comes
        connection.recv(1)
    _leave()


def _note(number: int) -> None:
    if not asked():
        State.number = number
        for listener, _ in State.listeners:
            listener(number)


def _leave() -> None:
    _saying.acquire(timeout=PATIENCE)  # else this thread could end the process before the other one has said why
    with contextlib.suppress(OSError):  # the main thread may be in the middle of a print
        os.write(State.stderr, _sentence().encode(errors="replace"))
    for act in last_acts:
        with contextlib.suppress(Exception):
            act()
    os._exit(exit_code())


def say() -> None:
    """Prints the one sentence about the end to stderr; a second call does nothing."""
    with _saying:
        print(_sentence(), end="", file=sys.stderr, flush=True)


def _sentence() -> str:
    """The line about the end, the first time."""
    if State.said:  # what tells more about the end may take for ever
        return ""
    State.said = True
    text = "\nterminated" if State.number == signal.SIGTERM else "\ninterrupted"
    with contextlib.suppress(Exception):  # a process that is to end says less rather than stay
        text = State.sentence() if State.sentence else text
    return f"{text}\n"
