"""The parts that all commands share: exit codes, messages of one sentence, logging, and reading the command line."""

from __future__ import annotations

import contextlib
import difflib
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import coloredlogs
import tyro

from alphazero import interruption
from alphazero.errors import InputError, InvalidSetting, Terminated, printable, quote, shorten
from alphazero.invocation import command_line, module_line
from alphazero.machine import take_any_text
from alphazero.storage.files import may_write

Config = TypeVar("Config")

_SAYINGS = (
    (r"Error parsing (\S+): invalid literal for int\(\) .*?: (.*)", r"\1 takes a whole number, not \2"),
    (
        r"Error parsing (\S+): (?:could not convert|no type matching).*?[:[] ?('.*?')(?:\].*)?",
        r"\1 takes a number, not \2",
    ),
    (r"Error parsing (\S+): Could not find valid parse .*", r"\1 takes numbers with spaces between, as in 0 100"),
    (r"Error parsing (\S+): .*", r"\1 cannot take that value, or lacks one"),
    (r"Missing value for argument '(\S+)'\..*", r"\1 needs a value"),
    (r"invalid choice (\S+) for argument '(\S+)'\. Expected one of \((.*?),?\)\.", r"\2 must be one of \3, not \1"),
    (r"Missing from [^:]*: (.*)", r"missing: \1"),
)
"""A message of tyro (a regular expression for its one line), and our words for it."""


def run_command(main: Callable[[list[str]], None], argv: Sequence[str] | None = None) -> int:
    """Runs `main(argv)` (default: the command line) and returns the exit code.

    0: done; 2: a mistake of the user, told in one line on stderr; 130 and 143: ended by Ctrl-C or SIGTERM.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed before Python began
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (until the process ends)
    if argv is None:  # the process is ours
        interruption.install()
        take_any_text()
    plain = os.environ.get("TERM") == "dumb"  # a terminal that knows no colours
    coloredlogs.install(level="INFO", fmt="%(message)s", isatty=False if plain else None)
    logging.getLogger("numba").setLevel(logging.WARNING)  # it tells of every kernel that leaves a GPU
    for handler in logging.getLogger().handlers:
        handler.addFilter(_make_printable)
    signals = interruption.State
    signals.command_runs, signals.sentence, signals.said = True, None, False
    try:
        _check_folder()
        main([_with_home(word) for word in (sys.argv[1:] if argv is None else argv)])
        sys.stdout.flush()
    except (KeyboardInterrupt, Terminated):
        pass
    except BrokenPipeError:  # the program that reads our output has ended, as `head` does
        return 1
    except Exception as error:
        # an interrupted import may raise anything, and so may a program that Ctrl-C has reached as well
        if not interruption.asked():
            if not isinstance(error, InputError):
                raise
            print("error: " + printable(" ".join(str(error).split())), file=sys.stderr)
            return 2
    else:
        if not interruption.asked():
            return 0
    finally:
        signals.command_runs = False
    interruption.say()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    return interruption.exit_code()


def _check_folder() -> None:
    """Raises InputError if the current folder was deleted: libraries then fail, some by ending the process."""
    try:
        os.getcwd()
    except OSError:
        raise InputError("the current folder was deleted: change to another one, or to the one made anew") from None


def _with_home(word: str) -> str:
    """The word with the home folder in place of ~ behind an equals sign, where shells leave it as it is."""
    flag, equals, value = word.partition("=")
    return flag + equals + os.path.expanduser(value) if flag.startswith("--") else word


def say(text: str) -> None:
    """Prints lines that may hold texts out of files."""
    print("\n".join(map(printable, text.split("\n"))))


def _make_printable(record: logging.LogRecord) -> bool:
    """A filter that lets everything pass, as text that is safe to show."""
    record.msg, record.args = "\n".join(map(printable, record.getMessage().split("\n"))), ()
    return True


def spare_files(overwrite: bool, *files: Path | None) -> None:
    """Raises InvalidSetting if a file to write is named twice, or exists and may not be replaced (`may_write`)."""
    paths = [path for path in files if path is not None]
    if len({path.resolve() for path in paths}) < len(paths):
        raise InvalidSetting("two options name one file, which cannot hold both: name two")
    for path in paths:
        if not may_write(path, overwrite):
            other = ", or replace it by --overwrite" if path.is_file() else ""
            raise InvalidSetting(
                f"{quote(str(path), 200)} exists already, and is left as it is: name another file{other}"
            )


def parse(
    config_class: type[Config], argv: Sequence[str], default: Config | None = None, command: str | None = None
) -> Config:
    """The settings on a command line; raises InputError, or SystemExit(0) after `--help`.

    `default` holds the settings that the command line does not name. `command`, as `train`, is named in the usage line.
    """
    defaults: dict[str, Any] = {} if default is None else {"default": default}
    if program := module_line() if command is None else command_line(command):
        defaults["prog"] = program
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
    for before, word in zip(["", *argv], argv, strict=False):
        flag = word.partition("=")[0].replace("_", "-")
        is_short = re.match(r"-[^\W\d]", word) and before not in flags  # none of our options has one hyphen
        if word in unknown or is_short or (word.startswith("--") and flag not in flags):
            closest = difflib.get_close_matches(flag, flags, n=1)
            hint = f"did you mean {closest[0]}?" if closest else "see --help"
            raise InputError(f"unknown {'option' if word.startswith('-') else 'argument'} {quote(word)}; {hint}")
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
    text = " ".join((paragraphs[1] if len(paragraphs) > 1 else message).replace(" (required)", "").split())
    for pattern, saying in _SAYINGS:
        if match := re.fullmatch(pattern, text):
            return re.sub(r"\\(\d)", lambda part, found=match: shorten(found[int(part[1])], 200), saying)  # type: ignore[misc]
    return shorten(text, 400)
