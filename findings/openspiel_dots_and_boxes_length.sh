#!/usr/bin/env bash
# OpenSpiel: max_game_length() of Dots and Boxes is too small on boards with more rows than columns.
#
# One expects that no game is longer than max_game_length(): buffers are sized by it.
# A board of R rows and C columns has (R + 1) C + (C + 1) R lines, and every game draws them all. OpenSpiel says
# (R + 1) C + C (R + 1) (open_spiel/games/dots_and_boxes/dots_and_boxes.h); num_distinct_actions() counts right.
# Our users meet it with --game "openspiel:dots_and_boxes(num_rows=3,num_cols=1)".

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q open_spiel==2.0.2
"$folder/venv/bin/python" - <<'PYTHON'
import random
import sys
from importlib.metadata import version

import pyspiel

print("open_spiel", version("open_spiel"))
as_described = True
for rows, columns in ((3, 1), (5, 2), (6, 4), (2, 5)):
    game = pyspiel.load_game(f"dots_and_boxes(num_rows={rows},num_cols={columns})")
    lengths = set()
    for seed in range(200):
        rng, state = random.Random(seed), game.new_initial_state()
        while not state.is_terminal():
            state.apply_action(rng.choice(state.legal_actions()))
        lengths.add(state.move_number())
    print(f"{rows} x {columns}: max_game_length() {game.max_game_length()}, 200 random games have {lengths} plies")
    as_described &= (min(lengths) > game.max_game_length()) == (rows > columns)
sys.exit(0 if as_described else 1)
PYTHON
