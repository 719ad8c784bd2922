"""`python -m alphazero.publish` is `alphazero publish`."""

import sys

from alphazero.commands.publish import main
from alphazero.commands.shared import run_command

if __name__ == "__main__":
    sys.exit(run_command(main))
