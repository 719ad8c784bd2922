"""The network of two towers that share nothing, and sizes that are checked."""

import numpy as np
import pytest
import torch

import alphazero as az
from alphazero.errors import InvalidSetting
from alphazero.nets.towers import make_net

GAME = az.load_game("backgammon")


def test_a_fresh_network_has_no_opinion():
    position = GAME.position("31")
    found = az.evaluate(position, make_net(GAME, {"value_units": 8, "policy_units": 4}))
    assert found.value == 0
    np.testing.assert_allclose(found.policy[position.legal_mask], 1 / position.legal_mask.sum(), rtol=1e-6)


@pytest.mark.parametrize("answer", [0, 1], ids=["policy", "value"])
def test_what_one_tower_learns_leaves_the_other_alone(answer):
    module = make_net(GAME, {"value_units": 8, "policy_units": 4}).module
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    planes = torch.from_numpy(np.stack([GAME.position("31").observation] * 2))
    module(planes)[answer].sum().backward()
    learning = {name.split(".")[0] for name, each in module.named_parameters() if each.grad is not None}
    assert learning == ({"policy", "policy_hidden"} if answer == 0 else {"first", "second", "value"})


def test_the_sizes_are_checked():
    with pytest.raises(InvalidSetting, match="value_units must lie"):
        make_net(GAME, {"value_units": 1})
    assert make_net(GAME, {"value_units": 8, "policy_units": 4}).module.second.out_features == 4


@pytest.mark.parametrize("larger, can", [((12, 4), True), ((8, 9), True), ((12, 9), True), ((12, 3), False)])
def test_towers_that_have_grown_answer_as_before(larger, can):
    torch.manual_seed(0)
    small = make_net(GAME, {"value_units": 8, "policy_units": 4})
    large = make_net(GAME, {"value_units": larger[0], "policy_units": larger[1]})
    for parameter in (*small.module.parameters(), *large.module.parameters()):
        torch.nn.init.normal_(parameter, std=0.1)
    planes = torch.from_numpy(np.stack([GAME.position("31").observation]))
    before, given = large.module(planes), small.module(planes)
    assert large.grow_from(small) is can
    for own, mine, other in zip(before, large.module(planes), given, strict=True):
        torch.testing.assert_close(mine, other if can else own)
        assert (own - other).abs().max() > 0.01
