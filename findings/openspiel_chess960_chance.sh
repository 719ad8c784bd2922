#!/usr/bin/env bash
# OpenSpiel: the type of chess(chess960=true) says that the game has no chance; its start is a chance node.
#
# One expects that GameType.chance_mode of a loaded game tells whether there is chance: code that takes only
# deterministic games asks for it. Chess960 and Crazyhouse960 draw the start position by lot as their first move, and
# restricted_nash_response its first player's kind; all three say DETERMINISTIC.
# Our users met it with --game "openspiel:chess(chess960=true)"; it is refused now.

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q open_spiel==2.0.2
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

import pyspiel

print("open_spiel", version("open_spiel"))
as_described = True
for text in (
    "chess(chess960=true)",
    "crazyhouse(chess960=true)",
    "restricted_nash_response(fixed_player=0,game=tic_tac_toe(),p=0.5)",
):
    game = pyspiel.load_game(text)
    mode, start = game.get_type().chance_mode, game.new_initial_state()
    print(f"{text}: {mode}; the start is a chance node: {start.is_chance_node()}")
    as_described &= mode == pyspiel.GameType.ChanceMode.DETERMINISTIC and start.is_chance_node()
sys.exit(0 if as_described else 1)
PYTHON
