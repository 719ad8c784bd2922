"""Train a network by self-play: `python main.py --game connect4`."""

import sys

from alphazero.commands.program import main

if __name__ == "__main__":
    sys.exit(main(script="train"))
