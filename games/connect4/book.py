"""`python -m games.connect4.book`: makes or checks the solver's opening book."""

import sys

from alphazero.commands.shared import run_command
from games.connect4.solver.book import main

if __name__ == "__main__":
    sys.exit(run_command(main))
