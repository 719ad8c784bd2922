#!/usr/bin/env bash
# Expected: in mctx, the policy target of `gumbel_muzero_policy` depends on how much better an action is, so three moves
# worth 0.5001, 0.5 and 0.5 get about a third each. Happens: the default q-transform stretches the values of each
# position to [0, 1] before it weighs them, so the best move gets 99.7%, whether it is better by 0.2 or by 0.0001. With
# `rescale_values=False` the target follows the difference.
# Our users meet it when they compare targets or entropies with mctx, or move its settings here: our values lie in
# [-1, 1] and are not stretched, so `gumbel_value_scale` means something else than its `value_scale`.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q mctx==0.0.71 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" -W ignore - <<'PYTHON'
import functools
import importlib.metadata
import sys

import jax
import jax.numpy as jnp
import mctx

for package in ("mctx", "jax"):
    print(package, importlib.metadata.version(package))


def share_of_the_best(gap: float, **settings: bool) -> float:
    """The weight of the best of three moves that end the game with 0.5 + gap, 0.5 and 0.5."""
    rewards = jnp.array([0.5 + gap, 0.5, 0.5])

    def step(params, key, action, embedding):
        n = action.shape[0]
        output = mctx.RecurrentFnOutput(
            reward=rewards[action], discount=jnp.zeros(n), prior_logits=jnp.zeros((n, 3)), value=jnp.zeros(n)
        )
        return output, embedding

    root = mctx.RootFnOutput(prior_logits=jnp.zeros((1, 3)), value=jnp.array([0.5]), embedding=jnp.zeros(1))
    transform = functools.partial(mctx.qtransform_completed_by_mix_value, **settings)
    key = jax.random.PRNGKey(0)
    found = mctx.gumbel_muzero_policy((), key, root, step, 32, gumbel_scale=0.0, qtransform=transform)
    return float(found.action_weights[0, 0])


gaps = 0.2, 0.01, 0.0001
stretched = [share_of_the_best(gap) for gap in gaps]
plain = [share_of_the_best(gap, rescale_values=False) for gap in gaps]
for gap, one, other in zip(gaps, stretched, plain):
    print(f"better by {gap}: {one:.1%} by default, {other:.1%} with rescale_values=False")
sys.exit(not (min(stretched) > 0.99 and plain[0] > 0.6 and plain[2] < 0.34))
PYTHON
