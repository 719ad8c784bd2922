"""The parts that all commands share: exit codes, messages of one sentence, logging, and reading the command line."""

from __future__ import annotations

import contextlib
import difflib
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, TypeVar

import coloredlogs
import tyro

from alphazero.errors import InputError, Terminated
from alphazero.invocation import command_line

Config = TypeVar("Config")

# a message of tyro (a regular expression for its one line), and our words for it
_SAYINGS = (
    (r"Error parsing (\S+): invalid literal for int\(\) with base 10: (.*)", r"\1 takes a whole number, not \2"),
    (r"Error parsing (\S+): could not convert string to float: (.*)", r"\1 takes a number, not \2"),
    (r"Error parsing (\S+): no type matching (\S+) could be instantiated from \[(.*?)\]\..*", r"\1 takes \2, not \3"),
    (r"Missing value for argument '(\S+)'\..*", r"\1 needs a value"),
    (r"invalid choice (\S+) for argument '(\S+)'\. Expected one of \((.*?),?\)\.", r"\2 must be one of \3, not \1"),
    (r"Missing from [^:]*: (.*)", r"missing: \1"),
)


_PATIENCE = 3.0
"""Seconds that threads have to end after SIGTERM."""


def run_command(main: Callable[[list[str]], None], argv: Sequence[str] | None = None) -> int:
    """Runs `main(argv)` (default: the command line) and returns the exit code.

    0: done; 2: a mistake of the user, told in one line on stderr; 130: interrupted. A bug of ours shows its traceback.
    SIGTERM raises Terminated (exit code 143), so that child processes and temporary folders go as after Ctrl-C.
    """
    coloredlogs.install(level="INFO", fmt="%(message)s")  # no colours where there is no terminal
    try:
        with _ending_in_order():
            main(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except InputError as error:
        print("error: " + " ".join(str(error).split()), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the program that reads our output has ended, as `head` does
        return 1
    return 0


@contextlib.contextmanager
def _ending_in_order() -> Iterator[None]:
    """Turns SIGTERM into an exception, so that child processes are ended and temporary folders removed.

    The interpreter would then wait for threads in compiled code; after _PATIENCE seconds the process ends without them.
    """
    code = 0

    def leave(number: int, frame: FrameType | None) -> None:
        nonlocal code
        code = 128 + number
        raise Terminated(code)

    if threading.current_thread() is not threading.main_thread():  # only that one gets signals
        yield
        return
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        if code:
            leaving = threading.Timer(_PATIENCE, os._exit, (code,))
            leaving.daemon = True
            leaving.start()


def parse(
    config_class: type[Config], argv: Sequence[str], default: Config | None = None, command: str | None = None
) -> Config:
    """The settings on a command line; raises InputError, or SystemExit(0) after `--help`.

    `default` holds the settings that the command line does not name. `command`, as `train`, is named in the usage line.
    """
    defaults: dict[str, Any] = {} if default is None else {"default": default}
    if command is not None:
        defaults["prog"] = command_line(command)
    unknown: list[str] = []
    said = io.StringIO()
    try:
        # with one of them on a terminal, tyro would frame and colour its message
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            config, unknown = tyro.cli(config_class, args=argv, return_unknown_args=True, **defaults)
        if not unknown:
            return config
    except SystemExit as leaving:
        if not leaving.code:
            tyro.cli(config_class, args=argv, **defaults)  # the help, for the terminal now
            raise
    flags = _flags(config_class, defaults)
    for word in argv:
        flag = word.partition("=")[0].replace("_", "-")
        if word in unknown or (word.startswith("--") and flag not in flags):
            closest = difflib.get_close_matches(flag, flags, n=1)
            hint = f"did you mean {closest[0]}?" if closest else "see --help"
            raise InputError(f"unknown {'option' if word.startswith('-') else 'argument'} {word!r}; {hint}")
    raise InputError(f"{_sentence(said.getvalue())} (see --help)")


def _flags(config_class: type[Config], defaults: dict[str, Any]) -> set[str]:
    """Every option that `--help` shows."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        tyro.cli(config_class, args=["--help"], **defaults)
    return set(re.findall(r"--[\w.:-]*\w", shown.getvalue()))


def _sentence(message: str) -> str:
    """The text of a message of tyro, in our words if we have some. The message is title, rule, text, rule, hints."""
    paragraphs = re.split(r"^ *-+ *$", message, flags=re.MULTILINE)
    text = " ".join((paragraphs[1] if len(paragraphs) > 1 else message).split())
    text = text.replace("{None}|", "").replace(" (required)", "")
    for pattern, saying in _SAYINGS:
        if match := re.fullmatch(pattern, text):
            return match.expand(saying)
    return text
