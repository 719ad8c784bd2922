"""Sequential halving with Gumbel noise: which actions are visited, how often, and the targets it gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.search.dense import dense
from tests.search.reference_search import neutral, planted, plies_of, random_positions, states_of
from tests.search.searches import BASE, CONNECT4, TICTACTOE, make_search, row_bytes, run


def test_gumbel_visits_the_best_by_gumbel_and_logit_first():
    for considered in (1, 2, 3, 4, 6, 16):
        config = replace(BASE, num_simulations=16, gumbel_actions=considered, noise_fraction=0.25)
        positions = random_positions(CONNECT4, 25, seed=19)
        search = make_search(CONNECT4, config, planted(), 25)
        search.start(np.arange(25), states_of(positions), np.arange(25), plies_of(positions))
        counts = [min(considered, len(position.legal_actions)) for position in positions]
        compared = 0
        for _ in range(max(counts)):
            search.step()
            visits, tree = search.read(np.arange(25)).visit_counts, dense(search.tree)
            for b, count in enumerate(counts):
                if visits[b].sum() == count:
                    scores = tree.root_gumbel[b] + np.log(np.maximum(tree.prior[b, 0], 1e-12))
                    scores[~positions[b].legal_mask] = -np.inf
                    if not (tree.action_proven[b, 0] == 1).any():
                        assert set(np.flatnonzero(visits[b])) == set(np.argsort(-scores)[:count])
                        assert visits[b].max() == 1
                        compared += 1
        assert compared > 10


@pytest.mark.parametrize(
    ("considered", "simulations", "visits"),
    # from the start of Connect Four nothing is proven in so few simulations; see the schedules in test_tree.py
    [
        (4, 16, [6, 6, 2, 2, 0, 0, 0]),
        (2, 9, [5, 4, 0, 0, 0, 0, 0]),
        (1, 9, [9, 0, 0, 0, 0, 0, 0]),
        (16, 5, [1, 1, 1, 1, 1, 0, 0]),
        (3, 5, [2, 2, 1, 0, 0, 0, 0]),
        (16, 200, [67, 66, 31, 9, 9, 9, 9]),
    ],
)
@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_halving_counts_by_hand(considered, simulations, visits, noise):
    config = replace(BASE, num_simulations=simulations, gumbel_actions=considered, noise_fraction=noise)
    _, result = run([CONNECT4.start()] * 10, config, planted())
    assert (np.sort(result.visit_counts, axis=1)[:, ::-1] == visits).all()


def test_a_gumbel_roots_value_is_not_spoilt_by_the_bad_actions_it_tries():
    center = np.uint64(CONNECT4.start().play(3).state.max())  # the stone on d1

    def evaluate(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Good for the first player as soon as somebody has taken d1, else bad."""
        stones = states[:, 0] | states[:, 1]
        first_to_move = np.array([int(word).bit_count() % 2 == 0 for word in stones])
        first = np.where(stones & center, 0.8, -0.8)
        return legal_masks.astype(np.float32), np.where(first_to_move, first, -first).astype(np.float32)

    config = replace(BASE, num_simulations=32, gumbel_actions=7)
    search, result = run([CONNECT4.start()] * 10, config, evaluate)
    assert (result.actions == 3).all()
    assert (search.tree.node_value[:, 0] / search.tree.node_visits[:, 0] < 0.2).all()  # the mean of all visits
    assert result.values == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("game", [TICTACTOE, CONNECT4], ids=lambda game: game.name)
def test_the_gumbel_winner_has_the_best_score_of_the_most_visited(game):
    config = replace(BASE, num_simulations=40, gumbel_actions=4, noise_fraction=0.25)
    positions = random_positions(game, 60, seed=20)
    search, result = run(positions, config, planted(14))
    tree = dense(search.tree)
    for b, position in enumerate(positions):
        proven = tree.action_proven[b, 0]
        legal = position.legal_actions
        eligible = [action for action in legal if proven[action] == 1]
        eligible = eligible or [action for action in legal if proven[action] != -1] or legal
        visits = result.visit_counts[b]
        most = int(max(visits[legal]))
        sigma = (50.0 + most) * (result.q[b].astype(float) + 1) / 2
        scores = tree.root_gumbel[b] + np.log(np.maximum(tree.prior[b, 0], 1e-12)) + sigma
        if most in visits[eligible]:
            leaders = [action for action in eligible if visits[action] == most]
            assert result.actions[b] == max(leaders, key=lambda action: scores[action])
        else:  # the most visited one is lost: one of those that lead now, or the best of all that are left
            leaders = [action for action in eligible if visits[action] == visits[eligible].max()]
            best = max(leaders, key=lambda action: scores[action]), max(eligible, key=lambda action: scores[action])
            assert result.actions[b] in best


def test_gumbel_without_noise_is_deterministic():
    config = replace(BASE, num_simulations=32, gumbel_actions=4, noise_fraction=0.0)
    position = CONNECT4.position("4 3")
    results = [run([position], config, planted(), np.array([number]), seed=number)[1] for number in range(6)]
    assert len({row_bytes(result, 0) for result in results}) == 1
    noisy = replace(config, noise_fraction=0.25)
    assert len({row_bytes(run([position], noisy, planted(), np.array([i]))[1], 0) for i in range(6)}) > 1
    # without noise the considered actions are those of highest prior
    prior = planted()(position.state[None], position.legal_mask[None])[0][0]
    assert set(np.flatnonzero(results[0].visit_counts[0])) == set(np.argsort(-prior)[:4])


def test_an_untrained_net_does_not_play_the_first_actions_in_their_order():
    """In gomoku those are five in a row, and no candidate passed the gate against that."""
    config = replace(BASE, num_simulations=8, gumbel_actions=4, noise_fraction=0.0)
    count = 70
    played = run([CONNECT4.start()] * count, config, neutral, np.arange(count))[1].actions
    # each of 7 actions is the choice of 10 games on average; 1 in 30,000 for one of them to be that of none
    assert set(played) == set(range(7))


@pytest.mark.parametrize("leaves", [2, 8])
def test_gumbel_with_leaves_in_flight_spends_its_budget_on_the_considered(leaves):
    config = replace(BASE, num_simulations=64, gumbel_actions=4, noise_fraction=0.25, leaves_per_step=leaves)
    search, result = run([CONNECT4.start()] * 10, config, planted())
    assert (result.visit_counts.sum(axis=1) == 64).all()
    tree = dense(search.tree)
    for b in range(10):
        scores = tree.root_gumbel[b] + np.log(tree.prior[b, 0])
        assert set(np.flatnonzero(result.visit_counts[b])) == set(np.argsort(-scores)[:4])
