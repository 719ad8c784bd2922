"""2048's own network: it looks at lines and squares of four tiles, and counts in thousands of points.

What a board is worth depends on which tiles lie beside which. Each group of four cells has a table with a number for
every four tiles, as n-tuple networks do (Szubert and Jaskowski 2014): they tell positions apart that differ little. A
tower over features of all groups tells how much is still to come, and generalises where the tables have seen little.
The policy has its own layers: a shared one would learn for the policy alone, since errors of values are mostly luck.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from alphazero.game import Game
from alphazero.nets.torch_net import TorchNet
from alphazero.settings import check_ranges, config_from_dict
from games.twenty48.game import IMAGES, NUM_EXPONENTS, SIZE

UNIT = 0.05
"""The value that the last layer counts as 1: that of 5,000 points."""
TABLE_UNIT = 0.05
"""The part of it that 1 in a table adds. 40 entries change together, and by as much as a weight of the tower each."""
SHAPES = (1, 4), (4, 1), (2, 2)
"""Rows and columns of the groups that the tower sees."""
GROUPS = (0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 4, 5), (1, 2, 5, 6), (5, 6, 9, 10)
"""The cells of each group with a table of its own; its images on the board share the table."""


@dataclass(frozen=True)
class GroupsConfig:
    """Sizes of the network."""

    features: int = 32
    """The tower's features of each group."""
    value_units: int = 128
    """Units of the layer behind them; the next one has half as many."""
    policy_units: int = 64
    """Units of the policy's hidden layer."""

    def __post_init__(self) -> None:
        check_ranges(self, "net setting", features=(2, 1024), value_units=(4, 8192), policy_units=(1, 8192))


class Groups(nn.Module):
    """`[n, P, 4, 4]` to policy logits `[n, A]` and values `[n]`."""

    same_steps = True
    weights: Tensor
    starts: Tensor

    def __init__(self, game: Game, config: GroupsConfig):
        super().__init__()
        planes, height, width = game.observation_shape
        count = sum((height - rows + 1) * (width - columns + 1) for rows, columns in SHAPES)
        self.groups = nn.ModuleList(nn.Conv2d(planes, config.features, shape) for shape in SHAPES)
        self.first = nn.Linear(count * config.features, config.value_units)
        self.second = nn.Linear(config.value_units, config.value_units // 2)
        self.value = nn.Linear(config.value_units // 2, 1)
        self.policy_hidden = nn.Linear(math.prod(game.observation_shape), config.policy_units)
        self.policy = nn.Linear(config.policy_units, game.num_actions)
        self.tables = nn.Parameter(torch.zeros(len(GROUPS) * NUM_EXPONENTS**SIZE))
        cells = torch.as_tensor(IMAGES)[:, torch.tensor(GROUPS)].transpose(0, 1).flatten(0, 1)
        digits = NUM_EXPONENTS ** torch.arange(SIZE).expand_as(cells)
        weights = torch.zeros(SIZE * SIZE, len(cells)).scatter_(0, cells.T, digits.T.float())
        starts = (torch.arange(len(GROUPS)) * NUM_EXPONENTS**SIZE).repeat_interleave(len(IMAGES))
        # the entry of each image is the sum of its tiles' exponents times these, and where its table begins
        self.register_buffer("weights", weights, persistent=False)
        self.register_buffer("starts", starts, persistent=False)
        for parameter in (*self.policy.parameters(), *self.value.parameters()):
            nn.init.zeros_(parameter)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        seen = torch.cat([torch.relu(group(observations)).flatten(1) for group in self.groups], 1)
        value = self.value(torch.relu(self.second(torch.relu(self.first(seen)))))
        exponents = observations.flatten(2).argmax(1).to(self.weights.dtype)
        entries = torch.matmul(exponents, self.weights).long() + self.starts
        value = value + TABLE_UNIT * nn.functional.embedding(entries, self.tables.unsqueeze(1)).sum(1)
        return self.policy(torch.relu(self.policy_hidden(observations.flatten(1)))), UNIT * value.squeeze(1)


def make_net(game: Game, settings: Mapping[str, Any]) -> TorchNet:
    """A fresh network of the given sizes."""
    config = config_from_dict(GroupsConfig, settings, f"the network of {game.name}")
    return TorchNet(game, Groups(game, config), asdict(config))
