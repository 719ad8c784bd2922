"""Progress displays, on a terminal and elsewhere."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np
from tqdm import tqdm

from alphazero import interruption
from alphazero.errors import InvalidSetting, printable, quote

_SECONDS_BETWEEN_LINES = 10.0
_NOT_THERE = OSError, ValueError, AttributeError
"""Raised by a stderr that nobody reads any more, or whose disk is full; that is closed; that is None, as without a
console, or an object of the program with two methods alone."""

_shown: ContextVar[bool | None] = ContextVar("shown", default=True)


@contextlib.contextmanager
def showing(wanted: bool | None) -> Iterator[None]:
    """Turns every `Progress` of this thread on or off; None shows bars on a terminal or in a notebook, and no lines.

    Raises InvalidSetting for anything else.
    """
    if not (wanted is None or isinstance(wanted, bool | np.bool_)):
        raise InvalidSetting(f"progress must be True, False or None, not {quote(wanted)}")
    token = _shown.set(wanted)
    try:
        yield
    finally:
        _shown.reset(token)


def say(sentence: str) -> None:
    """Shows a line on stderr where a `Progress` would be shown."""
    if _shown.get() or (_shown.get() is None and _is_seen()):
        print(sentence, file=_Stderr(), flush=True)


class _Stderr:
    """Stderr for what may get lost: the work goes on without it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr, name)

    def write(self, text: str) -> None:
        with contextlib.suppress(*_NOT_THERE):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(*_NOT_THERE):
            sys.stderr.flush()


def _is_seen() -> bool:
    """Somebody looks at stderr: a terminal, or the notebook whose kernel this is."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if hasattr(shell, "kernel"):
        return True
    try:
        return sys.stderr.isatty()
    except _NOT_THERE:
        return False


class _Bar(tqdm):  # type: ignore[type-arg]
    monitor_interval = 0


class Progress:
    """A bar with a note and the time left on a terminal or in a notebook; elsewhere a plain line every ten seconds.

    Both go to stderr. `showing` turns them off.
    """

    def __init__(self, title: str):
        self._title, self._begin = printable(title), time.monotonic()
        self._on_terminal = _shown.get() is not False and _is_seen()
        self._next_line = self._begin + _SECONDS_BETWEEN_LINES if _shown.get() else math.inf
        # tqdm would wait for as large a step as the largest one so far, and look into that in a thread of its own
        layout = "{desc} {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
        self._bar = _Bar(
            total=1.0, desc=self._title, bar_format=layout, smoothing=0, miniters=0, leave=False,
            disable=not self._on_terminal, file=_Stderr(), dynamic_ncols=True,
        )  # fmt: skip
        if self._on_terminal:  # tqdm's own clock is that of the wall, which is set, and goes on while a laptop sleeps
            self._bar._time, self._bar.start_t, self._bar.last_print_t = time.monotonic, self._begin, self._begin

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def show(self, fraction: float, note: str) -> None:
        """`fraction` in [0, 1] of the work is done; ends the work if the process was asked to end."""
        interruption.check()
        note = printable(note)
        if self._on_terminal:
            self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(fraction - self._bar.n)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _SECONDS_BETWEEN_LINES
            left = ""
            if fraction > 0:
                seconds = (time.monotonic() - self._begin) * (1 - fraction) / fraction
                left = f", about {tqdm.format_interval(seconds)} left"
            print(f"{self._title}: {note}{left}", file=_Stderr(), flush=True)
