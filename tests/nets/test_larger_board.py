"""A network for a larger board that begins with what one for a smaller board has learned."""

import numpy as np
import pytest
import torch
from torch import nn

import alphazero as az
from alphazero.catalogue import registry
from alphazero.errors import NetError
from alphazero.nets.resnet import ResNet, places_of
from alphazero.nets.torch_net import TorchNet


def random_net(name: str, **sizes: int) -> TorchNet:
    """A net whose last layers are random as well, where a fresh one has zeros."""
    loaded, generator = registry.load(name), torch.Generator().manual_seed(1)
    net = loaded.make_net(loaded.game, {"blocks": 1, "channels": 8, **sizes})
    assert isinstance(net, TorchNet)
    for parameter in net.module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) / 8
    net.freeze()
    return net


@pytest.mark.parametrize(
    ("small", "large", "places"),
    [
        (3, 3, [0, 1, 2]), (3, 5, [0, 1, 1, 1, 2]), (7, 9, [0, 1, 2, 3, 3, 3, 4, 5, 6]), (2, 3, [0, 1, 1]),
        (6, 8, [0, 1, 2, 3, 3, 3, 4, 5]), (1, 4, [0, 0, 0, 0]), (5, 6, [0, 1, 2, 2, 3, 4]),
    ],
)  # fmt: skip
def test_rows_at_the_edges_stay_there_and_a_middle_one_stands_for_those_between(small, large, places):
    assert places_of(small, large).tolist() == places


def test_the_same_board_has_the_same_weights():
    net = random_net("go5")
    again = az.enlarge_net(net, "go5", "go5")
    assert isinstance(again, TorchNet)
    for name, weights in net.module.state_dict().items():
        torch.testing.assert_close(again.module.state_dict()[name], weights, rtol=0, atol=0)


@pytest.mark.parametrize(("small", "large"), [("gomoku", "gomoku15"), ("tictacmo", "tictacmo")])
def test_actions_may_be_the_squares_alone(small: str, large: str):
    """Gomoku has no pass, so nothing stands behind the squares."""
    net = random_net(small)
    larger = az.enlarge_net(net, small, large)
    assert isinstance(larger, TorchNet) and isinstance(larger.module, ResNet) and isinstance(net.module, ResNet)
    new, before = larger.module.policy, net.module.policy
    assert isinstance(new, nn.Linear) and isinstance(before, nn.Linear)
    assert len(new.bias) == az.load_game(large).num_actions
    assert new.bias[[0, -1]].tolist() == before.bias[[0, -1]].tolist()


def test_a_point_listens_to_the_points_around_it_and_values_to_the_mean():
    """5x5 becomes 7x7: by hand, for the last layers."""
    net = random_net("go5", head_channels=1)
    larger = az.enlarge_net(net, "go5", "go7")
    assert isinstance(larger, TorchNet) and isinstance(larger.module, ResNet) and isinstance(net.module, ResNet)
    new, before = larger.module.policy, net.module.policy
    assert isinstance(new, nn.Linear) and isinstance(before, nn.Linear)
    policy, old = new.weight, before.weight
    assert torch.equal(policy[0].view(7, 7)[:5, :5], old[0].view(5, 5))  # the corner sees the board beside it
    assert not policy[0].view(7, 7)[5:].any() and not policy[0].view(7, 7)[:, 5:].any()
    assert torch.equal(policy[48].view(7, 7)[2:, 2:], old[24].view(5, 5))
    for place in (16, 17, 24, 32):  # around the middle all are the middle, moved there
        down, right = place // 7 - 2, place % 7 - 2
        assert torch.equal(policy[place].view(7, 7)[down : down + 5, right : right + 5], old[12].view(5, 5))
    assert new.bias[[0, 24, 48, 49]].tolist() == before.bias[[0, 12, 24, 25]].tolist()
    seen = torch.rand(5, 5, generator=torch.Generator().manual_seed(2))
    spread = seen[torch.tensor([0, 1, 2, 2, 2, 3, 4])][:, torch.tensor([0, 1, 2, 2, 2, 3, 4])]
    for layer, row in (("value_hidden", slice(None)), ("policy", slice(-1, None))):  # the last action passes
        weights, taken = (getattr(each.module, layer).weight[row] for each in (larger, net))
        torch.testing.assert_close(weights @ spread.flatten(), taken @ seen.flatten())


def test_what_a_net_has_learned_holds_on_a_larger_board():
    """Go on 5x5 teaches 7x7: the net beats a greedy player, whom an untrained one with so many simulations does not."""
    larger = az.enlarge_net(az.load_net("best", "go5"), "go5", "go7")
    assert az.match(larger, "greedy", "go7", games=12, simulations=8).score > 0.6


@pytest.mark.parametrize(
    ("small", "large", "says"),
    [
        ("go7", "go5", "no smaller"), ("go5", "hex", "must have the planes"),
        ("breakthrough", "gomoku", "squares, and as many others"),
    ],
)  # fmt: skip
def test_games_that_differ_by_more_than_the_board_are_refused(small, large, says):
    with pytest.raises(NetError, match=says):
        az.enlarge_net(random_net(small), small, large)


def test_a_net_that_is_no_resnet_or_of_another_game_is_refused():
    with pytest.raises(NetError, match="not a Connect4Net"):
        az.enlarge_net(az.load_net("beginner", "connect4"), "connect4", "connect4")
    with pytest.raises(NetError, match="not a str"):
        az.enlarge_net("best", "go5", "go7")  # type: ignore[arg-type]
    with pytest.raises(NetError, match="a net for go5, not for hex"):
        az.enlarge_net(random_net("go5"), "hex", "hex")


def test_a_policy_of_planes_needs_no_squares():
    """Gardner's chess has a plane for each kind of step, which moves along with the board."""
    net = random_net("gardner")
    again = az.enlarge_net(net, "gardner", "gardner")
    game = az.load_game("gardner")
    observations, masks = game.start().observation[None], np.ones((1, game.num_actions), bool)
    for one, other in zip(net.evaluate(observations, masks), again.evaluate(observations, masks), strict=True):
        np.testing.assert_array_equal(one, other)
