"""`python -m alphazero.gtp` is `alphazero gtp`."""

import sys

from alphazero.commands.gtp import main
from alphazero.commands.shared import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
