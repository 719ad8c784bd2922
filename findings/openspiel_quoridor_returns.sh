#!/usr/bin/env bash
# OpenSpiel: in quoridor for three players another one gets the win.
#
# One expects that `returns()` is in the order of `current_player()`: a game of quoridor ends when the player who has
# just moved reaches the other side, so that player has won. With two players it is so. Three players move in the order
# 0, 2, 1, and of players 1 and 2 each gets the win of the other one.
# Our users meet it in `openspiel:quoridor(players=3)`, which would learn to lose; here it is refused.

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q open_spiel==2.0.2
"$folder/venv/bin/python" - <<'PYTHON'
import random
import sys
from collections import Counter
from importlib.metadata import version

import pyspiel

print("open_spiel", version("open_spiel"))
found = {}
for players in (2, 3):
    game = pyspiel.load_game(f"quoridor(players={players},board_size=9)")
    counts = Counter()
    for seed in range(60):
        rng, state = random.Random(seed), game.new_initial_state()
        while not state.is_terminal():
            last = state.current_player()
            state.apply_action(rng.choice(state.legal_actions()))
        returns = state.returns()
        if max(returns) > 0:  # else it has lasted too long
            counts[last, returns.index(max(returns))] += 1
    print(f"{players} players: (who moved last, who gets the win): games", dict(sorted(counts.items())))
    found[players] = set(counts)
expected = {2: {(0, 0), (1, 1)}, 3: {(0, 0), (1, 2), (2, 1)}}
sys.exit(0 if found == expected else 1)
PYTHON
