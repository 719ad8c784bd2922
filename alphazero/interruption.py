"""Ctrl-C and SIGTERM: a command ends in order, soon, and always.

The first signal raises KeyboardInterrupt or Terminated in the main thread, unless a listener says that it need not.
That alone is not enough: an exception raised in a callback of a C library is forgotten, and a C library that computes
is not interrupted. So long work asks `check` or `asked` between its steps, and a thread of its own ends the process
PATIENCE seconds later. A second signal ends it at once, and so does any signal before and after a command. In a program
of the user's own, which does not call `install`, nothing in here does anything.
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


class _State:
    """All that is known about the signals of this process."""

    in_order = False  # a command runs, which is to end in order
    number = 0  # the first signal received; 0 if there was none
    handled = 0  # signals that the main thread has seen
    listeners: tuple[tuple[Callable[[int], object], bool], ...] = ()
    sentence: Callable[[], str] | None = None
    said = False
    stderr = 2  # the descriptor for the last sentence: that of stderr when the handlers were installed


last_acts: list[Callable[[], object]] = []
"""Called, in any thread, before this process ends without cleaning up."""
_state = _State()
_saying = threading.RLock()


def asked() -> bool:
    """The process was asked to end."""
    return _state.number != 0


def check() -> None:
    """Raises KeyboardInterrupt or Terminated if the process was asked to end; long work calls it between its steps."""
    if _state.number:
        raise KeyboardInterrupt if _state.number == signal.SIGINT else Terminated(128 + _state.number)


def exit_code() -> int:
    """128 + the number of the signal, as shells have it; that of SIGINT if none was received."""
    return 128 + (_state.number or signal.SIGINT)


def install() -> None:
    """Handles both signals until the process ends: at once, but for the time of `handled` blocks."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    # written by C code as soon as a signal arrives, whatever the main thread is doing
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as Ctrl-C is for a job in the background of a script
            signal.signal(number, _handle)
    with contextlib.suppress(OSError):  # it is closed
        _state.stderr = os.dup(2)  # another file may stand in for it when the process ends
    threading.Thread(target=_listen, args=(ours, theirs), name="signals", daemon=True).start()
    atexit.register(_end_process)
    if hasattr(os, "register_at_fork"):  # a child's signals would be written to the connection of its parent
        os.register_at_fork(after_in_child=_forget)


@contextlib.contextmanager
def handled() -> Iterator[None]:
    """A command that is to end in order runs in here."""
    _state.in_order, _state.said, _state.sentence = True, False, None
    try:
        yield
    finally:
        _state.in_order = False


@contextlib.contextmanager
def listening(listener: Callable[[int], object], raises: bool = True) -> Iterator[None]:
    """Calls `listener(number)` when the first signal arrives, in any thread, once or twice at the same time.

    If it `raises` no exception, the work must look about every second at what the listener sets.
    """
    before = _state.listeners
    _state.listeners += ((listener, raises),)
    try:
        if asked():  # and the exception was swallowed
            listener(_state.number)
        yield
    finally:
        _state.listeners = before


@contextlib.contextmanager
def saying(sentence: Callable[[], str]) -> Iterator[None]:
    """An end in here is told by `sentence()`, which may run in any thread and must wait for nothing."""
    before, _state.sentence = _state.sentence, sentence
    yield
    if not asked():  # nor was an exception raised; else it is still to be said
        _state.sentence = before


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Programs begun in here do not get Ctrl-C, which reaches all of a terminal; this process gets it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_process() -> None:
    """The last function of Python: then the system's handlers take over, with other exit codes, and a library that
    still computes on a thread, as when the page loads its first net, would abort the process while it is unloaded."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if asked():
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or there is none
                stream.flush()
        os._exit(exit_code())


def _forget() -> None:
    global _state
    _state = _State()
    signal.set_wakeup_fd(-1)
    for number, default in SIGNALS.items():
        if signal.getsignal(number) is _handle:
            signal.signal(number, default)


def _handle(number: int, frame: FrameType | None) -> None:
    """Runs in the main thread between two instructions of Python."""
    _state.handled += 1
    if not _state.in_order or _state.handled > 1:
        _leave(number)
    _note(number)
    # the compiler asks `check`: an exception in one of its callbacks would be printed and forgotten
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] not in ("numba", "llvmlite"):
        frame = frame.f_back
    if frame is None and all(raises for _, raises in _state.listeners):
        check()


def _listen(connection: socket.socket, theirs: socket.socket) -> None:
    """Runs in a thread of its own, beside C code that the main thread waits for; keeps the other end open."""
    while (number := connection.recv(1)[0]) not in SIGNALS:
        pass  # signals of somebody else's
    if _state.in_order:
        _note(number)
        connection.settimeout(PATIENCE)
        with contextlib.suppress(TimeoutError):
            connection.recv(1)
    _leave(number)


def _note(number: int) -> None:
    if not _state.number:
        _state.number = number
        for listener, _ in _state.listeners:
            listener(number)


def _leave(number: int) -> None:
    _state.number = _state.number or number
    _saying.acquire(timeout=PATIENCE)  # else this thread could end the process before the other one has said why
    if text := _take_sentence():
        with contextlib.suppress(OSError):  # the main thread may be in the middle of a print
            os.write(_state.stderr, f"{text}\n".encode(errors="replace"))
    for act in last_acts:
        with contextlib.suppress(Exception):
            act()
    os._exit(exit_code())


def say() -> None:
    """Prints the one sentence about the end to stderr; a second call does nothing."""
    with _saying:
        if text := _take_sentence():
            print(text, file=sys.stderr, flush=True)


def _take_sentence() -> str:
    """The sentence, the first time."""
    if _state.said:
        return ""
    _state.said = True
    if _state.sentence is not None:
        with contextlib.suppress(Exception):  # a process that is to end says less rather than stay
            return _state.sentence()
    return "\nterminated" if _state.number == signal.SIGTERM else "\ninterrupted"
