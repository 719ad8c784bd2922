"""`python -m alphazero.report` is `alphazero report`."""

import sys

from alphazero.commands.program import main

if __name__ == "__main__":
    sys.exit(main(script="report"))
