"""`python -m alphazero.publish` is `alphazero publish`."""

import sys

from alphazero.commands.program import main

if __name__ == "__main__":
    sys.exit(main(script="publish"))
