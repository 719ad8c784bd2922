"""The command `alphazero`: lists its commands without an import of them, and runs the one that is named."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence

from alphazero import interruption
from alphazero._version import __version__
from alphazero.errors import UnknownName
from alphazero.machine import refusal, take_any_text

COMMANDS = {
    "train": "Train a network by self-play.",
    "pit": "Play two contestants against each other, or play against one.",
    "tournament": "Play a tournament of three or more contestants, and rate them.",
    "ladder": "Rate all generations of a run.",
    "tables": "Rate contestants at tables of three or more seats.",
    "replay": "Step through games that were saved.",
    "serve": "Open a page in the browser: play, analyse, watch runs and tournaments.",
    "check": "Check the rules of a game by playing random games.",
    "new": "Write a small working game to begin with, and its test.",
    "publish": "Measure a run's net and write it with its card, or write a page that plays anywhere.",
    "export": "Write a net as an ONNX file, for programs that know nothing of this framework.",
    "report": "Write the metrics, pictures and warnings of a run as one HTML page.",
    "gtp": "Play by the Go Text Protocol, for programs that show or judge games.",
    "uci": "Play chess by the Universal Chess Interface, for chess programs.",
    "solve": "Show the exact result of every move in a position.",
    "benchmark": "Score a contestant on positions whose exact result is known.",
    "compile": "Compile the shipped games ahead, for a wheel or an image.",
    "doctor": "Examine the installation, or a run folder, and say what is wrong.",
}
"""The module of a command has its name and a function `main(argv)`."""
GUESTS = {
    "ladder": "tournament", "replay": "pit", "check": "new", "export": "publish", "report": "doctor", "gtp": "serve",
    "uci": "serve", "solve": "benchmark",
}  # fmt: skip
"""The commands that are a function `NAME(argv)` in the module of another."""
ABOUT_RULES = "check", "new", "solve", "benchmark"
"""The commands whose modules are in the folder `rules`; the others are in this one."""
OTHERS = {"version": "Show the version.", "help": "Show this list, or the options of a command, as in help train."}

HELP = """\
alphazero {version}: give it the rules of a game, get a strong player.

usage: alphazero COMMAND [OPTIONS]

{commands}

alphazero COMMAND --help shows the options of a command. Two commands to begin with:
  alphazero train --game connect4 --minutes 3
  alphazero pit best human --game connect4"""


def main(argv: Sequence[str] | None = None, script: str = "") -> int:
    """Runs the command that `argv` names, and returns the exit code.

    Without `argv` the process is ours, and the words are the command that a `script` stands for and the command line.
    """
    try:
        return _run(argv, script)
    except BrokenPipeError:
        return 1
    except Exception as error:
        if not (sentence := refusal(error)):
            raise
        print(f"error: {sentence}", file=sys.stderr)
        return 2


def _run(argv: Sequence[str] | None, script: str) -> int:
    if ours := argv is None:
        interruption.install()
        take_any_text()
        argv = [*script.split(), *sys.argv[1:]]
    command, *rest = argv or ["help"]
    if command in ("help", "--help", "-h") and rest:
        command, rest = rest[0], ["--help"]
    if command in ("help", "--help", "-h"):
        lines = "\n".join(f"  {name:<11}{summary}" for name, summary in (COMMANDS | OTHERS).items())
        print(HELP.format(version=__version__, commands=lines), flush=True)
        return 0
    if command in ("version", "--version"):
        print(f"alphazero {__version__}", flush=True)
        return 0
    if command not in COMMANDS:
        print(f"error: {UnknownName('command', command, COMMANDS | OTHERS)}", file=sys.stderr)
        return 2
    from alphazero.commands.shared import run_command

    def run(words: list[str]) -> None:
        """Imports the module, too, since an import of torch takes seconds in which the user may press Ctrl-C."""
        if ours:  # nobody looks for garbage meanwhile, nor ever in what the imports leave
            gc.disable()
        folder = "rules." * (command in ABOUT_RULES)
        module = importlib.import_module(f"alphazero.commands.{folder}{GUESTS.get(command, command)}")
        if ours:
            gc.freeze()
            gc.enable()
        getattr(module, command if command in GUESTS else "main")(words)

    return run_command(run, rest)
