"""Moves in WebAssembly as players of matches choose them: by the same search, and by the same draws among equals.

The templates below are bound beside those of `engine`, by `add_moves`. A move depends on the position, the seed of its
game and the number of plies before it. Players of matches search the position itself, an analysis its smallest mirror
image.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, NamedTuple

import numpy as np
from numba import types

from alphazero.game.randomness import TIE, make_key, uniform
from alphazero.players.baselines import (
    GREEDY_PLIES,
    AlphaBeta,
    _action_means,
    _action_values,
    _go_down,
    _on_one_side,
    _result_for,
    _search_alpha_beta,
)
from alphazero.players.baselines import Dice as Ways
from alphazero.players.contestants import PLAY, SIMULATIONS_PER_ACTION
from alphazero.search.mcts import SearchConfig
from alphazero.search.rollouts import _play_at_random, _roll_out
from alphazero.search.tree import KernelSettings
from alphazero.wasm.engine import ModuleBuilder, open_tree, read_tree, run_simulations

LEAST_PRIOR = np.float32(1e-9)
"""The least weight of a legal action, which so beats an illegal one."""


def _settings():
    """The settings that the net learned with; halving considers more actions in longer searches."""
    return KernelSettings(
        LEARNED.leaves_per_step, LEARNED.c_puct, LEARNED.fpu_reduction, scratch().considered[0], LEARNED.visit_offset,
        LEARNED.value_scale, LEARNED.prior_exponent, LEARNED.root_prior_exponent, LEARNED.noise_fraction,
        LEARNED.noise_total, LEARNED.draws_gumbel, LEARNED.prove, LEARNED.dice, LEARNED.alone, LEARNED.seats,
        LEARNED.lots, LEARNED.points_word, LEARNED.value_of_point,
    )  # fmt: skip


def _draw_best(weights, seed, ply):
    """The action of the highest weight; equally good ones are equally likely, as `Chooser.best` draws them."""
    peak, count = np.float32(-np.inf), 0
    for action in range(len(weights)):
        peak = max(peak, weights[action])
    for action in range(len(weights)):
        count += weights[action] == peak
    left = uniform(make_key(seed, seed, ply, TIE), 0) * count
    best = -1
    for action in range(len(weights)):
        if weights[action] == peak and (best < 0 or left >= 0.0):
            best = action
            left -= 1.0
    return np.int32(best)


def _begin_move(simulations, seed, ply):
    """Begins the search for a move."""
    here, own = page(), scratch()
    own.symmetry[0] = 0
    for word in range(len(own.root)):
        own.root[word] = here.state[word]
    own.considered[0] = max(LEARNED.max_considered, simulations // PER_ACTION) if LEARNED.max_considered > 0 else 0
    open_tree(simulations, np.int64(seed), np.int64(ply))


def _choose(seed, ply):
    """The move that the search has found; writes its result as an analysis does."""
    best = read_tree()
    return best if LEARNED.max_considered > 0 else draw_best(page().policy, np.int64(seed), np.int64(ply))


def _choose_alone(seed, ply):
    """The network's move without a search; writes its priors and its value."""
    here, own = page(), scratch()
    opinion(here.state, here.legal_mask, here.prior[: len(own.weights)], here.value)
    for action in range(len(own.weights)):
        own.weights[action] = max(here.prior[action], LEAST_PRIOR) if here.legal_mask[action] else np.float32(0.0)
    return draw_best(own.weights, np.int64(seed), np.int64(ply))


def add_moves(builder: ModuleBuilder, config: SearchConfig) -> None:
    """Adds a player's moves to a builder that has a search; `config` is what the net learned with."""
    learned = replace(config, noise_fraction=0.0, leaves_per_step=1).settings_for(builder.game)
    builder.name(LEARNED=learned, PER_ACTION=SIMULATIONS_PER_ACTION)
    builder.bind(_settings, _draw_best, open_tree, read_tree)
    _add_search(builder, "move")
    builder.add("choose", _choose, types.int32, types.int32)
    builder.add("choose_alone", _choose_alone, types.int32, types.int32)


def _add_search(builder: ModuleBuilder, name: str) -> None:
    builder.add(f"begin_{name}", _begin_move, types.int32, types.int32, types.int32)
    builder.add(f"search_{name}", run_simulations, types.int32)


class Baselines(NamedTuple):
    """The arrays of the players without a network."""

    seed: Annotated[np.ndarray, "int32[1]"]  # of the playouts; the page writes it
    states: Annotated[np.ndarray, "uint64[1, K]"]
    state: Annotated[np.ndarray, "uint64[K]"]
    legal_mask: Annotated[np.ndarray, "bool[A]"]
    probabilities: Annotated[np.ndarray, "float64[C]"]
    outcomes: Annotated[np.ndarray, "int64[D]"]
    values: Annotated[np.ndarray, "float32[1, V]"]
    means: Annotated[np.ndarray, "float64[1, A]"]
    stop: Annotated[np.ndarray, "bool[1]"]


def _evaluate_by_playout(state, legal_mask, priors, values):
    """Equal weights, and the result of one random game, as `search.rollouts.Playouts`."""
    own = baselines()
    for word in range(len(state)):
        own.states[0, word] = state[word]
    roll_out(own.states, np.int64(own.seed[0]), own.state, own.legal_mask, own.probabilities, own.outcomes, own.values)
    for action in range(len(priors)):
        priors[action] = np.float32(legal_mask[action])
    for seat in range(len(values)):
        values[seat] = own.values[0, seat]


def _find_means(own):
    """The mean of each action over the dice, by which `greedy` plays in a game with dice."""
    action_means(own.states, ways(), own.legal_mask, own.means)


def _find_values(own):
    """The value of each action as `greedy` sees it in a game without dice."""
    action_values(own.states, PLIES, ways(), ALONE, own.stop, own.means)


def _choose_greedy(seed, ply):
    """The action that `greedy` plays."""
    own = baselines()
    for word in range(len(own.state)):
        own.states[0, word] = page().state[word]
    find_means(own)
    return draw_best(own.means[0], np.int64(seed), np.int64(ply))


def _choose_random(seed, ply):
    """A legal action, all equally likely."""
    own = baselines()
    for action in range(len(own.legal_mask)):
        own.means[0, action] = 1.0 if page().legal_mask[action] else 0.0
    return draw_best(own.means[0], np.int64(seed), np.int64(ply))


def add_baselines(builder: ModuleBuilder) -> None:
    """Adds the players without a network to a builder that has moves."""
    arrays = builder.arrays(Baselines)
    builder.readable["seed"] = arrays.seed
    dice, plies = builder.game.num_outcomes > 0, min(GREEDY_PLIES, builder.game.max_plies)
    ways = builder.arrays(Ways if dice else AlphaBeta, D=1 + (builder.game.dice_in_a_row if dice else plies))
    builder.name(baselines=builder.layout.placed(arrays), ways=builder.layout.placed(ways), PLIES=plies)
    builder.name(ALONE=builder.game.num_players == 1)
    builder.bind(_result_for, _on_one_side, _play_at_random, _roll_out)
    if dice:
        builder.bind(_action_means, _find_means)
    else:
        builder.bind(_go_down, _search_alpha_beta, _action_values, find_means=_find_values)
    builder.add("choose_greedy", _choose_greedy, types.int32, types.int32)
    builder.add("choose_random", _choose_random, types.int32, types.int32)
    builder.name(LEARNED=replace(PLAY, leaves_per_step=1).settings_for(builder.game, by_chance=True))
    builder.bind(_settings, evaluate=_evaluate_by_playout, open_tree=open_tree)
    _add_search(builder, "playouts")
    builder.add("choose_playouts", _choose, types.int32, types.int32)
