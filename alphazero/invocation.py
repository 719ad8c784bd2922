"""Command lines and settings for messages, as the user gives them: on a command line or from Python."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

from alphazero.errors import printable
from alphazero.interruption import State

ROOT = Path(__file__).resolve().parents[1]
"""The clone, or the folder that the wheel was installed into."""
SCRIPTS = {"train": "main.py", "pit": "pit.py"}
"""The commands that have a script in the clone."""
WINDOWS = os.name == "nt"
"""Its shells quote and its files behave in ways of their own."""


def option(name: str, value: object = None) -> str:
    """A setting for a message: `--self-play.num-slots` if a command runs, `self_play.num_slots` in Python.

    With a value, `--device cpu` (quoted for a shell) or `device='cpu'`; a flag that takes none has the value True.
    """
    if State.command_runs:
        return quoted(f"--{name.replace('_', '-')}", *([] if value is None or value is True else [value]))
    name = "folder" if name == "run" else name
    return name if value is None else f"{name}={str(value) if isinstance(value, Path) else value!r}"


def command_line(command: str, *arguments: object) -> str:
    """The line that runs one of our commands, quoted for a shell."""
    script, start = ROOT / SCRIPTS.get(command, ""), ["python", "-m", "alphazero", command]
    if Path(sys.argv[0]).stem == "alphazero":
        start = ["alphazero", command]
    elif script.is_file() and module_line() != "python -m alphazero":
        start = ["python", script.name if os.path.samefile(os.curdir, ROOT) else str(script)]
    return quoted(*start, *arguments)


def module_line() -> str | None:
    """`python -m games.connect4.benchmark` if Python was started so, for usage lines; else None."""
    started = getattr(sys.modules["__main__"], "__spec__", None)
    return None if started is None else f"python -m {started.name.removesuffix('.__main__')}"


def quoted(*words: object) -> str:
    """The words as one command line, quoted so that the user's shell and then our parser take them as they are.

    A Path that begins with a hyphen gets `./` before it, and another value of an option an equals sign.
    """
    spelled = list[str]()
    for word in words:
        text = printable(str(word))
        if isinstance(word, Path) and text.startswith("-"):
            text = os.path.join(os.curdir, text)
        if re.match("-(?!-)", text) and spelled and spelled[-1].startswith("--"):
            spelled[-1] += f"={text}"
        else:
            spelled.append(text)
    return " ".join(map(_quote_for_windows if WINDOWS else shlex.quote, spelled))


def _quote_for_windows(word: str) -> str:
    """In quotation marks that cmd and PowerShell both know, and by the rules that programs read them by there."""
    if re.fullmatch(r"[\w.:/=+\\-]+", word):
        return word
    word = re.sub(r'(\\*)("|$)', lambda found: 2 * found[1] + found[2].replace('"', '\\"'), word)
    return f'"{word}"'
