"""`python -m alphazero.check_game` is `alphazero check`."""

import sys

from alphazero.commands.check import main
from alphazero.commands.shared import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
