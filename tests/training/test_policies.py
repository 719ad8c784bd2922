"""Policies in few bytes, against numbers for each action; a game of 270 actions learns what one of 9 does."""

from __future__ import annotations

import numpy as np
import pytest

from alphazero.errors import StorageError
from alphazero.game.kernels import Kernels
from alphazero.search.mcts import SearchConfig
from alphazero.storage.arrays import write_npz
from alphazero.training import replay_buffer
from alphazero.training.config import ReplayConfig, SelfPlayConfig
from alphazero.training.policies import packed, policies_of, turned, unpacked
from alphazero.training.replay_buffer import ReplayBuffer, Samples, merge_equal, read_samples
from alphazero.training.selfplay import SelfPlay
from tests.game.many_actions import APART, MANY, PLAIN

WORDS = policies_of(MANY, 1).zeros()
HALF_A_STEP = 0.5 / 65535 + 1e-7


def some_policies(count: int, entries: int, seed: int = 0) -> np.ndarray:
    rng, found = np.random.default_rng(seed), np.zeros((count, MANY.num_actions), np.float32)
    for row in found:
        weights = rng.random(rng.integers(1, entries + 1)) ** 4
        row[rng.permutation(len(row))[: len(weights)]] = weights / weights.sum()
    return found


def test_only_games_with_many_actions_of_which_few_are_legal_have_words():
    assert (WORDS.dtype, WORDS.shape) == (np.uint32, (1, 9))
    assert policies_of(PLAIN, 5).zeros().shape == (5, 9) and policies_of(PLAIN, 5).dtype is np.float32
    crowded = type("Crowded", (type(MANY),), {"mean_legal": 45})()
    assert policies_of(crowded, "n").shape == ("n", 270)


def test_what_is_unpacked_is_what_was_packed_rounded():
    policies = some_policies(200, 9)
    np.testing.assert_allclose(unpacked(packed(policies, WORDS), 270), policies, rtol=0, atol=HALF_A_STEP)
    whole = np.eye(270, dtype=np.float32)[[0, 269, 17]]
    np.testing.assert_array_equal(unpacked(packed(whole, WORDS), 270), whole)
    above = np.float32(whole * 1.001)  # as sums are rounded
    np.testing.assert_array_equal(unpacked(packed(above, WORDS), 270), whole)
    assert packed(np.full((1, 270), np.nan, np.float32), WORDS).tolist() == [[0] * 9]


def test_where_there_is_no_room_for_all_the_least_are_left_out():
    policies = some_policies(50, 40, seed=1)
    for row, found in zip(policies, unpacked(packed(policies, WORDS), 270), strict=True):
        best = np.sort(row)[-9:]
        kept = np.where(row >= best[0], row, 0) / best.sum()
        np.testing.assert_allclose(found, kept, rtol=0, atol=2 * HALF_A_STEP)


@pytest.mark.parametrize("at_once", [1, 1 << 14])
def test_turning_and_merging_words_is_turning_and_merging_all_numbers(at_once, monkeypatch):
    monkeypatch.setattr(replay_buffer, "MERGED_AT_ONCE", at_once)
    rng, policies = np.random.default_rng(2), some_policies(300, 4, seed=2)
    symmetries = rng.integers(0, 8, 300)
    permutations = MANY.symmetries[1]
    words = turned(packed(policies, WORDS), permutations, symmetries)
    expected = np.take_along_axis(policies, permutations[symmetries], axis=1)
    np.testing.assert_allclose(unpacked(words, 270), expected, rtol=0, atol=HALF_A_STEP)
    states, values = rng.integers(0, 160, (300, 2)).astype(np.uint64) // 10, rng.random(300).astype(np.float32)
    merged, wanted = (merge_equal(states, each, values, 270) for each in (words, unpacked(words, 270)))
    assert merged[1].dtype == np.uint32 and 100 < len(merged[0]) < 250
    np.testing.assert_array_equal(merged[0], wanted[0])
    np.testing.assert_allclose(unpacked(merged[1], 270).sum(axis=1), 1, atol=1e-3)
    few = np.count_nonzero(wanted[1], axis=1) <= 9
    assert few.sum() > 0
    np.testing.assert_allclose(unpacked(merged[1], 270)[few], wanted[1][few], rtol=0, atol=HALF_A_STEP)
    np.testing.assert_array_equal(merged[2], wanted[2])


def evaluate(states, legal_masks):
    priors = np.where(legal_masks, 1 + np.arange(legal_masks.shape[1]) // (legal_masks.shape[1] // 9), 0)
    return priors.astype(np.float32), (states[:, 0] % 7 / 8).astype(np.float32)


def worker(game) -> SelfPlay:
    config = SelfPlayConfig(games_per_generation=10, num_slots=8, temperature_plies=4)
    return SelfPlay(Kernels(game), config, SearchConfig(num_simulations=20, noise_fraction=0.0), evaluate, 8, 3)


def test_a_game_of_many_actions_is_learned_as_the_same_one_of_few():
    plain, many = worker(PLAIN), worker(MANY)
    expected, found = plain.play(30), many.play(30)
    np.testing.assert_array_equal(found.states, expected.states)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_allclose(unpacked(found.policies, 270)[:, ::APART], expected.policies, atol=HALF_A_STEP)
    batches = []
    for each, samples in ((plain, expected), (many, found)):
        replay = ReplayBuffer(each.kernels, ReplayConfig(merge=True))
        replay.add(1, samples)
        batches.append(replay.training_set().batch(np.arange(40), np.zeros(40, np.int64)))
    np.testing.assert_array_equal(batches[0].observations, batches[1].observations)
    np.testing.assert_array_equal(batches[0].legal_masks, batches[1].legal_masks[:, ::APART])
    targets = batches[1].policy_targets
    assert targets.shape == (40, 270) and not targets[~batches[1].legal_masks].any()
    np.testing.assert_allclose(targets[:, ::APART], batches[0].policy_targets, atol=6e-4)  # others round to float16


def test_games_in_progress_go_on_as_they_would_have():
    one, other = worker(MANY), worker(MANY)
    one.play(5)
    other.restore(one.state())
    assert one.state()["past_policies"].shape == (8, 9, 9)
    there = other.play(9).arrays()
    for name, array in one.play(9).arrays().items():
        np.testing.assert_array_equal(array, there[name])


def test_words_in_a_file_name_actions_of_the_game(tmp_path):
    samples = worker(MANY).play(3)
    write_npz(tmp_path / "a.npz", samples.arrays())
    read = read_samples(tmp_path / "a.npz", MANY)
    np.testing.assert_array_equal(read.policies, samples.policies)
    samples.policies[1, 2] = 270 << 16 | 5
    write_npz(tmp_path / "a.npz", samples.arrays())
    with pytest.raises(StorageError, match="policies"):
        read_samples(tmp_path / "a.npz", MANY)
    dense = Samples(samples.states, unpacked(samples.policies[:, :1], 270), samples.outcomes, samples.values)
    write_npz(tmp_path / "a.npz", dense.arrays())
    with pytest.raises(StorageError, match="policies"):
        read_samples(tmp_path / "a.npz", MANY)
