"""2048's network: which tables it looks into, and what it counts in."""

import numpy as np
import pytest
import torch

import alphazero as az
from alphazero.errors import InvalidSetting
from games.twenty48.net import GROUPS, TABLE_UNIT, UNIT, make_net

GAME = az.load_game("2048")
SIZES = {"features": 2, "value_units": 4, "policy_units": 2}


def planes_of(exponents: np.ndarray) -> torch.Tensor:
    """Observations of boards `int64[n, 4, 4]`."""
    return torch.from_numpy((exponents[:, None] == np.arange(14)[:, None, None]).astype(np.float32))


def some_boards(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 14, (count, 4, 4))


def test_a_fresh_network_has_no_opinion():
    logits, values = make_net(GAME, SIZES).module(planes_of(some_boards(3)))
    assert not logits.any() and not values.any()


def test_the_tables_are_those_of_all_images_of_each_group():
    """Entry by entry in plain Python: exponents are digits to the base 14, the first cell's the lowest."""
    module, boards = make_net(GAME, SIZES).module, some_boards(20)
    torch.nn.init.normal_(module.tables, generator=torch.Generator().manual_seed(0))
    found, tables = module(planes_of(boards))[1].detach().numpy(), module.tables.detach().numpy()
    for board, value in zip(boards, found, strict=True):
        total = 0.0
        for turned in (np.rot90(image, turns).ravel() for image in (board, board.T) for turns in range(4)):
            for number, group in enumerate(GROUPS):
                total += tables[number * 14**4 + sum(turned[c] * 14**i for i, c in enumerate(group))]
        assert value == pytest.approx(UNIT * TABLE_UNIT * total, abs=1e-5)


def test_the_policy_learns_nothing_for_the_value():
    module = make_net(GAME, SIZES).module
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    module(planes_of(some_boards(2)))[0].sum().backward()
    assert {name.split(".")[0] for name, each in module.named_parameters() if each.grad is not None} == {
        "policy", "policy_hidden"
    }  # fmt: skip


def test_openvino_looks_into_the_same_tables():
    """As numbers that no conversion may lose: the entries lie in a table of whole numbers."""
    pytest.importorskip("openvino")
    net = make_net(GAME, SIZES)
    torch.nn.init.normal_(net.module.tables)
    net.freeze()
    planes, masks = planes_of(some_boards(40)).numpy(), np.ones((40, 4), bool)
    expected = net.evaluate(planes, masks)[1]
    assert net.use_inference("openvino") == "openvino"
    np.testing.assert_allclose(net.evaluate(planes, masks)[1], expected, atol=1e-5)
    assert expected.std() > 0


def test_the_sizes_are_checked():
    with pytest.raises(InvalidSetting, match="features must lie"):
        make_net(GAME, {"features": 1})
