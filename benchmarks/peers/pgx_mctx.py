"""The worker that measures pgx (rules) and mctx (search), both on JAX: `python pgx_mctx.py TASK`.

It runs in the peers' environment. The task's `policy` is `puct` (mctx.muzero_policy) or `gumbel`
(mctx.gumbel_muzero_policy); `dtype` is the number type of the network.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mctx
import pgx
from pgx.experimental import auto_reset
from turns import read_task, serve

NAMES = {"connect4": "connect_four", "othello": "othello"}
VALUE_HIDDEN, HEAD_CHANNELS = 64, 16


def make_weights(key: Any, shape: tuple[int, int, int], num_actions: int, blocks: int, channels: int) -> Any:
    """Random weights of the residual network that this framework uses, batch norms folded into the convolutions."""
    height, width, planes = shape
    keys = iter(jax.random.split(key, 2 * blocks + 8))

    def layer(*sizes: int) -> tuple[Any, Any]:
        scale = jnp.prod(jnp.array(sizes[:-1])) ** -0.5
        return jax.random.normal(next(keys), sizes) * scale, jnp.zeros(sizes[-1])

    return {
        "stem": layer(3, 3, planes, channels),
        "blocks": [(layer(3, 3, channels, channels), layer(3, 3, channels, channels)) for _ in range(blocks)],
        "policy": (layer(1, 1, channels, HEAD_CHANNELS), layer(height * width * HEAD_CHANNELS, num_actions)),
        "value": (
            layer(1, 1, channels, HEAD_CHANNELS), layer(height * width * HEAD_CHANNELS, VALUE_HIDDEN),
            layer(VALUE_HIDDEN, 1),
        ),
    }  # fmt: skip


def apply(weights: Any, observations: Any) -> tuple[Any, Any]:
    """Logits `[n, A]` and values `[n]`."""

    def convolve(x: Any, layer: Any) -> Any:
        kernel, bias = layer
        return (
            jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias
        )

    x = jax.nn.relu(convolve(observations.astype(weights["stem"][0].dtype), weights["stem"]))
    for first, second in weights["blocks"]:
        x = jax.nn.relu(x + convolve(jax.nn.relu(convolve(x, first)), second))
    convolution, dense = weights["policy"]
    flat = jax.nn.relu(convolve(x, convolution)).reshape(len(x), -1)
    logits = flat @ dense[0] + dense[1]
    convolution, hidden, last = weights["value"]
    flat = jax.nn.relu(convolve(x, convolution)).reshape(len(x), -1)
    values = jnp.tanh(jax.nn.relu(flat @ hidden[0] + hidden[1]) @ last[0] + last[1])[:, 0]
    return logits.astype(jnp.float32), values.astype(jnp.float32)


def main() -> None:
    task = read_task()
    env, batch, simulations = pgx.make(NAMES[task["game"]]), task["batch"], task["simulations"]
    states = _positions(env, task["openings"], batch)
    weights = make_weights(
        jax.random.PRNGKey(0), states.observation.shape[1:], env.num_actions, task["blocks"], task["channels"]
    )
    weights = jax.tree.map(lambda tensor: tensor.astype(task["dtype"]), weights)
    policy = {"puct": mctx.muzero_policy, "gumbel": mctx.gumbel_muzero_policy}[task["policy"]]

    def free(weights: Any, state: Any) -> tuple[Any, Any]:
        return jnp.zeros(state.legal_action_mask.shape), jnp.zeros(len(state.legal_action_mask))

    def network(weights: Any, state: Any) -> tuple[Any, Any]:
        return apply(weights, state.observation)

    def search(evaluate: Any, weights: Any, key: Any, state: Any) -> Any:
        def masked(logits: Any, state: Any) -> Any:
            return jnp.where(state.legal_action_mask, logits, jnp.finfo(logits.dtype).min)

        def grow(weights: Any, key: Any, action: Any, state: Any) -> tuple[Any, Any]:
            mover = state.current_player
            state = jax.vmap(env.step)(state, action)
            logits, value = evaluate(weights, state)
            reward = state.rewards[jnp.arange(batch), mover]
            over = state.terminated
            # the same player may move again, after a pass
            sign = jnp.where(state.current_player == mover, 1.0, -1.0)
            return mctx.RecurrentFnOutput(
                reward=reward, discount=jnp.where(over, 0.0, sign), prior_logits=masked(logits, state),
                value=jnp.where(over, 0.0, value),
            ), state  # fmt: skip

        logits, value = evaluate(weights, state)
        root = mctx.RootFnOutput(prior_logits=masked(logits, state), value=value, embedding=state)
        return policy(
            params=weights, rng_key=key, root=root, recurrent_fn=grow, num_simulations=simulations,
            invalid_actions=~state.legal_action_mask,
        )  # fmt: skip

    step = auto_reset(env.step, env.init)

    @jax.jit
    def play_ply(weights: Any, key: Any, state: Any) -> Any:
        first, second = jax.random.split(key)
        found = search(network, weights, first, state)
        return jax.vmap(step)(state, found.action, jax.random.split(second, batch))

    search_once = jax.jit(lambda key: search(free, weights, key, states).action_weights)
    ask = jax.jit(lambda observations: apply(weights, observations))
    memory = {"state": jax.vmap(env.init)(jax.random.split(jax.random.PRNGKey(1), batch)), "key": jax.random.PRNGKey(2)}

    def next_key() -> Any:
        memory["key"], key = jax.random.split(memory["key"])
        return key

    def self_play() -> int:
        memory["state"] = jax.block_until_ready(play_ply(weights, next_key(), memory["state"]))
        return batch

    def search_free() -> int:
        jax.block_until_ready(search_once(next_key()))
        return batch * simulations

    def network_alone() -> int:
        jax.block_until_ready(ask(states.observation))
        return batch

    serve({"network": network_alone, "search": search_free, "self-play": self_play})


def _positions(env: Any, openings: list[list[int]], batch: int) -> Any:
    """The openings' positions, again and again until there are `batch`."""
    step, start, states = jax.jit(env.step), jax.jit(env.init)(jax.random.PRNGKey(0)), []
    for opening in openings[:batch]:
        state = start
        for action in opening:
            state = step(state, action)
        states.append(state)
    chosen = [states[number % len(states)] for number in range(batch)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *chosen)


if __name__ == "__main__":
    main()
