#!/usr/bin/env bash
# OpenSpiel: chess tells positions apart by an en passant square that no pawn can use.
#
# One expects that a position is repeated if the same moves are legal (FIDE's Laws of Chess, article 9.2): an en
# passant capture that a pin forbids does not count. OpenSpiel counts the square, so its draw by threefold repetition
# comes a ply later here than python-chess's. Our users meet it when they compare results of --game openspiel:chess.

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q open_spiel==2.0.2 chess==1.11.2
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

import chess
import pyspiel

START = "4k3/8/8/8/4p3/8/3P4/4R1K1 w - - 0 1"  # after d4 the pawn on e4 is pinned by the rook
print("open_spiel", version("open_spiel"), "chess", chess.__version__)
state, board = pyspiel.load_game("chess").new_initial_state(START), chess.Board(START)
ended = {}
for ply, move in enumerate(["d4"] + ["Kd7", "Kf1", "Ke8", "Kg1"] * 3, 1):
    state.apply_action(state.string_to_action(move))
    board.push_san(move)
    if ply == 1:
        print("after d4, python-chess allows", [board.san(each) for each in board.legal_moves])
        print("after d4, OpenSpiel allows   ", [state.action_to_string(each) for each in state.legal_actions()])
    if board.is_repetition(3):
        ended.setdefault("python-chess", ply)
    if state.is_terminal():
        ended.setdefault("OpenSpiel", ply)
        break
print("the position is there for the third time at ply", ended)
sys.exit(0 if ended == {"python-chess": 9, "OpenSpiel": 10} else 1)
PYTHON
