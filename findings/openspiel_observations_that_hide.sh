#!/usr/bin/env bash
# OpenSpiel: two observations do not show what the legal actions depend on.
#
# One expects of a game with perfect information that its observation tells positions apart that differ in their legal
# actions. That of quoridor shows no walls: after any of the 128 first walls it is the same. That of nine_mens_morris
# does not show whether the player who moves places a man or takes one off. Their texts show both.
# Our users meet it when they train a network. Here it is given the characters of quoridor's text.

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
state = pyspiel.load_game("quoridor").new_initial_state()
walls = [action for action in state.legal_actions() if state.action_to_string(action)[-1] in "hv"]
seen = {tuple(state.child(wall).observation_tensor(1)) for wall in walls}
texts = {str(state.child(wall)) for wall in walls}
print(f"quoridor: {len(walls)} first walls, {len(seen)} observation(s), {len(texts)} texts")

game, known, alike = pyspiel.load_game("nine_mens_morris"), {}, []
for seed in range(200):
    rng, state = random.Random(seed), game.new_initial_state()
    while not state.is_terminal() and state.move_number() < 30:
        player = state.current_player()
        before = known.setdefault((player, tuple(state.observation_tensor(player))), str(state))
        if ("Capture" in before) != ("Capture" in str(state)):
            alike = alike or [before, str(state)]
        state.apply_action(rng.choice(state.legal_actions()))
print("nine_mens_morris: these have the same observation:", *alike, sep="\n\n")
sys.exit(0 if (len(walls), len(seen), len(texts)) == (128, 1, 128) and alike else 1)
PYTHON
