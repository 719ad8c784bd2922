"""The command `alphazero`: finds the command that its first word names, and runs it.

The list of commands is here, so that `alphazero --help` imports none of them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from alphazero._version import __version__
from alphazero.errors import UnknownName

COMMANDS = {
    "train": "Train a network by self-play.",
    "pit": "Play contestants against each other, or a tournament of many.",
    "check": "Check that a game keeps all laws.",
    "new": "Write a small working game to begin with, and its test.",
    "publish": "Measure the net of a run and write it, with its card, for others.",
    "report": "Write the figures, pictures and warnings of a run as one HTML page.",
    "gtp": "Play by the Go Text Protocol, for programs that show or judge games.",
    "solve": "Show the exact result of every move in a position.",
    "benchmark": "Score a contestant on positions of known worth.",
}
"""The module of a command in this folder has its name and a function `main(argv)`."""
OTHERS = {"version": "Show the version.", "help": "Show this list, or the options of a command, as in help train."}

HELP = """\
alphazero {version}: give it the rules of a game, get a strong player.

usage: alphazero COMMAND [OPTIONS]

{commands}

alphazero COMMAND --help shows the options of a command. Two commands to begin with:
  alphazero train --game connect4 --minutes 3
  alphazero pit best human --game connect4"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command that `argv` (default: the command line) names, and returns the exit code."""
    command, *rest = (sys.argv[1:] if argv is None else argv) or ["help"]
    if command in ("help", "--help", "-h"):
        if not rest:
            lines = "\n".join(f"  {name:<11}{summary}" for name, summary in (COMMANDS | OTHERS).items())
            print(HELP.format(version=__version__, commands=lines))
            return 0
        command, rest = rest[0], ["--help"]
    if command in ("version", "--version"):
        print(f"alphazero {__version__}")
        return 0
    if command not in COMMANDS:
        print(f"error: {UnknownName('command', command, COMMANDS | OTHERS)}", file=sys.stderr)
        return 2
    from alphazero.commands.shared import run_command

    # imported in there, since an import of torch takes seconds in which the user may press Ctrl-C
    return run_command(lambda argv: importlib.import_module(f"alphazero.commands.{command}").main(argv), rest)
