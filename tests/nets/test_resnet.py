"""The residual network: sizes, operations, lines of squares."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from alphazero.errors import InvalidSetting
from alphazero.nets.any_module import count_flops
from alphazero.nets.kernels.openvino import OpenVinoInference
from alphazero.nets.kernels.winograd import WinogradInference
from alphazero.nets.resnet import Lines, make_net
from alphazero.nets.torch_net import TorchNet
from games.connect4.game import Connect4
from games.connect4.net import make_net as make_connect4_net
from games.tictactoe.game import TicTacToe
from tests.game.many_actions import ManyActions
from tests.nets.batches import random_batch


def test_an_untrained_network_has_no_opinion():
    batch = random_batch(TicTacToe(), 9)
    priors, values = make_net(TicTacToe(), {"blocks": 1, "channels": 8}).evaluate(batch.observations, batch.legal_masks)
    np.testing.assert_allclose(priors, batch.legal_masks / batch.legal_masks.sum(axis=1, keepdims=True), atol=1e-6)
    assert (values == 0).all()


def on_planes(seed: int = 0) -> ManyActions:
    """A game whose actions have places on 30 planes, in any order."""
    game = ManyActions()
    game.action_places = np.random.default_rng(seed).permutation(30 * 9)
    return game


@pytest.mark.parametrize("inference", [OpenVinoInference, WinogradInference], ids=["openvino", "winograd"])
def test_where_actions_have_places_each_logit_comes_of_its_square_and_plane(inference):
    torch.manual_seed(1)
    game = on_planes()
    net = make_net(game, {"blocks": 2, "channels": 12})
    randomize(net)
    observations = random_batch(game, 20).observations
    module, planes = net.frozen_float(), {}
    module.policy.register_forward_hook(lambda layer, given, answer: planes.update(made=answer))
    logits, values = (answer.detach().numpy() for answer in module(torch.from_numpy(observations)))
    for action in range(0, 270, 7):
        plane, square = divmod(int(game.action_places[action]), 9)
        np.testing.assert_array_equal(logits[:, action], planes["made"][:, plane, square // 3, square % 3].detach())
    assert np.ptp(logits) > 0.1
    ran = inference(module, torch.from_numpy(observations[:2]), *[False] * (inference is OpenVinoInference))
    for found, expected in zip(ran(observations), (logits, values), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_planes_grow_with_their_network_and_learn():
    game = on_planes()
    net, larger = (make_net(game, {"blocks": 1, "channels": channels}) for channels in (8, 16))
    randomize(net)
    observations = random_batch(game, 20).observations
    assert larger.module.grow_from(net.module.state_dict())
    for found, expected in zip(answers(larger, observations), answers(net, observations), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    logits, _ = larger.module.train()(torch.from_numpy(observations))
    logits[:, 17].sum().backward()
    touched = larger.module.policy.weight.grad.flatten(1).abs().sum(dim=1)
    assert np.flatnonzero(touched).tolist() == [game.action_places[17] // 9]


@pytest.mark.parametrize("settings", [{"blocks": 0}, {"channels": -1}, {"layers": 3}, {"bottleneck": -1},
     {"line_length": 4, "lines": 8}])  # fmt: skip
def test_wrong_sizes_are_refused(settings):
    with pytest.raises(InvalidSetting, match=next(iter(settings))):
        make_net(TicTacToe(), settings)


SMALL = {
    "blocks": 1,
    "channels": 8,
    "head_channels": 2,
    "value_hidden": 4,
    "lines": 3,
    "line_length": 3,
    "bottleneck": 4,
}


def randomize(net: TorchNet) -> None:
    """Gives all weights and means values, as if the net had learned."""
    with torch.no_grad():
        for weights in net.module.state_dict().values():
            if weights.ndim == 1:
                weights.copy_(0.5 + torch.rand(weights.shape) / 2)
            elif weights.ndim > 1:
                weights.copy_(torch.randn(weights.shape) / weights[0].numel() ** 0.5)
    net.freeze()


def answers(net: TorchNet, observations: np.ndarray) -> list[Tensor]:
    """In twice the precision that plays, so that the order of sums does not matter."""
    with torch.no_grad():
        return list(copy.deepcopy(net.module).double().eval()(torch.from_numpy(observations).double()))


@pytest.mark.parametrize("larger", [{"blocks": 3}, {"channels": 12}, {"head_channels": 5}, {"value_hidden": 9},
     {"lines": 5}, {"bottleneck": 6}, {"blocks": 2, "channels": 11, "head_channels": 3, "lines": 4, "value_hidden": 6},
     {"bottleneck": 0, "blocks": 2, "channels": 9}, {"lines": 4, "before": {"lines": 0}}])  # fmt: skip
@pytest.mark.parametrize("game, make", [(TicTacToe(), make_net), (Connect4(), make_connect4_net)])
def test_a_net_that_has_grown_answers_as_before_and_all_of_it_learns(game, make, larger):
    sizes = SMALL | ({"bottleneck": 0} if larger.get("bottleneck") == 0 else {}) | larger.get("before", {})
    observations = random_batch(game, 30).observations.copy()
    small, large = (
        make(game, sizes),
        make(game, sizes | {name: size for name, size in larger.items() if name != "before"}),
    )
    torch.manual_seed(0)  # by chance all values may be near 1, and so alike
    randomize(small)
    randomize(large)
    others, before = answers(small, observations), answers(large, observations)
    assert large.grow_from(small)
    for own, mine, given in zip(before, answers(large, observations), others, strict=True):
        torch.testing.assert_close(mine, given)
        assert (own - given).abs().max() > 0.01
    _, values = large.evaluate(observations, np.ones((30, game.num_actions), bool))  # plays by them, too
    np.testing.assert_allclose(values, others[1].numpy(), atol=0.05)
    # after a step on one output each weight but those behind a scale of zero has moved
    logits, value = large.module.train()(torch.from_numpy(observations))
    (logits.square().sum() + value.square().sum()).backward()
    unmoved = {name for name, weights in large.module.named_parameters() if not weights.grad.any()}
    behind = (*(f"blocks.{number}." for number in range(sizes["blocks"], 3)), *["lines."] * (sizes["lines"] == 0))
    assert all(name.startswith(behind) for name in unmoved)


@pytest.mark.parametrize("other", [{"channels": 9}, {"bottleneck": 0}, {"bottleneck": 0, "channels": 4},
     {"head_channels": 3}, {"blocks": 3}, {"lines": 4}, {"line_length": 2}])  # fmt: skip
def test_a_net_that_is_larger_somewhere_or_of_another_kind_gives_no_weights(other):
    given, net = make_net(TicTacToe(), SMALL | other), make_net(TicTacToe(), SMALL | {"blocks": 2})
    before = {name: weights.clone() for name, weights in net.module.state_dict().items()}
    assert not net.grow_from(given)
    assert all(torch.equal(weights, before[name]) for name, weights in net.module.state_dict().items())


def test_flops_are_those_of_torchs_own_counter():
    """For any module; and without torch's compiler, whose import takes longer than the rest of a net's start."""
    encoder = nn.TransformerEncoderLayer(42, 6, 64, batch_first=True)
    module = nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.BatchNorm2d(5), nn.Flatten(2), encoder, nn.Flatten())
    observations = torch.zeros(1, 3, 6, 7)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module.train(False)(observations)
    assert count_flops(module, observations) == counter.get_total_flops() > 10_000


def test_flops_are_counted_by_hand():
    """One 3x3 convolution from 2 to 8 planes on 9 cells takes 2 * 2 * 8 * 9 * 9 operations; and so on."""
    net = make_net(TicTacToe(), {"blocks": 1, "channels": 8, "head_channels": 4, "value_hidden": 16})
    convolutions = 2 * 9 * 9 * (2 * 8 + 8 * 8 + 8 * 8) + 2 * 9 * (8 * 4 + 8 * 4)
    linear = 2 * (4 * 9 * 9 + 4 * 9 * 16 + 16 * 1)
    assert net.card["flops_per_position"] == convolutions + linear
    sizes = {"blocks": 1, "channels": 8, "head_channels": 4, "value_hidden": 16, "bottleneck": 4}
    sizes |= {"lines": 5, "line_length": 2}
    blocks = 2 * 9 * (9 * 2 * 8 + 8 * 4 + 9 * (4 * 4 + 4 * 4) + 4 * 8) + 2 * 9 * (8 * 4 + 8 * 4)
    # six lines of two along rows, six along columns; four filters of 2x2 squares hold both diagonals
    lines = 2 * (6 * 2 + 6 * 2 + 4 * 2 * 4) * 5 * (2 + 8)
    assert make_net(TicTacToe(), sizes).card["flops_per_position"] == blocks + lines + linear


def test_lines_are_all_that_fit_on_the_board():
    """Against a loop over every line of three on a board of 4 x 5: what it sees, and what it tells its squares."""
    torch.manual_seed(0)
    height, width, length = 4, 5, 3
    layer = Lines(2, 6, 4, length)
    x = torch.randn(1, 2, height, width)
    expected = (layer.to_rows.bias + layer.to_columns.bias)[:, None, None].expand(6, height, width).clone()
    directions = [
        (0, 1, layer.rows.weight[:, :, 0], layer.rows.bias, layer.to_rows.weight[:, :, 0]),
        (1, 0, layer.columns.weight[..., 0], layer.columns.bias, layer.to_columns.weight[..., 0]),
        (1, 1, layer.diagonals, 0.0, layer.to_diagonals),
        (1, -1, layer.diagonals, 0.0, layer.to_diagonals),
    ]
    with torch.no_grad():
        for down, right, see, bias, tell in directions:
            for row, column in np.ndindex(height, width):
                squares = [(row + k * down, column + k * right) for k in range(length)]
                if all(0 <= r < height and 0 <= c < width for r, c in squares):
                    seen = sum(see[:, :, k] @ x[0, :, r, c] for k, (r, c) in enumerate(squares)) + bias
                    for k, (r, c) in enumerate(squares):
                        expected[:, r, c] += torch.relu(seen) @ tell[:, :, k]
        torch.testing.assert_close(layer(x)[0], expected)
