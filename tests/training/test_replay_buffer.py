"""Samples: the window, merging of equal positions, batches under symmetries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import StorageError, TrainingError
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from alphazero.storage.arrays import write_npz
from alphazero.training.config import ReplayConfig
from alphazero.training.replay_buffer import ReplayBuffer, Samples, TrainingSet, merge_equal, read_samples
from games.tictactoe.game import TicTacToe

KERNELS = Kernels(TicTacToe())


def samples(texts: list[str], policies: list[int], z: list[float], q: list[float]) -> Samples:
    """Positions by their moves, one-hot policies."""
    states = np.array([TicTacToe().position(text).state for text in texts])
    return Samples(states, np.eye(9, dtype=np.float32)[policies], np.array(z, np.float32), np.array(q, np.float32))


@pytest.mark.parametrize(("generation", "size"), [(1, 4), (2, 4), (3, 5), (4, 5), (5, 6), (33, 20), (100, 20)])
def test_the_window_grows_by_half_a_generation_up_to_its_end(generation, size):
    config = ReplayConfig(window_start=4, window_growth=0.5, window_max=20)
    assert ReplayBuffer(KERNELS, config).window(generation) == size


def test_the_oldest_generations_leave():
    buffer = ReplayBuffer(KERNELS, ReplayConfig(window_start=2, window_growth=0, merge=False))
    for generation in range(1, 5):
        buffer.add(generation, samples([""], [0], [0], [generation / 10]))
    assert [number for number, _ in buffer.generations] == [3, 4]
    np.testing.assert_allclose(buffer.training_set().values, [0.3, 0.4])


def test_equal_positions_are_averaged_mirror_images_included():
    """a1 and c1 are images of each other: their targets meet, with the policy turned along."""
    found = samples(["a1", "c1", "a1", "b2"], [1, 1, 1, 0], [0] * 4, [1, 0, -1, 1])
    buffer = ReplayBuffer(KERNELS, ReplayConfig())
    buffer.add(1, found)
    training_set = buffer.training_set()
    states, policies, values = training_set.states, training_set.policies, training_set.values
    assert len(states) == 2
    corner = int(np.flatnonzero([bin(int(s[1])).count("1") == 1 and int(s[1]) != 1 << 4 for s in states])[0])
    assert values[corner] == pytest.approx(0.0) and values[1 - corner] == pytest.approx(1.0)
    np.testing.assert_allclose(policies.sum(axis=1), 1, atol=1e-6)
    # each of the three corner samples put its whole weight on a square beside the corner, in line with the middle edge
    stone = int(np.log2(float(states[corner][1])))
    beside = {0: {1, 3}, 2: {1, 5}, 6: {3, 7}, 8: {5, 7}}[stone]
    assert set(np.flatnonzero(policies[corner])) <= beside


def test_the_window_rounds_policies_by_less_than_a_thousandth_and_keeps_values():
    rng = np.random.default_rng(0)
    policies = rng.dirichlet(np.ones(9), 300).astype(np.float32)
    found = Samples(rng.integers(0, 512, (300, 2)).astype(np.uint64), policies, *np.float32(rng.random((2, 300))))
    buffer = ReplayBuffer(Kernels(NoTransform()), ReplayConfig(merge=False))
    buffer.add(1, found)
    ((_, kept),) = buffer.generations
    assert sum(getattr(kept, name).nbytes for name in ("states", "policies", "values")) == 300 * (16 + 18 + 4)
    batch = buffer.training_set().batch(np.arange(300), np.zeros(300, np.int64))
    assert batch.policy_targets.dtype == np.float32
    np.testing.assert_allclose(batch.policy_targets, policies, rtol=1 / 2048, atol=1e-7)
    np.testing.assert_array_equal(batch.value_targets, found.values)


@pytest.mark.parametrize("merge", [True, False])
def test_the_policy_is_turned_with_its_position(merge):
    """Every action of some positions: what it leads to is an image of what the target's action leads to."""
    game = TicTacToe()

    def image(state: np.ndarray) -> tuple[int, ...]:
        return tuple(int(word) for word in KERNELS.canonical(state[None])[0][0])

    cases = [
        (text, action) for text in ("c1", "b1 c2", "c3 b2", "c2 a3 b1") for action in game.position(text).legal_actions
    ]
    assert sum(image(game.position(text).state) != tuple(game.position(text).state.tolist()) for text, _ in cases) > 20
    for text, action in cases:
        buffer = ReplayBuffer(KERNELS, ReplayConfig(merge=merge))
        buffer.add(1, samples([text], [action], [0], [0]))
        training_set = buffer.training_set()
        (turned,) = np.flatnonzero(training_set.policies[0])
        reached = Position(game, training_set.states[0].copy(), len(text.split()) % 2, ()).play(int(turned))
        assert image(reached.state) == image(game.position(text).play(action).state), (text, action)


@pytest.mark.parametrize("at_once", [3, 1000])
def test_means_do_not_depend_on_how_many_positions_are_merged_at_once(monkeypatch, at_once):
    monkeypatch.setattr("alphazero.training.replay_buffer.MERGED_AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    states = rng.integers(0, 7, (400, 2)).astype(np.uint64)
    policies, values = rng.random((400, 9)).astype(np.float32), rng.random(400).astype(np.float32)
    merged, mean_policies, mean_values = merge_equal(states, policies, values, policies.shape[1])
    assert len(merged) == len(mean_policies) == len(mean_values) == len({tuple(map(int, row)) for row in states})
    for state, policy, value in zip(merged, mean_policies, mean_values, strict=True):
        equal = (states == state).all(axis=1)
        np.testing.assert_allclose(policy, policies[equal].mean(axis=0, dtype=np.float64), rtol=1e-6)
        assert value == pytest.approx(values[equal].mean(dtype=np.float64), rel=1e-9)


class NoTransform(TicTacToe):
    """Its states cannot be turned, only what the network sees of them."""

    rules = replace(TicTacToe.rules, transform=None)


@pytest.mark.parametrize("kernels", [KERNELS, Kernels(NoTransform())], ids=["transform", "without"])
def test_batches_go_round_all_positions_and_turn_them_consistently(kernels):
    game = TicTacToe()
    rng = np.random.default_rng(1)
    texts = ["", "a1", "b1", "a1 b2", "b1 a3", "c3 b2 a1"]
    positions = [game.position(text) for text in texts]
    actions = [int(rng.choice(position.legal_actions)) for position in positions]
    buffer = ReplayBuffer(kernels, ReplayConfig(merge=False))
    buffer.add(1, samples(texts, actions, [0.0] * 6, [0.1 * i for i in range(6)]))
    training_set = buffer.training_set()
    seen = []
    for batch in training_set.batches(training_set.draws(3, 4, np.random.default_rng(2))):
        assert batch.observations.shape == (3, 2, 3, 3) and batch.observations.dtype == np.float32
        assert (batch.policy_targets[~batch.legal_masks] == 0).all()
        # free squares are exactly the legal ones, whatever the symmetry
        np.testing.assert_array_equal(batch.observations.sum(axis=1).reshape(3, 9) == 0, batch.legal_masks)
        seen += list(np.round(batch.value_targets, 4))
    assert sorted(seen) == sorted([np.float32(round(0.1 * i, 4)) for i in range(6)] * 2)


@pytest.mark.parametrize("merge", [True, False])
def test_the_network_learns_from_the_positions_that_it_will_be_asked_about(merge):
    """One image of each: the smallest; where the states cannot be turned, all of them."""
    found = samples(["c1", "c3 b2"], [2, 0], [0, 0], [0.5, -0.5])
    for kernels, count in ((KERNELS, 1), (Kernels(NoTransform()), 4)):
        buffer = ReplayBuffer(kernels, ReplayConfig(merge=merge))
        buffer.add(1, found)
        images: dict[float, set[bytes]] = {0.5: set(), -0.5: set()}
        training_set = buffer.training_set()
        for batch in training_set.batches(training_set.draws(2, 60, np.random.default_rng(0))):
            for planes, value in zip(batch.observations, batch.value_targets, strict=True):
                images[float(value)].add(planes.tobytes())
        assert [len(seen) for seen in images.values()] == [count, count]
    smallest = []
    for state in found.states:
        turned = np.repeat(state[None], 8, axis=0)
        for symmetry in range(8):
            TicTacToe.rules.transform(turned[symmetry], symmetry)
        smallest.append(min(turned.tolist()))
    expected = [planes.tobytes() for planes in KERNELS.observations(np.array(smallest, np.uint64))]
    buffer = ReplayBuffer(KERNELS, ReplayConfig(merge=merge))
    buffer.add(1, found)
    training_set = buffer.training_set()
    (batch,) = training_set.batches(training_set.draws(2, 1, np.random.default_rng(0)))
    order = np.argsort(-batch.value_targets)
    assert [planes.tobytes() for planes in batch.observations[order]] == expected


def test_a_symmetry_turns_observation_mask_and_policy_alike():
    game = TicTacToe()
    position = game.position("a1 b2 b1")
    found = samples(["a1 b2 b1"], [2], [1], [1])
    for symmetry in range(8):
        training_set = TrainingSet(KERNELS, found.states, found.policies, found.values)
        batch = training_set.batch(np.array([0]), np.array([symmetry]))
        state = position.state.copy()
        game.rules.transform(state, symmetry)
        np.testing.assert_array_equal(batch.observations, KERNELS.observations(state[None]))
        np.testing.assert_array_equal(batch.legal_masks, KERNELS.describe_all(state[None])[0])
        assert game.symmetries[1][symmetry][int(batch.policy_targets.argmax())] == 2


@pytest.mark.parametrize("name", ["policies", "outcomes", "values"])
def test_samples_that_are_no_numbers_are_said_to_be_such(name):
    """And not as a fault of the file that their figures would be written to."""
    found = samples(["a1", "b2"], [0, 1], [1.0, -1.0], [0.5, 0.5])
    found.check()
    getattr(found, name)[1] = np.nan
    with pytest.raises(TrainingError, match=name):
        found.check()


@pytest.mark.parametrize("change", ["more", "other game", "nan", "a policy of 2", "nothing", "as written"])
def test_samples_in_a_file_must_be_those_of_the_game_and_as_many_as_the_manifest_says(change, tmp_path):
    game, path = registry.load("tictactoe").game, tmp_path / "replay.npz"
    found = samples(["a1", "b2"], [0, 1], [1.0, -1.0], [0.5, 0.5]).arrays()
    if change == "other game":
        found["policies"] = np.zeros((2, 7), np.float32)
    elif change == "nan":
        found["values"] = found["values"] * np.float32(np.nan)
    elif change == "a policy of 2":
        found["policies"] = found["policies"] + np.float32(2)
    elif change == "nothing":
        del found["states"]
    write_npz(path, found)
    if change == "as written":
        assert len(read_samples(path, game, 2)) == 2
        return
    with pytest.raises(StorageError, match=r"replay.npz is damaged, or was not written by alphazero"):
        read_samples(path, game, 1 if change == "more" else 2)
