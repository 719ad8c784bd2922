"""Train a network by self-play: `python main.py --game connect4`."""

import sys

from alphazero.commands.shared import run_command
from alphazero.commands.train import main

if __name__ == "__main__":
    sys.exit(run_command(main))
