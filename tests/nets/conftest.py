"""A small network that has learned a little, and its trainer."""

from __future__ import annotations

import pytest
import torch

from alphazero.nets.resnet import make_net
from alphazero.nets.torch_net import TorchNet
from alphazero.nets.torch_trainer import TorchTrainer
from games.connect4.game import Connect4
from tests.nets.batches import random_batch


@pytest.fixture(params=[{}, {"bottleneck": 8, "lines": 6}], ids=["plain", "lines"])
def trainer(request: pytest.FixtureRequest) -> TorchTrainer:
    """Of a small network whose batch norms and heads have left their initial values."""
    torch.manual_seed(1)
    trainer = make_net(Connect4(), {"blocks": 3, "channels": 16} | request.param).trainer()
    batch = random_batch(Connect4(), 64)
    for _ in range(30):
        trainer.train_step(batch, 3e-3)
    trainer.finish()
    return trainer


@pytest.fixture
def trained(trainer: TorchTrainer) -> TorchNet:
    """The network that the trainer teaches."""
    return trainer.net
