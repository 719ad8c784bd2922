"""`python -m alphazero.new_game` is `alphazero new`."""

import sys

from alphazero.commands.new import main
from alphazero.commands.shared import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
