"""`python -m alphazero` is the command `alphazero`."""

import sys

from alphazero.commands.program import main

if __name__ == "__main__":
    sys.exit(main())
