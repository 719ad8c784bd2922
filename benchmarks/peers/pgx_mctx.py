"""The worker that measures pgx (rules) and mctx (search), both on JAX: `python pgx_mctx.py TASK`.

It runs in the peers' environment. The task's `policy` is `puct` (mctx.muzero_policy), `gumbel`
(mctx.gumbel_muzero_policy) or `stochastic` (mctx.stochastic_muzero_policy); `dtype` is the number type of the network.

pgx's step rolls the dice that follow a move, by a random key. With `puct` and `gumbel` a node of the tree holds what
they showed when it was made. With `stochastic` each node has a second one behind it, whose outcomes are so many keys.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import mctx
import pgx
from pgx.experimental import auto_reset
from turns import read_task, serve

NAMES = {"connect4": "connect_four", "go9": "go_9x9", "gardner": "gardner_chess"}
OUTCOMES = {"2048": 32, "backgammon": 21}
VALUE_HIDDEN, HEAD_CHANNELS = 64, 16
LONGEST_START = 200
"""Random plies, at most, before the games of self-play."""


def make_weights(key: Any, shape: tuple[int, ...], num_actions: int, net: list[int]) -> Any:
    """Random weights of the network that this framework uses.

    For planes, `net` is blocks and channels of the residual one, with batch norms folded into the convolutions. For a
    list of numbers it is the units of Backgammon's towers for value and policy.
    """
    keys = iter(jax.random.split(key, 2 * net[0] + 8))

    def layer(*sizes: int) -> tuple[Any, Any]:
        scale = jnp.prod(jnp.array(sizes[:-1])) ** -0.5
        return jax.random.normal(next(keys), sizes) * scale, jnp.zeros(sizes[-1])

    if len(shape) == 1:
        (inputs,), (units, policy_units) = shape, net
        return {
            "value": (layer(inputs, units), layer(units, units // 2), layer(units // 2, 1)),
            "policy": (layer(inputs, policy_units), layer(policy_units, num_actions)),
        }
    (height, width, planes), (blocks, channels) = shape, net
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

    def connect(x: Any, *layers: Any) -> Any:
        """Fully connected layers, with relu between them."""
        for kernel, bias in layers[:-1]:
            x = jax.nn.relu(x @ kernel + bias)
        kernel, bias = layers[-1]
        return x @ kernel + bias

    x = observations.astype(weights["policy"][0][0].dtype)
    if "stem" not in weights:
        logits, values = connect(x, *weights["policy"]), connect(x, *weights["value"])
    else:
        x = jax.nn.relu(convolve(x, weights["stem"]))
        for first, second in weights["blocks"]:
            x = jax.nn.relu(x + convolve(jax.nn.relu(convolve(x, first)), second))
        heads = []
        for name in ("policy", "value"):
            convolution, *dense = weights[name]
            heads.append(connect(jax.nn.relu(convolve(x, convolution)).reshape(len(x), -1), *dense))
        logits, values = heads
    return logits.astype(jnp.float32), jnp.tanh(values[:, 0]).astype(jnp.float32)


def make_search(env: Any, task: dict[str, Any], evaluate: Any) -> Any:
    """A function `(weights, key, state)` that searches all positions; `evaluate` gives logits and values of some."""
    name, batch = task["game"], task["batch"]

    def masked(logits: Any, state: Any) -> Any:
        return jnp.where(state.legal_action_mask, logits, jnp.finfo(logits.dtype).min)

    def search(weights: Any, key: Any, state: Any) -> Any:
        def play(keys: Any, action: Any, state: Any) -> tuple[Any, ...]:
            """Reward, discount, priors and value of the positions after an action, and these positions."""
            mover = state.current_player
            state = jax.vmap(env.step)(state, action, keys)
            logits, value = evaluate(weights, state)
            reward = state.rewards[jnp.arange(batch), mover]
            over = state.terminated
            # the same player may move again, after a pass
            sign = jnp.where(state.current_player == mover, 1.0, -1.0)
            return reward, jnp.where(over, 0.0, sign), masked(logits, state), jnp.where(over, 0.0, value), state

        def grow(weights: Any, key: Any, action: Any, state: Any) -> tuple[Any, Any]:
            reward, discount, logits, value, state = play(jax.random.split(key, batch), action, state)
            return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), state

        def decide(weights: Any, key: Any, action: Any, node: Any) -> tuple[Any, Any]:
            """The node before the dice, worth what the position before the action is."""
            state, value = node
            equal = jnp.zeros((batch, OUTCOMES[name]))
            return mctx.DecisionRecurrentFnOutput(chance_logits=equal, afterstate_value=value), (state, action)

        def roll(weights: Any, key: Any, outcome: Any, node: Any) -> tuple[Any, Any]:
            state, action = node
            reward, discount, logits, value, state = play(dice[outcome], action, state)
            return mctx.ChanceRecurrentFnOutput(
                reward=reward, discount=discount, action_logits=logits, value=value
            ), (state, value)  # fmt: skip

        logits, value = evaluate(weights, state)
        common = {
            "params": weights, "rng_key": key, "num_simulations": task["simulations"],
            "invalid_actions": ~state.legal_action_mask,
        }  # fmt: skip
        if task["policy"] == "stochastic":
            dice = jax.random.split(jax.random.fold_in(key, 0), OUTCOMES[name])
            root = mctx.RootFnOutput(prior_logits=masked(logits, state), value=value, embedding=(state, value))
            return mctx.stochastic_muzero_policy(
                root=root, decision_recurrent_fn=decide, chance_recurrent_fn=roll, **common
            )
        root = mctx.RootFnOutput(prior_logits=masked(logits, state), value=value, embedding=state)
        if task["policy"] == "puct":
            return mctx.muzero_policy(root=root, recurrent_fn=grow, **common)
        considered = task["considered"] or 16
        return mctx.gumbel_muzero_policy(root=root, recurrent_fn=grow, max_num_considered_actions=considered, **common)

    return search


def main() -> None:
    task = read_task()
    name = task["game"]
    env, batch, simulations = pgx.make(NAMES.get(name, name)), task["batch"], task["simulations"]
    step = auto_reset(env.step, env.init)
    weights_key, game_key, plies_key = jax.random.split(jax.random.PRNGKey(0), 3)
    games = stagger(env, step, batch, game_key)
    states = _positions(env, task["openings"], batch) if task["openings"] else games
    weights = make_weights(weights_key, states.observation.shape[1:], env.num_actions, task["net"])
    weights = jax.tree.map(lambda tensor: tensor.astype(task["dtype"]), weights)

    def free(weights: Any, state: Any) -> tuple[Any, Any]:
        return jnp.zeros(state.legal_action_mask.shape), jnp.zeros(len(state.legal_action_mask))

    def network(weights: Any, state: Any) -> tuple[Any, Any]:
        return apply(weights, state.observation)

    search_free, search_by_net = make_search(env, task, free), make_search(env, task, network)

    @jax.jit
    def play_ply(weights: Any, key: Any, state: Any) -> Any:
        first, second = jax.random.split(key)
        found = search_by_net(weights, first, state)
        return jax.vmap(step)(state, found.action, jax.random.split(second, batch)), _with_a_choice(state)

    search_once = jax.jit(lambda key: search_free(weights, key, states).action_weights)
    ask = jax.jit(lambda observations: apply(weights, observations))
    memory = {"state": games, "key": plies_key}

    def next_key() -> Any:
        memory["key"], key = jax.random.split(memory["key"])
        return key

    def self_play() -> int:
        memory["state"], count = jax.block_until_ready(play_ply(weights, next_key(), memory["state"]))
        return int(count)

    def free_searches() -> int:
        jax.block_until_ready(search_once(next_key()))
        return batch * simulations

    def network_alone() -> int:
        jax.block_until_ready(ask(states.observation))
        return batch

    serve({"network": network_alone, "search": free_searches, "self-play": self_play})


def _with_a_choice(state: Any) -> Any:
    return (state.legal_action_mask.sum(axis=1) > 1).sum()


def stagger(env: Any, step: Any, batch: int, key: Any) -> Any:
    """`batch` games at all stages, played at random."""
    first, second, third = jax.random.split(key, 3)
    plies = jax.random.randint(second, (batch,), 0, LONGEST_START)

    def play(number: Any, state: Any) -> Any:
        one, two = jax.random.split(jax.random.fold_in(third, number))
        action = jax.random.categorical(one, jnp.log(state.legal_action_mask))
        after = jax.vmap(step)(state, action, jax.random.split(two, batch))
        goes_on = number < plies
        return jax.tree.map(
            lambda new, old: jnp.where(goes_on.reshape(-1, *[1] * (old.ndim - 1)), new, old), after, state
        )

    start = jax.vmap(env.init)(jax.random.split(first, batch))
    return jax.jit(lambda state: jax.lax.fori_loop(0, LONGEST_START, play, state))(start)


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
