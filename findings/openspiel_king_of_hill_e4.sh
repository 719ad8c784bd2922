#!/usr/bin/env bash
# OpenSpiel: the hill of crazyhouse(king_of_hill=true) has three squares, not four.
#
# One expects that a king on d4, e4, d5 or e5 wins, as in python-chess's King of the Hill. In OpenSpiel a king on e4
# wins nothing, neither White's nor Black's. A net that is trained there learns to walk past e4.
# Our users meet it with --game "openspiel:crazyhouse(king_of_hill=true)".

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q open_spiel==2.0.2 chess==1.11.2
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

import chess.variant
import pyspiel

print("open_spiel", version("open_spiel"), "chess", chess.__version__)
game, won, wins_elsewhere = pyspiel.load_game("crazyhouse(king_of_hill=true)"), {}, []
for square, start in (
    ("d4", "4k3/8/8/8/8/3K4/8/8 w - - 0 1"),
    ("e4", "4k3/8/8/8/8/4K3/8/8 w - - 0 1"),
    ("d5", "k7/8/3K4/8/8/8/8/8 w - - 0 1"),
    ("e5", "k7/8/4K3/8/8/8/8/8 w - - 0 1"),
):
    state, board = game.new_initial_state(start), chess.variant.KingOfTheHillBoard(start)
    state.apply_action(state.string_to_action(f"K{square}"))
    board.push_san(f"K{square}")
    won[square] = state.is_terminal() and state.returns()[1] == 1  # White is player 1
    wins_elsewhere.append(board.is_variant_end())
print("White's king wins in OpenSpiel on", won)
print("White's king wins in python-chess on", dict(zip(won, wins_elsewhere)))
sys.exit(0 if all(wins_elsewhere) and won == {"d4": True, "e4": False, "d5": True, "e5": True} else 1)
PYTHON
