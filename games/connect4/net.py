"""Connect Four's own network: the residual trunk, and a policy head that treats all columns alike.

An action is a column, so its logit is read from that column's six squares by weights that all columns share: what is
learned about one column holds for the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from alphazero.game import Game
from alphazero.nets.resnet import NetConfig, ResNet, rectified
from alphazero.nets.resnet import make_net as make_resnet
from alphazero.nets.torch_net import TorchNet


class Connect4Net(ResNet):
    """`[n, 24, 6, 7]` to policy logits `[n, 7]` and values `[n]`."""

    same_steps = True
    scales: Tensor

    def __init__(self, observation_shape: tuple[int, int, int], num_actions: int, config: NetConfig):
        super().__init__(observation_shape, num_actions, config)
        planes, height, _ = observation_shape
        # undivided, the counts of lines, from the seventh plane on, teach less (docs/ablations.md)
        scales = torch.tensor([1.0 if plane < 6 else 0.25 for plane in range(planes)]).view(1, planes, 1, 1)
        self.register_buffer("scales", scales, persistent=False)
        self.column = nn.Conv2d(config.head_channels, config.value_hidden, (height, 1))
        self.policy = nn.Conv2d(config.value_hidden, 1, 1)
        for parameter in self.policy.parameters():
            nn.init.zeros_(parameter)

    def fold_filters(self) -> None:
        """Divides the first filters in place of the planes; by powers of two, so nothing is rounded."""
        first: list[Any] = [self.stem[0]]
        if self.lines is not None:
            first += [self.lines.rows, self.lines.columns, self.lines.diagonals]
        with torch.no_grad():
            for layer in first:
                weight = layer if isinstance(layer, Tensor) else layer.weight
                weight.mul_(self.scales.view(1, -1, *[1] * (weight.ndim - 2)))
            self.scales.fill_(1.0)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        return super().forward(observations * self.scales)

    def logits(self, x: Tensor) -> Tensor:
        columns = torch.relu(self.column(rectified(self.policy_head, x)))  # [n, hidden, 1, 7]
        return self.policy(columns).flatten(1)


def make_net(game: Game, settings: Mapping[str, Any]) -> TorchNet:
    """A fresh network of the given sizes."""
    return make_resnet(game, settings, Connect4Net)
