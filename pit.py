"""Play contestants against each other: `python pit.py A B`, or a tournament of more."""

import sys

from alphazero.commands.pit import main
from alphazero.commands.shared import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
