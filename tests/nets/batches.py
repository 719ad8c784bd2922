"""Batches of random samples."""

from __future__ import annotations

import numpy as np

from alphazero.nets.neural_net import Batch


def random_batch(game, count: int, seed: int = 0) -> Batch:
    """Random observations, at least one legal action each, targets within the legal ones."""
    rng = np.random.default_rng(seed)
    masks = rng.random((count, game.num_actions)) < 0.6
    masks[np.arange(count), rng.integers(game.num_actions, size=count)] = True
    policies = rng.random((count, game.num_actions)).astype(np.float32) ** 4 * masks
    policies /= policies.sum(axis=1, keepdims=True)
    observations = (rng.random((count, *game.observation_shape)) < 0.3).astype(np.float32)
    return Batch(observations, masks, policies, rng.uniform(-1, 1, count).astype(np.float32))
