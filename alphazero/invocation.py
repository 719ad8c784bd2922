"""Command lines for messages: `python main.py ...` or `alphazero train ...`, whichever the user typed."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The clone, or the folder that the wheel was installed into."""
SCRIPTS = {"train": "main.py", "pit": "pit.py"}
"""The commands that have a script in the clone."""
MODULES = {
    "check": "alphazero.check_game",
    "new": "alphazero.new_game",
    "publish": "alphazero.publish",
    "report": "alphazero.report",
    "gtp": "alphazero.gtp",
}
"""The commands that have a module of their own."""


def command_line(command: str, *arguments: object) -> str:
    """The line that runs one of our commands, quoted for a shell."""
    return shlex.join([*_program(command), *map(str, arguments)])


def _program(command: str) -> list[str]:
    started = getattr(sys.modules["__main__"], "__spec__", None)
    if started is not None and started.name == "alphazero.__main__":
        return ["python", "-m", "alphazero", command]
    if Path(sys.argv[0]).stem == "alphazero" or not all((ROOT / script).is_file() for script in SCRIPTS.values()):
        return ["alphazero", command]
    if command in SCRIPTS:
        return ["python", SCRIPTS[command]]
    return ["python", "-m", MODULES[command]] if command in MODULES else ["python", "-m", "alphazero", command]
