"""`python -m games.connect4.labelled`: makes the positions of the benchmark anew."""

import sys

from alphazero.commands.shared import run_command
from games.connect4.solver.labelled import main

if __name__ == "__main__":
    sys.exit(run_command(main))
