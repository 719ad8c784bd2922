"""What players say of positions: actions, policy and values."""

import dataclasses

import numpy as np
import pytest

from alphazero.game.kernels import Kernels
from alphazero.matches.judge import Labelled
from alphazero.players.net_players import PolicyPlayer, SearchPlayer
from alphazero.players.player import Player, Temperature
from alphazero.search.mcts import SearchConfig
from alphazero.search.rollouts import Playouts
from games.connect4.solver import GAME, NO_SCORE
from tests.games.connect4_positions import late_positions, plies_of

KERNELS = Kernels(GAME)


@pytest.fixture(scope="module")
def late() -> Labelled:
    return late_positions()


def uneven(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An `evaluate` with priors and values that depend on the position, priors also on full columns."""
    stones = np.bitwise_count(states[:, 0]).astype(np.float64)[:, None]
    mixed = (states[:, 0] * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)).astype(np.float64)[:, None]
    priors = 1.1 + np.sin(mixed + stones + np.arange(7.0))
    return (priors / priors.sum(axis=1, keepdims=True)).astype(np.float32), np.sin(mixed[:, 0]).astype(np.float32)


def net_players(threads: int) -> list[Player]:
    evaluators, config = [uneven] * threads, SearchConfig(num_simulations=20, noise_fraction=0.0)
    gumbel = dataclasses.replace(config, gumbel_actions=4)
    return [
        PolicyPlayer("policy", KERNELS, evaluators, 1),
        PolicyPlayer("drawn", KERNELS, evaluators, 1, temperature=Temperature(1.0)),
        SearchPlayer("search", KERNELS, evaluators, 1, config=config),
        SearchPlayer("drawn", KERNELS, evaluators, 1, temperature=Temperature(1.0), config=config),
        SearchPlayer("gumbel", KERNELS, evaluators, 1, config=gumbel),
        SearchPlayer("playouts", KERNELS, [Playouts(KERNELS, 1)] * threads, 1, config=config),
    ]


@pytest.mark.parametrize("which", range(6))
def test_a_net_and_a_search_say_what_their_actions_rest_on(which, late):
    states, plies = late.states, plies_of(late)
    legal, numbers = late.scores != NO_SCORE, np.arange(len(states))
    alone = net_players(1)[which]
    said = alone.assess(states, numbers, plies)
    assert said.actions.shape == said.values.shape == (400,) and said.policy.shape == (400, 7)
    assert said.actions.dtype == np.int64 and legal[numbers, said.actions].all()
    assert np.array_equal(said.actions, alone.select_actions(states, numbers, plies))
    assert said.policy.sum(axis=1) == pytest.approx(np.ones(400), abs=1e-5)
    assert said.policy.min() >= 0 and (said.policy[~legal] == 0).all() and (~legal).any()
    assert np.abs(said.values).max() <= 1 and np.unique(said.values).size > 10
    together = net_players(3)[which].assess(states, numbers, plies)
    for name in ("actions", "policy", "values"):
        assert np.array_equal(getattr(said, name), getattr(together, name)), name


def test_the_policy_of_a_net_is_its_prior_over_legal_columns(late):
    plies = plies_of(late)
    legal = late.scores != NO_SCORE
    said = net_players(1)[0].assess(late.states, np.arange(400), plies)
    priors, values = uneven(late.states, legal)
    masses = np.where(legal, priors, 0).astype(np.float64)
    assert said.policy == pytest.approx(masses / masses.sum(axis=1, keepdims=True), abs=1e-6)
    assert np.array_equal(said.values, values)
    assert np.array_equal(said.actions, said.policy.argmax(axis=1))
