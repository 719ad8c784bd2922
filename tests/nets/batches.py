"""Batches of samples, and what a network answers to them in float32."""

from __future__ import annotations

import numpy as np
import torch

import alphazero as az
from alphazero.nets.neural_net import Batch
from alphazero.nets.torch_net import Inference, TorchNet
from games.connect4.game import Connect4


def sizes_of(name: str) -> dict[str, int]:
    """Settings of a small network for a game."""
    return {} if name.startswith(("backgammon", "cantstop")) else {"blocks": 1}


def random_batch(game, count: int, seed: int = 0) -> Batch:
    """Random observations, at least one legal action each, targets within the legal ones."""
    rng = np.random.default_rng(seed)
    masks = rng.random((count, game.num_actions)) < 0.6
    masks[np.arange(count), rng.integers(game.num_actions, size=count)] = True
    policies = rng.random((count, game.num_actions)).astype(np.float32) ** 4 * masks
    policies /= policies.sum(axis=1, keepdims=True)
    observations = (rng.random((count, *game.observation_shape)) < 0.3).astype(np.float32)
    return Batch(observations, masks, policies, rng.uniform(-1, 1, count).astype(np.float32))


def played_positions(count: int, game: az.Game | None = None) -> Batch:
    """Different positions of random games, as a network is asked about them; None: of Connect Four."""
    kernels, rng, found = az.Kernels(game or Connect4()), np.random.default_rng(5), dict[bytes, az.Position]()
    while len(found) < count:
        position = kernels.game.start()
        while not position.terminal and len(found) < count:
            found[position.state.tobytes()] = position
            position = position.play(int(rng.choice(np.flatnonzero(position.legal_mask))))
    states = np.stack([position.state for position in found.values()])
    masks, _, _ = kernels.describe_all(states)
    return Batch(kernels.observations(states), masks, masks.astype(np.float32), np.zeros(count, np.float32))


def exact_answers(net: TorchNet, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Priors and values in float32, by torch."""
    with torch.no_grad():
        logits, values = net.frozen_float()(torch.from_numpy(batch.observations))
    priors = torch.softmax(logits.masked_fill(~torch.from_numpy(batch.legal_masks), -1e9), dim=1)
    return priors.numpy(), values.numpy()


def assert_answers_of(module: torch.nn.Module, inference: Inference, observations: np.ndarray) -> np.ndarray:
    """The library answers as the module does in float32; returns its logits."""
    logits, values = inference(observations)
    with torch.no_grad():
        expected, expected_values = module(torch.from_numpy(observations))
    np.testing.assert_allclose(logits, expected.numpy(), atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(values, expected_values.numpy(), atol=1e-4)
    return logits
