"""Tic-tac-toe with a network of its own kind: linear, in numpy alone, taught by a gradient written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from alphazero.game import Game
from alphazero.nets.neural_net import Batch, NeuralNet, Trainer
from alphazero.storage.checkpoint import check_tensors, load_checkpoint, save_checkpoint
from games.tictactoe.game import TicTacToe


class LinearTicTacToe(TicTacToe):
    """The same rules, as compiled for the shipped game; its nets are others."""


@dataclass(frozen=True)
class LinearConfig:
    """Settings of the linear network."""

    scale: float = 1.0
    """Factor of the observations."""


class LinearNet(NeuralNet):
    """Softmax of a linear policy, and tanh of a linear value."""

    def __init__(self, game: Game, config: LinearConfig):
        self.config = config
        inputs = int(np.prod(game.observation_shape)) + 1
        self.weights = {
            "policy": np.zeros((inputs, game.num_actions), np.float32),
            "value": np.zeros(inputs, np.float32),
        }

    def inputs(self, observations: np.ndarray) -> np.ndarray:
        """`float32[n, F]`: cells and a one."""
        cells = self.config.scale * observations.reshape(len(observations), -1)
        return np.concatenate([cells, np.ones((len(cells), 1), np.float32)], axis=1, dtype=np.float32)

    def evaluate(self, observations: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = self.inputs(observations)
        weights = np.exp(np.clip(x @ self.weights["policy"], -30, 30)) * legal_masks
        return weights / weights.sum(axis=1, keepdims=True), np.tanh(x @ self.weights["value"])

    def save(self, path: Path, card: Mapping[str, Any]) -> dict[str, Any]:
        return save_checkpoint(path, self.weights, {**self.card, **card})

    def load(self, path: Path) -> dict[str, Any]:
        arrays, card = load_checkpoint(path)
        check_tensors(arrays, self.weights, path)
        self.weights = arrays
        return card

    def trainer(self, **settings: Any) -> Trainer:
        return LinearTrainer(self)


class LinearTrainer(Trainer):
    """Plain gradient descent, in place."""

    def __init__(self, net: LinearNet):
        self.net = net

    def train_step(self, batch: Batch, learning_rate: float) -> Mapping[str, float]:
        x, n = self.net.inputs(batch.observations), len(batch.value_targets)
        priors, values = self.net.evaluate(batch.observations, batch.legal_masks)
        errors = values - batch.value_targets
        policy_loss = -(batch.policy_targets * np.log(np.maximum(priors, 1e-9))).sum(axis=1).mean()
        # in new arrays: threads may be playing by the old ones
        self.net.weights = {
            "policy": self.net.weights["policy"] - learning_rate * x.T @ (priors - batch.policy_targets) / n,
            "value": self.net.weights["value"] - learning_rate * x.T @ (2 * errors * (1 - values**2)) / n,
        }
        return {"policy_loss": float(policy_loss), "value_loss": float(np.square(errors).mean())}

    def save(self, path: Path) -> dict[str, Any]:
        return save_checkpoint(path, self.net.weights, {})

    def load(self, path: Path) -> None:
        self.net.weights, _ = load_checkpoint(path)


def make_net(game: Game, settings: Mapping[str, Any]) -> LinearNet:
    return LinearNet(game, LinearConfig(**settings))


def scaled_net(game: Game, settings: Mapping[str, Any]) -> LinearNet:
    """Another network for tests that replace the game's own."""
    return LinearNet(game, LinearConfig(scale=2.0))


def presets(game: Game) -> dict[str, Any]:
    """The usual ones, with a network of the other kind."""
    from alphazero.training.presets import presets

    return {name: replace(config, net=LinearConfig()) for name, config in presets(game).items()}
