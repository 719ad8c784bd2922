#!/usr/bin/env bash
# Expected: in pgx, `legal_action_mask` of a finished game allows nothing, and the player whom `rewards[0]` belongs to
# is the one who began. Happens: once a game is over the mask allows every action, full columns included, so a loop
# `while mask.any()` never ends and a count of legal actions is wrong; `terminated` alone tells. And `init` draws by lot
# which of the players 0 and 1 begins, so the mean of `rewards[0]` over many games hides the advantage of beginning:
# ask `state.current_player` of the first position.
# Our users meet both when they compare their rules or a net's results with pgx, or move a game from there.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pgx==2.6.0 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import importlib.metadata
import sys

import jax
import numpy as np
import pgx

for package in ("pgx", "jax"):
    print(package, importlib.metadata.version(package))
env, rng = pgx.make("connect_four"), np.random.default_rng(0)
init, step = jax.jit(env.init), jax.jit(env.step)
first, fewest, won_by_first, rewards = [], 7, 0, 0.0
for game in range(100):
    state = init(jax.random.PRNGKey(game))
    first.append(int(state.current_player))
    while not state.terminated:
        state = step(state, int(rng.choice(np.flatnonzero(state.legal_action_mask))))
    fewest = min(fewest, int(state.legal_action_mask.sum()))
    won_by_first += int(state.rewards[first[-1]] > 0)
    rewards += float(state.rewards[0])
full = env.init(jax.random.PRNGKey(0))
for column in (3, 3, 3, 3, 3, 3, 0, 1, 0, 1, 0, 1, 0):  # the fourth one in column 0 wins; column 3 is full
    full = step(full, column)
print(f"100 random games of connect_four: player 0 begins {first.count(0)} of them, the beginner wins {won_by_first}, ")
print(f"the sum of rewards[0] is {rewards:+.0f}; finished games allow {fewest} of 7 actions at least")
print("a won game with a full column 3: terminated", bool(full.terminated), "mask", full.legal_action_mask.astype(int))
alike = bool(full.terminated) and bool(full.legal_action_mask.all()) and fewest == 7
sys.exit(not (alike and 20 < first.count(0) < 80))
PYTHON
