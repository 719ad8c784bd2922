"""Play contestants against each other: `python pit.py A B`, or a tournament of more."""

import sys

from alphazero.commands.program import main

if __name__ == "__main__":
    sys.exit(main(script="pit"))
