"""`python -m alphazero.report` is `alphazero report`."""

import sys

from alphazero.commands.report import main
from alphazero.commands.shared import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
