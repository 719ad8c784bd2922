"""The replay window on a device: torch's processor stands for the GPU."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from alphazero.game import Game, registry
from alphazero.game.kernels import Kernels
from alphazero.training import cuda_replay as device_training
from alphazero.training.cuda_replay import DeviceTrainingSet, place
from alphazero.training.learner import Learner, LearnerConfig
from alphazero.training.replay_buffer import TrainingSet
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


@pytest.mark.parametrize("name", ["connect4", "othello6", "dots_and_boxes", NoTransform()])
def test_batches_on_a_device_equal_those_of_the_processor(name, monkeypatch):
    monkeypatch.setattr(device_training, "PIECE", 64)
    source = random_set(name, 200)
    on_device = DeviceTrainingSet(source, "cpu")
    pairs = list(zip(*(kind.batches(48, 9, np.random.default_rng(1)) for kind in (source, on_device)), strict=True))
    assert len(pairs) == 9 and len(on_device) == 200
    for expected, found in pairs:
        for part, tensor in zip(*(dataclasses.astuple(batch) for batch in (expected, found)), strict=True):
            assert tensor.numpy().dtype == part.dtype
            assert np.array_equal(tensor.numpy(), part)


def test_planes_that_are_no_small_whole_numbers_keep_their_values(monkeypatch):
    monkeypatch.setattr(device_training, "PIECE", 64)
    source = random_set("connect4", 100)
    observations = source.kernels.observations

    def scaled(states):
        return observations(states) * (1.0 if len(states) == 64 else 0.3)

    monkeypatch.setattr(source.kernels, "observations", scaled)
    on_device = DeviceTrainingSet(source, "cpu")
    assert on_device._planes.dtype == torch.float32
    expected = np.unique(np.concatenate([scaled(source.states[:64]), scaled(source.states[64:])]))
    assert {0.0, 1.0, np.float32(0.3)} < set(expected.tolist())
    assert on_device._planes.unique().tolist() == expected.tolist()


def test_a_window_that_does_not_fit_stays_where_it_is(monkeypatch, caplog):
    source = random_set("connect4", 100)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2 * source.num_bytes - 1, 0))
    assert place(source, "cpu") is source and not caplog.text
    assert place(source, "cuda") is source
    assert "does not fit" in caplog.text


def test_the_size_is_counted_by_hand():
    """Connect Four: 24 planes of 42 cells, 7 actions with a mask and a target of 4 bytes, a value of 4 bytes."""
    assert random_set("connect4", 10).num_bytes == 10 * (24 * 42 + 7 * 5 + 4)


@pytest.mark.cuda
def test_learning_on_a_gpu_is_close_to_learning_on_the_processor():
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    source, nets = random_set("connect4", 256), []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        loaded = registry.load("connect4")
        net = loaded.make_net(loaded.game, {"blocks": 1, "channels": 16})
        net.use_device(device)
        Learner(net, LearnerConfig(batch_size=64, warmup_updates=0), 0).learn(source, 40, 1, 0.0)
        nets.append(net)
    masks, _, _ = source.kernels.describe_all(source.states)
    answers = [net.evaluate(source.kernels.observations(source.states), masks) for net in nets]
    for here, there in zip(*answers, strict=True):  # bf16 on both, in another order
        assert np.abs(here - there).mean() < 0.03


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["othello6", NoTransform()])
def test_batches_on_a_gpu_equal_those_of_the_processor(name):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    source = random_set(name, 300)
    on_device = place(source, "cuda")
    assert isinstance(on_device, DeviceTrainingSet)
    for expected, found in zip(*(s.batches(64, 5, np.random.default_rng(1)) for s in (source, on_device)), strict=True):
        for part, tensor in zip(*(dataclasses.astuple(batch) for batch in (expected, found)), strict=True):
            assert np.array_equal(tensor.cpu().numpy(), part)
