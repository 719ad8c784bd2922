"""Runs of games for more than two: targets for each player, and runs that are resumed."""

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.game.rules import seen_by
from alphazero.search.mcts import SearchConfig
from alphazero.training.config import SelfPlayConfig
from alphazero.training.replay_buffer import merge_equal
from alphazero.training.selfplay import SelfPlay
from alphazero.training.selfplay.shown_games import actions_of
from alphazero.training.selfplay.value_targets import lambda_returns, record
from tests.search.test_seats import MO, Stroll, Walk, planted_seats
from tests.training.test_dice import test_a_resumed_run_equals_the_uninterrupted_one as resume


def test_values_turn_to_the_viewer():
    values = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
    turned = seen_by(np.array([2, 1], np.int8), np.array([1, 3], np.int8), values)
    assert turned.tolist() == [[2, 3, 4, 1], [7, 8, 5, 6]]
    two = np.array([0.5, -0.25], np.float32)
    assert seen_by(np.array([0, 1]), np.array([0, 0]), two).tolist() == [0.5, 0.25]


@pytest.mark.parametrize("td_lambda", [1.0, 0.25])
def test_lambda_returns_are_those_of_each_player_by_itself(td_lambda: float):
    """Each player's own numbers in the order of the seats, one after another, as the formula is written."""
    rng = np.random.default_rng(0)
    games, plies, seats = 20, 9, 4
    to_play, last = rng.integers(seats, size=(games, plies)).astype(np.int8), rng.integers(3, plies, size=games)
    done = np.arange(plies) == last[:, None]
    rewards = np.where(done[..., None], rng.uniform(-1, 1, (games, plies, seats)), 0).astype(np.float32)
    values = rng.uniform(-1, 1, (games, plies, seats)).astype(np.float32)
    explored = (rng.random((games, plies)) < 0.2) & (np.arange(plies) <= last[:, None])
    recordings = record(to_play, done, rewards, values, explored)
    found = lambda_returns(recordings, SelfPlayConfig(td_lambda=td_lambda))
    for game in range(games):
        for player in range(seats):
            place = (player - to_play[game]) % seats
            target = 0.0
            for ply in reversed(range(last[game] + 1)):
                own = float(values[game, ply, place[ply]])
                target = float(rewards[game, ply, place[ply]]) if done[game, ply] else target
                target = (1 - td_lambda) * own + td_lambda * target
                target = own if explored[game, ply] else target
                assert found[game, ply, place[ply]] == pytest.approx(target, abs=1e-6)


@pytest.mark.parametrize("game", [MO, Walk()], ids=lambda game: game.name)
def test_the_outcomes_of_samples_are_the_results_from_the_mover_on(game: Game):
    kernels, config = Kernels(game), SelfPlayConfig(random_plies=0, td_lambda=1.0)
    games = SelfPlay(kernels, config, SearchConfig(num_simulations=8), planted_seats(game), num_slots=4, seed=1)
    samples, compared = games.play(12), 0
    assert samples.values.shape == samples.outcomes.shape == (len(samples), game.num_players)
    np.testing.assert_array_equal(samples.values, samples.outcomes)
    for finished in games.finished_games():
        actions = actions_of(game, finished, seed=1)
        assert actions is not None
        *before, end = [at for at in game.position(actions).history if not at.chances]
        for at in before:
            rows = np.flatnonzero((samples.states == at.state).all(axis=1))
            expected = np.roll(end.results, -at.to_play).astype(np.float32).tolist()
            assert expected in samples.outcomes[rows].tolist()
            compared += len(set(expected)) > 1
    assert compared


def test_equal_positions_have_the_mean_of_each_player():
    states, policies = np.array([[1], [2], [1]], np.uint64), np.ones((3, 2), np.float16)
    values = np.array([[1, 0, -1], [0.5, 0.5, 0], [0, 0, 1]], np.float32)
    _, _, merged = merge_equal(states, policies, values, policies.shape[1])
    assert merged.tolist() == [[0.5, 0, 0], [0.5, 0.5, 0]]


def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path, monkeypatch: pytest.MonkeyPatch):
    resume(tmp_path, Walk(), monkeypatch)


def test_a_network_of_a_game_for_more_answers_for_each_player():
    """By every library alike; a fresh network has no opinion."""
    for loaded in (registry.load("tictacmo"), registry.of(Stroll())):
        net = loaded.make_net(loaded.game, {"blocks": 1, "channels": 16})
        assert loaded.game.num_values == loaded.game.num_players
        state = loaded.game.start().state[None]
        observations, masks = Kernels(loaded.game).observations(state), np.ones((1, loaded.game.num_actions), bool)
        with np.errstate(all="ignore"):
            for name in ("torch", "winograd", "openvino"):
                net.use_inference(name)
                _, values = net.evaluate(observations, masks)
                assert values.tolist() == [[0.0] * loaded.game.num_players]
