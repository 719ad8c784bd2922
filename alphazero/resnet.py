"""The residual network of AlphaZero (Silver et al. 2018) for any observation shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from alphazero.errors import InvalidSetting
from alphazero.game import Game
from alphazero.torch_net import TorchNet


@dataclass(frozen=True)
class NetConfig:
    """Sizes of the network."""

    blocks: int = 4
    """Residual blocks of two convolutions each."""
    channels: int = 32
    """Channels of the trunk."""
    head_channels: int = 16
    """Channels of each head's 1x1 convolution."""
    value_hidden: int = 64
    """Units of the value head's hidden layer."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 1 <= value <= 4096:
                raise InvalidSetting(f"net setting {name} must lie between 1 and 4096, not {value}")


def convolution(inputs: int, outputs: int, size: int) -> nn.Sequential:
    """A convolution that keeps height and width, and its batch norm."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False), nn.BatchNorm2d(outputs))


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut: `[n, C, H, W]` to the same."""

    def __init__(self, channels: int):
        super().__init__()
        self.first = convolution(channels, channels, 3)
        self.second = convolution(channels, channels, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.second(torch.relu(self.first(x))))


class ResNet(nn.Module):
    """`[n, P, H, W]` to policy logits `[n, A]` and values `[n]` in (-1, 1) for the player to move."""

    def __init__(self, observation_shape: tuple[int, int, int], num_actions: int, config: NetConfig):
        super().__init__()
        planes, height, width = observation_shape
        cells = height * width
        self.stem = convolution(planes, config.channels, 3)
        self.blocks = nn.Sequential(*(Block(config.channels) for _ in range(config.blocks)))
        self.policy_head = convolution(config.channels, config.head_channels, 1)
        self.policy: nn.Module = nn.Linear(config.head_channels * cells, num_actions)
        self.value_head = convolution(config.channels, config.head_channels, 1)
        self.value_hidden = nn.Linear(config.head_channels * cells, config.value_hidden)
        self.value = nn.Linear(config.value_hidden, 1)
        # an untrained network has no opinion: equal priors, value 0
        for parameter in (*self.policy.parameters(), *self.value.parameters()):
            nn.init.zeros_(parameter)

    def logits(self, x: Tensor) -> Tensor:
        """Policy logits `[n, A]` of the trunk's `[n, C, H, W]`."""
        return self.policy(torch.relu(self.policy_head(x)).flatten(1))

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        x = self.blocks(torch.relu(self.stem(observations)))
        policy = self.logits(x)
        hidden = torch.relu(self.value_hidden(torch.relu(self.value_head(x)).flatten(1)))
        return policy, torch.tanh(self.value(hidden)).squeeze(1)


def make_net(game: Game, settings: Mapping[str, Any], network: type[ResNet] = ResNet) -> TorchNet:
    """A fresh network; `settings` are the fields of NetConfig. Initial weights come from torch's global generator."""
    try:
        config = NetConfig(**settings)
    except TypeError as error:
        raise InvalidSetting(f"unknown network setting for {game.name}: {error}") from error
    return TorchNet(game, network(game.observation_shape, game.num_actions, config), asdict(config))
