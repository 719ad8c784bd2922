"""`python -m alphazero.check_game` is `alphazero check`."""

import sys

from alphazero.commands.program import main

if __name__ == "__main__":
    sys.exit(main(script="check"))
