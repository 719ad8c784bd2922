"""Batches on a device: torch's processor stands for the GPU."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from alphazero.catalogue import registry
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.training import replay_buffer
from alphazero.training.config import LearnerConfig
from alphazero.training.learner import Learner
from alphazero.training.replay_buffer import DeviceBatches, TrainingSet, batches_on
from tests.training.test_replay_buffer import NoTransform


def random_set(game: str | Game, count: int) -> TrainingSet:
    """Positions of random play, with random targets."""
    kernels, rng = Kernels(registry.load(game).game if isinstance(game, str) else game), np.random.default_rng(0)
    states, to_play = kernels.start_states(count), np.zeros(count, np.int8)
    for _ in range(6):
        masks, terminal, _ = kernels.describe_all(states)
        kernels.play(states, to_play, np.where(terminal, -1, (masks * rng.random(masks.shape)).argmax(axis=1)))
    policies = rng.random((count, kernels.game.num_actions), np.float32)
    return TrainingSet(kernels, states, policies, rng.uniform(-1, 1, count).astype(np.float32))


def draws_of(source: TrainingSet, size: int, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return list(source.draws(size, count, np.random.default_rng(1)))


@pytest.mark.parametrize("count", [2, 9])  # of 200 positions, some are never drawn, or some twice
@pytest.mark.parametrize("name", ["connect4", "othello6", "dots_and_boxes", NoTransform()])
def test_batches_on_a_device_equal_those_of_the_processor(name, count, monkeypatch):
    monkeypatch.setattr(replay_buffer, "PIECE", 16)
    source = random_set(name, 200)
    draws = draws_of(source, 48, count)
    for threads in (1, 3):
        on_device = DeviceBatches(source, "cpu", draws, threads)
        assert len(on_device._planes) == min(200, 48 * count), "only what is drawn is described, and that once"
        pairs = list(zip(source.batches(draws), on_device, strict=True))
        assert len(pairs) == count
        for expected, found in pairs:
            for part, tensor in zip(*(dataclasses.astuple(batch) for batch in (expected, found)), strict=True):
                assert tensor.numpy().dtype == part.dtype
                assert np.array_equal(tensor.numpy(), part)


def test_planes_that_are_no_small_whole_numbers_keep_their_values(monkeypatch):
    monkeypatch.setattr(replay_buffer, "PIECE", 64)
    source = random_set("connect4", 100)
    observations = source.kernels.observations

    def scaled(states):
        return observations(states) * (1.0 if len(states) == 64 else 0.3)

    monkeypatch.setattr(source.kernels, "observations", scaled)
    on_device = DeviceBatches(source, "cpu", draws_of(source, 100, 1), 1)
    assert on_device._planes.dtype == torch.float32
    expected = np.unique(np.concatenate([scaled(source.states[:64]), scaled(source.states[64:])]))
    assert {0.0, 1.0, np.float32(0.3)} < set(expected.tolist())
    assert on_device._planes.unique().tolist() == expected.tolist()


@pytest.mark.parametrize("full", ["at first", "on the way", "another error"])
def test_what_does_not_fit_is_copied_batch_by_batch(full, monkeypatch, caplog):
    source = random_set("connect4", 100)
    draws, free = draws_of(source, 20, 4), 2 * 80 * source.bytes_of_one
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free - (full == "at first"), 0))

    def refuse(*arguments):
        raise RuntimeError("broken") if full == "another error" else torch.OutOfMemoryError

    monkeypatch.setattr(replay_buffer, "DeviceBatches", refuse)
    list(batches_on("cpu", source, draws, 1))
    assert not caplog.text
    if full == "another error":
        with pytest.raises(RuntimeError, match="broken"):
            batches_on("cuda", source, draws, 1)
        return
    found = list(batches_on("cuda", source, draws, 1))
    assert "do not fit" in caplog.text
    for batch, expected in zip(found, source.batches(draws), strict=True):
        assert np.array_equal(batch.observations, expected.observations)


def test_the_size_is_counted_by_hand():
    """Connect Four: 24 planes of 42 cells, 7 actions with a mask and a target of 4 bytes, a value of 4 bytes."""
    assert random_set("connect4", 10).bytes_of_one == 24 * 42 + 7 * 5 + 4


def learnable_set() -> TrainingSet:
    """Positions with targets that can be seen: the lowest legal column, and who has more stones on the left."""
    source = random_set("connect4", 256)
    masks, _, _ = source.kernels.describe_all(source.states)
    left = source.kernels.observations(source.states)[:, :2, :, :3].sum(axis=(2, 3))
    policies = np.eye(masks.shape[1], dtype=np.float32)[masks.argmax(axis=1)]
    values = np.sign(left[:, 0] - left[:, 1]).astype(np.float32)
    return TrainingSet(source.kernels, source.states, policies, values)


@pytest.mark.cuda
def test_a_gpu_learns_what_the_targets_say():
    """After 150 updates the mean error of values is 0.012 on the processor, and 0.005 after 300; before them 0.69."""
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    torch.manual_seed(0)
    source, loaded = learnable_set(), registry.load("connect4")
    net = loaded.make_net(loaded.game, {"blocks": 1, "channels": 16})
    net.use_device("cuda")
    learner = Learner(net, LearnerConfig(batch_size=64, warmup_updates=0), 0)
    means = learner.learn(source, 150, 1, 0.0)
    masks, _, _ = source.kernels.describe_all(source.states)
    policies, values = net.evaluate(source.kernels.observations(source.states), masks)
    assert means["policy_loss"] < 0.2 and means["value_loss"] < 0.08  # 0.155 and 0.056 on the processor
    assert np.abs(policies - source.policies).mean() < 0.001 and np.abs(values - source.values).mean() < 0.03


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["othello6", NoTransform()])
def test_batches_on_a_gpu_equal_those_of_the_processor(name):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    source = random_set(name, 300)
    draws = draws_of(source, 64, 5)
    on_device = batches_on("cuda", source, draws, 3)
    assert isinstance(on_device, DeviceBatches)
    for expected, found in zip(source.batches(draws), on_device, strict=True):
        for part, tensor in zip(*(dataclasses.astuple(batch) for batch in (expected, found)), strict=True):
            assert tensor.device.type == "cuda"
            assert np.array_equal(tensor.cpu().numpy(), part)
