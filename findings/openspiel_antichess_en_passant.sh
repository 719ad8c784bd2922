#!/usr/bin/env bash
# OpenSpiel: in antichess, capturing en passant is no capture.
#
# One expects that who can capture must, also en passant, as python-chess and Fairy-Stockfish have it. In OpenSpiel the
# capture en passant is not forced; and where another capture is possible, it is not even allowed.
# Our users meet it when they train --game openspiel:antichess or compare it with other programs.

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q open_spiel==2.0.2 chess==1.11.2 pyffish==0.0.90
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

import chess.variant
import pyffish
import pyspiel

print("open_spiel", version("open_spiel"), "chess", chess.__version__, "pyffish", version("pyffish"))
found = []
for moves in ("a4 h6 a5 b5", "a4 d6 d3 b5 axb5 a5"):
    state, board = pyspiel.load_game("antichess").new_initial_state(), chess.variant.AntichessBoard()
    played = []
    for move in moves.split():
        state.apply_action(state.string_to_action(move))
        played.append(board.push_san(move).uci())
    theirs = sorted(state.action_to_string(action) for action in state.legal_actions())
    print(f"after {moves}:")
    print("  OpenSpiel   ", len(theirs), *theirs)
    print("  python-chess", *sorted(board.san(move) for move in board.legal_moves))
    print("  pyffish     ", *sorted(pyffish.legal_moves("antichess", pyffish.start_fen("antichess"), played)))
    found.append((len(theirs), "axb6" in theirs or "bxa6" in theirs, board.legal_moves.count()))
sys.exit(0 if found == [(23, True, 1), (1, False, 2)] else 1)
PYTHON
