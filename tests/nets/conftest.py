"""A small network that has learned a little, and its trainer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from alphazero.nets.resnet import make_net
from alphazero.nets.torch_net import TorchNet
from alphazero.nets.torch_trainer import TorchTrainer
from games.connect4.game import Connect4
from tests.nets.batches import random_batch

SIZES = {"blocks": 2, "channels": 16, "lines": 6}


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What learning goes on from, once batch norms and heads have left their initial values."""
    torch.manual_seed(1)
    trainer, batch = make_net(Connect4(), SIZES).trainer(), random_batch(Connect4(), 64)
    for _ in range(30):
        trainer.train_step(batch, 3e-3)
    path = tmp_path_factory.mktemp("learned") / "learner.safetensors"
    trainer.save(path)
    return path


@pytest.fixture
def trainer(learned: Path) -> TorchTrainer:
    """Of a small network that has learned a little."""
    trainer = make_net(Connect4(), SIZES).trainer()
    trainer.load(learned)
    return trainer


@pytest.fixture(scope="session")
def trained(learned: Path) -> TorchNet:
    """A network that has learned a little, for all tests that leave it as it is."""
    trainer = make_net(Connect4(), SIZES).trainer()
    trainer.load(learned)
    return trainer.net
