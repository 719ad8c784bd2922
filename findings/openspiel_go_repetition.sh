#!/usr/bin/env bash
# OpenSpiel: in Go, a move that repeats a position is legal, and ends the game as a draw.
#
# One expects superko: the move is forbidden. Here it is among the legal actions, and the game ends with 0 for both,
# whatever the score, although komi 0.5 allows no draw. So whoever is behind may escape by a repetition.
# Our users meet it with --game openspiel:go: a player learns it, and another program of Go refuses the move.

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
state = pyspiel.load_game("go(board_size=2,komi=0.5)").new_initial_state()
boards = []
for move in ("a1", "b1", "a2", "b2", "a1", "a2"):
    state.apply_action(state.string_to_action(f"{'BW'[state.current_player()]} {move}"))
    boards.append(str(state).split("\n", 1)[1])
print("after six moves:", boards[-1], sep="\n")
legal = [state.action_to_string(action) for action in state.legal_actions()]
print("legal:", *legal)
state.apply_action(state.string_to_action("B a1"))
again = str(state).split("\n", 1)[1]
print("after B a1:", again, sep="\n")
print("ply 1 had this board:", again == boards[0], "- the game is over:", state.is_terminal(), "-", state.returns())
sys.exit(0 if again == boards[0] and "B a1" in legal and state.is_terminal() and state.returns() == [0, 0] else 1)
PYTHON
