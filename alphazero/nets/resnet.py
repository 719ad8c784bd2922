"""The residual network of AlphaZero (Silver et al. 2018) for any observation shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from alphazero.errors import InvalidSetting, NetError
from alphazero.game import Game
from alphazero.nets.devices import usual_torch
from alphazero.nets.norm_relu import norm_relu
from alphazero.nets.torch_net import TorchNet, widen
from alphazero.settings import check_ranges, config_from_dict


@dataclass(frozen=True)
class NetConfig:
    """Sizes of the network.

    >>> import alphazero as az
    >>> config = az.RunConfig(net=az.NetConfig(blocks=2, channels=16))
    """

    blocks: int = 4
    """Number of residual blocks, with two 3x3 convolutions each."""
    channels: int = 32
    """Number of channels in the trunk. Multiples of 32 are fastest where processors have AMX: 48 take as long as 64."""
    bottleneck: int = 0
    """Width of the 3x3 layers in bottleneck blocks; 0 turns bottlenecks off."""
    head_channels: int = 16
    """Number of channels in the 1x1 convolution of each head."""
    value_hidden: int = 64
    """Number of units in the hidden layer of the value head."""
    lines: int = 0
    """Number of channels in a layer for whole lines of squares, beside the first layer; 0 turns it off.
    Multiples of 16 are fastest."""
    line_length: int = 4
    """Number of squares in each line."""

    def __post_init__(self) -> None:
        lowest = {"bottleneck": 0, "lines": 0}
        check_ranges(self, "net setting", **{name: (lowest.get(name, 1), 4096) for name in asdict(self)})


def least_weights(settings: Mapping[str, Any], game: Game, own_policy: bool) -> int:
    """Almost all weights of a network of these sizes, without an `own_policy`; 0 if they are of another network."""
    try:
        config = config_from_dict(NetConfig, settings, "net")
    except InvalidSetting:
        return 0
    planes, height, width = game.observation_shape
    block = 2 * config.channels * config.bottleneck + 18 * (config.bottleneck or config.channels) ** 2
    own_policy = own_policy or game.action_places is not None
    outputs = config.value_hidden + (0 if own_policy else game.num_actions)
    heads = config.head_channels * (2 * config.channels + height * width * outputs)
    lines = 3 * config.lines * config.line_length * (planes + config.channels)
    return 9 * planes * config.channels + config.blocks * block + heads + lines


def convolution(inputs: int, outputs: int, size: int) -> nn.Sequential:
    """A convolution that keeps height and width, followed by a batch norm."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False), nn.BatchNorm2d(outputs))


def rectified(layer: nn.Sequential, x: Tensor, added: Tensor | None = None) -> Tensor:
    """relu(layer(x) + added), where the layer is a `convolution`."""
    convolve, norm = layer
    return norm_relu(norm, convolve(x), added)


class Block(nn.Module):
    """A residual block of two 3x3 convolutions: `[n, C, H, W]` to the same shape.

    With a `bottleneck` of fewer channels they are between 1x1 convolutions, as the one of He et al. 2016.
    """

    def __init__(self, channels: int, bottleneck: int):
        super().__init__()
        inner = bottleneck or channels
        self.down = convolution(channels, inner, 1) if bottleneck else None
        self.first = convolution(inner, inner, 3)
        self.second = convolution(inner, inner, 3)
        self.up = convolution(inner, channels, 1) if bottleneck else None

    def silence(self) -> None:
        """Lets the block change nothing until it learns: the scale of what it adds is zero (Goyal et al. 2017)."""
        for parameter in (self.up or self.second)[1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        y = rectified(self.first, x if self.down is None else rectified(self.down, x))
        return rectified(self.second, y, x) if self.up is None else rectified(self.up, rectified(self.second, y), x)


class Lines(nn.Module):
    """Features of all lines through each square: `[n, P, H, W]` to `[n, C, H, W]`.

    The lines are all that fit on the board, along rows, columns and both diagonals. The two diagonals share weights.
    """

    def __init__(self, planes: int, channels: int, lines: int, length: int):
        super().__init__()
        self.rows, self.columns = nn.Conv2d(planes, lines, (1, length)), nn.Conv2d(planes, lines, (length, 1))
        self.diagonals = nn.Parameter(torch.randn(lines, planes, length) / (length * planes) ** 0.5)
        self.to_rows = nn.ConvTranspose2d(lines, channels, (1, length))
        self.to_columns = nn.ConvTranspose2d(lines, channels, (length, 1))
        self.to_diagonals = nn.Parameter(torch.randn(lines, channels, length) / (length * lines) ** 0.5)

    def fold_filters(self) -> None:
        """Keeps the diagonals' filters in place of their weights: this layer learns no more."""
        self.diagonals = nn.Parameter(_both_ways(self.diagonals).detach())
        self.to_diagonals = nn.Parameter(_both_ways(self.to_diagonals).detach())

    def silence(self) -> None:
        """Lets the layer add nothing until it learns."""
        for parameter in (*self.to_rows.parameters(), *self.to_columns.parameters(), self.to_diagonals):
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(nn.functional.conv2d(x, _both_ways(self.diagonals)))
        y = nn.functional.conv_transpose2d(y, _both_ways(self.to_diagonals))
        return y + self.to_rows(torch.relu(self.rows(x))) + self.to_columns(torch.relu(self.columns(x)))


def _both_ways(weights: Tensor) -> Tensor:
    """Filters `[2 n, p, L, L]` with the weights `[n, p, L]` on the one diagonal, then on the other; filters stay."""
    if weights.ndim == 4:
        return weights
    filters = torch.diag_embed(weights)
    return torch.cat([filters, filters.flip(-1)])


def _layer(name: str) -> str:
    """The layer that weights of that name belong to, as `blocks.2`."""
    return ".".join(name.split(".")[: 2 if name.startswith("blocks.") else 1])


class ResNet(nn.Module):
    """Network: `[n, P, H, W]` to policy logits `[n, A]` and values `[n]` in (-1, 1), for the player to move.

    With more `num_values` than one values are `[n, V]`: see `Game.value_shape`. With `action_places` as in `Game` a
    convolution gives the logits; else each of them comes of all squares.
    """

    same_steps = True
    """Every pass takes the same steps, so that a GPU can replay them. A class made from this one must say so itself."""

    def __init__(
        self, observation_shape: tuple[int, int, int], num_actions: int, config: NetConfig, num_values: int = 1,
        action_places: Any = None,
    ):  # fmt: skip
        super().__init__()
        planes, height, width = observation_shape
        cells = height * width
        if config.lines and config.line_length > min(height, width):
            raise InvalidSetting(
                f"net setting line_length must be at most {min(height, width)} on this board, not {config.line_length}"
            )
        self.stem = convolution(planes, config.channels, 3)
        self.lines = Lines(planes, config.channels, config.lines, config.line_length) if config.lines else None
        self.blocks = nn.Sequential(*(Block(config.channels, config.bottleneck) for _ in range(config.blocks)))
        places = None if action_places is None else torch.as_tensor(np.array(action_places, np.int64))
        self.places: Tensor | None
        self.register_buffer("places", places, persistent=False)
        if places is None:
            self.policy_head = convolution(config.channels, config.head_channels, 1)
            self.policy: nn.Module = nn.Linear(config.head_channels * cells, num_actions)
        else:
            self.policy_head = convolution(config.channels, config.channels, 1)
            self.policy = nn.Conv2d(config.channels, int(places.max()) // cells + 1, 1)
        self.value_head = convolution(config.channels, config.head_channels, 1)
        self.value_hidden = nn.Linear(config.head_channels * cells, config.value_hidden)
        self.value = nn.Linear(config.value_hidden, num_values)
        # an untrained network has no opinion: equal priors, value 0
        for parameter in (*self.policy.parameters(), *self.value.parameters()):
            nn.init.zeros_(parameter)

    def logits(self, x: Tensor) -> Tensor:
        """Policy logits `[n, A]` of the trunk's `[n, C, H, W]`."""
        x = rectified(self.policy_head, x)
        return (
            self.policy(x.flatten(1)) if self.places is None else self.policy(x).flatten(1).index_select(1, self.places)
        )

    @torch.no_grad()
    def grow_from(self, smaller: Mapping[str, Tensor]) -> bool:
        """Takes over the weights of a network that is nowhere larger, and answers alike; returns whether it could.

        What is new has random weights, and changes nothing at first: new layers add zero, and what was there listens to
        new channels with weight zero (Chen et al. 2016).
        """
        mine = self.state_dict()
        added = {_layer(name) for name in mine.keys() - smaller.keys()}
        if not smaller.keys() <= mine.keys() or not added.isdisjoint(map(_layer, smaller)):
            return False
        if not widen(mine, smaller, outputs_second=("lines.to_",)):
            return False
        for name in added:
            layer = self.get_submodule(name)
            assert isinstance(layer, Block | Lines)
            layer.silence()
        return True

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        lines = self.lines(observations) if self.lines is not None else None
        x = self.blocks(rectified(self.stem, observations, lines))
        policy = self.logits(x)
        hidden = torch.relu(self.value_hidden(rectified(self.value_head, x).flatten(1)))
        values = torch.tanh(self.value(hidden))
        return policy, values.squeeze(1) if self.value.out_features == 1 else values  # ONNX squeezes one number alone


@usual_torch()
def make_net(game: Game, settings: Mapping[str, Any], network: type[ResNet] = ResNet) -> TorchNet:
    """A fresh network; `settings` are the fields of NetConfig. Initial weights come from torch's global generator."""
    config = config_from_dict(NetConfig, settings, f"the network of {game.name}")
    more: dict[str, Any] = {"num_values": game.num_values} if game.value_shape else {}
    more |= {} if game.action_places is None else {"action_places": game.action_places}
    return TorchNet(game, network(game.observation_shape, game.num_actions, config, **more), asdict(config))


def places_of(small: int, large: int) -> np.ndarray:
    """`int64[large]`: the row of the smaller board that stands for each row of the larger one.

    Rows at the edges stand for those as far from the same edge, and a middle one for all between. Likewise for columns.
    """
    rows, half = np.arange(large), small // 2
    return np.where(rows < half, rows, np.where(rows >= large - half, rows - large + small, half))


@torch.no_grad()
def enlarge(module: ResNet, small: Game, weights: Mapping[str, Tensor], large: Game) -> None:
    """Writes the weights of a network for the game `small` into the `module` for `large`, a game on a larger board.

    Filters stay as they are. The policy of a square listens to the squares around it as the square of the smaller board
    does that is as far from the edges. Values, and actions that are no squares, take the mean of the squares that one
    of the smaller board stands for. Raises NetError where the games differ by more than the board's size.
    """
    (planes, *before), (new_planes, *after) = small.observation_shape, large.observation_shape
    cells, others = before[0] * before[1], small.num_actions - before[0] * before[1]
    conv_policy = module.places is not None
    if planes != new_planes or any(new < old for new, old in zip(after, before, strict=True)):
        raise NetError(f"{large.name} must have the planes of {small.name}, on a board that is no smaller")
    if not conv_policy and (others < 0 or large.num_actions - after[0] * after[1] != others):
        raise NetError(f"the actions of {small.name} and {large.name} must be squares, and as many others behind them")
    rows, columns = (places_of(old, new) for old, new in zip(before, after, strict=True))
    squares = (rows[:, None] * before[1] + columns).ravel()  # what each of the larger board comes from
    part = torch.tensor(1.0 / np.bincount(squares, minlength=cells)[squares], dtype=torch.float32)

    def spread(old: Tensor) -> Tensor:
        """Weights `[n, channels * cells]` for the larger board, where equal squares share one's weight."""
        return (old.reshape(len(old), old.shape[1] // cells, cells)[:, :, squares] * part).flatten(1)

    found = dict(weights)
    found["value_hidden.weight"] = spread(weights["value_hidden.weight"])
    if not conv_policy:
        old = weights["policy.weight"]
        policy = old.new_zeros(len(squares), old.shape[1] // cells, *after)
        shaped = old[:cells].reshape(cells, -1, *before)
        for square, origin in enumerate(squares):
            # by so much the smaller board is shifted on the larger one
            down, right = square // after[1] - origin // before[1], square % after[1] - origin % before[1]
            policy[square, :, down : down + before[0], right : right + before[1]] = shaped[origin]
        found["policy.weight"] = torch.cat([policy.flatten(1), spread(old[cells:])])
        bias = weights["policy.bias"]
        found["policy.bias"] = torch.cat([bias[torch.from_numpy(squares)], bias[cells:]])
    mine = module.state_dict()
    if mine.keys() != found.keys() or any(mine[name].shape != found[name].shape for name in mine):
        raise NetError(f"the networks of {small.name} and {large.name} must have the same sizes")
    module.load_state_dict(found)
