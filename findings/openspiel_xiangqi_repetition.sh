#!/usr/bin/env bash
# OpenSpiel: xiangqi has no rule about repetition; a game ends as a draw at ply 500.
#
# One expects that repeated positions end a game, or are forbidden to one side, as in Fairy-Stockfish. In OpenSpiel two
# chariots go to and fro until ply 500. Self-play of a net that cannot win yet fills with such plies.
# Our users meet it with --game openspiel:xiangqi.

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q open_spiel==2.0.2 pyffish==0.0.90
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

import pyffish
import pyspiel

print("open_spiel", version("open_spiel"), "pyffish", version("pyffish"))
THEIRS = "R(9,0)-(8,0)", "r(0,0)-(1,0)", "R(8,0)-(9,0)", "r(1,0)-(0,0)"
state = pyspiel.load_game("xiangqi").new_initial_state()
while not state.is_terminal():
    state.apply_action(state.string_to_action(THEIRS[state.move_number() % 4]))
print("OpenSpiel: the game is over after", state.move_number(), "plies,", state.returns())
moves, ended = [], False
while not ended and len(moves) < 500:
    moves.append(("a1a2", "a10a9", "a2a1", "a9a10")[len(moves) % 4])
    ended, result = pyffish.is_optional_game_end("xiangqi", pyffish.start_fen("xiangqi"), moves)
print("Fairy-Stockfish: the game may end after", len(moves), "plies, result", result)
sys.exit(0 if state.move_number() == 500 and state.returns() == [0, 0] and len(moves) == 8 else 1)
PYTHON
