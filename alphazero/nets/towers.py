"""A network of two fully connected towers, one for the value and one for the policy.

For a board that is a short line of places, of which any may belong together: a hundred multiplications a weight would
be spent on convolutions that say less. The towers share nothing, since the squared error of values is much smaller than
the policy's loss, and a shared layer would learn the policy's features alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from alphazero.game import Game
from alphazero.nets.torch_net import TorchNet, widen
from alphazero.settings import check_ranges, config_from_dict


@dataclass(frozen=True)
class TowerConfig:
    """Sizes of the network."""

    value_units: int = 256
    """Units of the first layer of the value's tower; the second has half as many."""
    policy_units: int = 128
    """Units of the policy's hidden layer."""

    def __post_init__(self) -> None:
        check_ranges(self, "net setting", value_units=(2, 8192), policy_units=(1, 8192))


class Towers(nn.Module):
    """`[n, P, H, W]` to policy logits `[n, A]` and values `[n]` in (-1, 1), or `[n, V]`: see `Game.value_shape`."""

    same_steps = True

    def __init__(self, game: Game, config: TowerConfig):
        super().__init__()
        inputs, units = math.prod(game.observation_shape), config.value_units
        self.first, self.second = nn.Linear(inputs, units), nn.Linear(units, units // 2)
        self.value = nn.Linear(units // 2, game.num_values)
        self.policy_hidden = nn.Linear(inputs, config.policy_units)
        self.policy = nn.Linear(config.policy_units, game.num_actions)
        for parameter in (*self.policy.parameters(), *self.value.parameters()):
            nn.init.zeros_(parameter)

    def grow_from(self, smaller: Mapping[str, Tensor]) -> bool:
        """Takes over the weights of towers that are nowhere larger, and answers alike; returns whether it could."""
        mine = self.state_dict()
        return mine.keys() == smaller.keys() and widen(mine, smaller)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        x = observations.flatten(1)
        values = torch.tanh(self.value(torch.relu(self.second(torch.relu(self.first(x))))))
        values = values.squeeze(1) if self.value.out_features == 1 else values  # ONNX squeezes one number alone
        return self.policy(torch.relu(self.policy_hidden(x))), values


def make_net(game: Game, settings: Mapping[str, Any]) -> TorchNet:
    """A fresh network of the given sizes."""
    config = config_from_dict(TowerConfig, settings, f"the network of {game.name}")
    return TorchNet(game, Towers(game, config), asdict(config))
