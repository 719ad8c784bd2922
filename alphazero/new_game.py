"""`python -m alphazero.new_game` is `alphazero new`."""

import sys

from alphazero.commands.program import main

if __name__ == "__main__":
    sys.exit(main(script="new"))
