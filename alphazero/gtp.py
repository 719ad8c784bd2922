"""`python -m alphazero.gtp` is `alphazero gtp`."""

import sys

from alphazero.commands.program import main

if __name__ == "__main__":
    sys.exit(main(script="gtp"))
