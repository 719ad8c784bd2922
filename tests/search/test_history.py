"""A game with repetitions: the search knows what was there before; the network, its cache and the samples do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import alphazero as az
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Search, SearchConfig
from alphazero.training.config import ReplayConfig, SelfPlayConfig
from alphazero.training.replay_buffer import ReplayBuffer, Samples
from alphazero.training.selfplay import SelfPlay
from alphazero.training.selfplay.shown_games import actions_of
from tests.game.repetition_game import PLIES, REPETITION, SHOWN
from tests.search.reference_search import ReferenceSearch, compare_trees, random_positions, states_of
from tests.search.searches import BASE, finish
from tests.search.test_evaluator import FakeNet

KERNELS = Kernels(REPETITION)
THERE_AND_BACK = 1, 32, 12, 21


def forgetful(position: Position) -> Position:
    """The same board, which was never there."""
    return Position(REPETITION, np.append(position.state[:SHOWN], np.zeros(PLIES, np.uint64)), position.to_play, ())


def bare(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The answers of a FakeNet for the smaller of the two mirror images of each board, one by one, by plain rules."""
    priors, values = np.zeros(legal_masks.shape, np.float32), np.empty(len(states), np.float32)
    for i, state in enumerate(states):
        images = [np.append(state[:SHOWN], np.zeros(PLIES, np.uint64)) for _ in range(2)]
        REPETITION.plain_rules.transform(images[1], 1)  # type: ignore[misc]
        symmetry = int(images[1].tolist() < images[0].tolist())
        own, planes = REPETITION.symmetries[1][symmetry], np.zeros(REPETITION.observation_shape, np.float32)
        REPETITION.plain_rules.observe(images[symmetry], planes)
        answer, value = FakeNet().evaluate(planes[None], legal_masks[i, own][None])
        priors[i, own], values[i] = answer[0], value[0]
    return priors, values


@pytest.mark.parametrize("change", [{}, {"leaves_per_step": 4}, {"gumbel_actions": 4, "fpu_reduction": 0.0}], ids=str)
def test_the_search_through_the_cache_is_the_plain_one_which_knows_all_of_the_game(change: dict[str, Any]):
    config = replace(BASE, num_simulations=120, **change)
    tried = [*random_positions(REPETITION, 5, seed=3), REPETITION.position([*THERE_AND_BACK, 1, 32, 12])]
    evaluator, numbers = Evaluator(KERNELS, FakeNet()), np.arange(len(tried))
    search = Search(KERNELS, config, evaluator, len(tried))
    search.start(numbers, states_of(tried), numbers, np.array([at.ply for at in tried]))
    finish(search)
    found, repeated, boards, asked = search.read(numbers), 0, set[bytes](), 0
    for row, at in enumerate(tried):
        root = ReferenceSearch(config, bare)
        root.start(at, None, search.tree.root_gumbel[row])
        root.run()
        compare_trees(search, row, root)
        assert found.visit_counts[row].tolist() == root.visit_counts().tolist()
        nodes = [node for node in root.nodes() if not (node.pending or node.position.terminal)]
        repeated += sum(node.position.terminal and not forgetful(node.position).terminal for node in root.nodes())
        asked += len(nodes)
        boards |= {KERNELS.canonical(node.position.state[None])[0].tobytes() for node in nodes}
    assert repeated > 0 and evaluator.num_evaluations == len(boards) < asked


def test_a_move_that_repeats_the_position_a_third_time_is_a_draw_only_where_it_was_there():
    def hopeful(states, legal_masks):
        return legal_masks.astype(np.float32), np.full(len(states), 0.5, np.float32)

    position = REPETITION.position([*THERE_AND_BACK, *THERE_AND_BACK[:3]])
    assert position.play(THERE_AND_BACK[3]).outcome == 0
    found, without = (az.search(at, hopeful, simulations=60) for at in (position, forgetful(position)))
    assert found.q[THERE_AND_BACK[3]] == 0 != without.q[THERE_AND_BACK[3]]
    for state in (position.state, position.state[:SHOWN]):
        assert KERNELS.canonical(state[None])[0][0, SHOWN:].tolist() == [0] * PLIES


def worker() -> SelfPlay:
    config = SelfPlayConfig(games_per_generation=10, num_slots=8, temperature_plies=30, random_plies=2)
    return SelfPlay(KERNELS, config, SearchConfig(num_simulations=16), Evaluator(KERNELS, FakeNet()), 8, 5)


def test_self_play_plays_by_the_history_and_learns_from_the_boards():
    playing, again = worker(), worker()
    first = playing.play(12)
    shown = playing.finished_games()
    games = [REPETITION.position(actions_of(REPETITION, game, 5) or ()) for game in shown]
    assert len(games) == 4 and all(game.terminal for game in games)
    assert first.states.shape[1] == SHOWN and playing.state()["past_states"].shape[2] == SHOWN
    drawn = [game for game in games if not forgetful(game).terminal and game.ply < PLIES]
    assert drawn, "no game ended by repetition"
    again.restore(playing.state())
    playing.forget(), again.forget()
    then, also = playing.play(6), again.play(6)
    assert {name: array.tobytes() for name, array in then.arrays().items()} == {
        name: array.tobytes() for name, array in also.arrays().items()
    }
    replay = ReplayBuffer(KERNELS, ReplayConfig(merge=True))
    replay.add(1, Samples.join([first, then]))
    positions = replay.training_set()
    boards = KERNELS.canonical(np.concatenate([first.states, then.states]))[0]
    assert len(positions) == len(np.unique(boards, axis=0)) < len(boards)
    batch = positions.batch(np.arange(len(positions)), np.zeros(len(positions), np.int64))
    whole = KERNELS.rows(positions.states)
    np.testing.assert_array_equal(batch.observations, KERNELS.observations(whole))
    np.testing.assert_array_equal(batch.legal_masks, KERNELS.describe_all(whole)[0])
    assert (batch.policy_targets[~batch.legal_masks] == 0).all() and batch.legal_masks.any(axis=1).all()
