"""The old name of the benchmark's command: `python -m games.connect4.pons`."""

import sys

from alphazero.commands.shared import run_command
from games.connect4.benchmark import main

if __name__ == "__main__":
    sys.exit(run_command(main))
