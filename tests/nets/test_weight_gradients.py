"""Gradients of filters with boards side by side: equal to torch's own, and taken for those convolutions alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from alphazero.nets import weight_gradients
from alphazero.nets.weight_gradients import FastWeightGradients, gradient_of_filters


@pytest.mark.parametrize("count", [1, 4, 9, 16])
@pytest.mark.parametrize(
    ("size", "padding"),
    [
        ((3, 3), (1, 1)), ((1, 1), (0, 0)), ((1, 1), (1, 1)), ((1, 4), (0, 0)), ((4, 1), (0, 0)), ((4, 4), (0, 0)),
        ((5, 5), (2, 2)), ((3, 3), (2, 2)), ((3, 3), (0, 0)), ((2, 2), (4, 4)), ((6, 1), (0, 0)), ((3, 2), (1, 0)),
    ],
)  # fmt: skip
def test_boards_side_by_side_have_torchs_gradient(count, size, padding):
    torch.manual_seed(0)
    x = torch.randn(count, 3, 6, 7, dtype=torch.float64)
    weight = torch.randn(5, 3, *size, dtype=torch.float64, requires_grad=True)
    y = torch.conv2d(x, weight, padding=padding)
    gradient = torch.randn_like(y)
    (expected,) = torch.autograd.grad(y, weight, gradient)
    torch.testing.assert_close(gradient_of_filters(x, gradient, weight.detach(), padding), expected)


def test_a_filters_gradient_worked_out_by_hand():
    """Two boards of one row, side by side: nothing of the one is multiplied by the other's.

    Board 1 2, gradient 1 10, and board 3 4, gradient 100 1000; a filter of three squares sees (before, here, after).
    """
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).view(2, 1, 1, 2)
    gradient = torch.tensor([[1.0, 10.0], [100.0, 1000.0]]).view(2, 1, 1, 2)
    boards = [torch.cat([each, torch.zeros_like(each)]) for each in (x, gradient)]  # four go side by side
    found = gradient_of_filters(*boards, torch.zeros(1, 1, 1, 3), (0, 1))
    before, here, after = 10 * 1 + 1000 * 3, 1 * 1 + 10 * 2 + 100 * 3 + 1000 * 4, 1 * 2 + 100 * 4
    assert found.flatten().tolist() == [before, here, after]


LAYERS = [
    (nn.Conv2d(6, 8, 3, padding=1), True),
    (nn.Conv2d(6, 8, (1, 4), bias=False), True),
    (nn.ConvTranspose2d(6, 8, (4, 1)), True),
    (nn.Conv2d(6, 8, 3, stride=2), False),
    (nn.Conv2d(6, 8, 3, dilation=2), False),
    (nn.Conv2d(6, 6, 3, groups=2), False),
    (nn.Conv2d(6, 8, 3, padding="same"), False),
    (nn.ConvTranspose2d(6, 8, 3, padding=1), False),
    (nn.ConvTranspose2d(6, 8, 3, stride=2, output_padding=1), False),
]


@pytest.mark.parametrize(("layer", "taken"), LAYERS, ids=lambda value: str(value))
def test_layers_learn_the_same(layer, taken, monkeypatch):
    """Within bf16's rounding of the gradients that float32 has; the layers of other kinds go to torch."""
    calls = []
    real = weight_gradients.gradient_of_filters
    monkeypatch.setattr(weight_gradients, "gradient_of_filters", lambda *a: calls.append(a) or real(*a))
    torch.manual_seed(1)
    inputs = torch.randn(12, 6, 6, 7, requires_grad=True)
    target = torch.randn_like(layer(inputs))
    wanted = torch.autograd.grad((layer(inputs) * target).sum(), [*layer.parameters(), inputs])

    with torch.autocast("cpu", torch.bfloat16), FastWeightGradients():
        y = layer(inputs)
    assert y.dtype == torch.bfloat16
    found = torch.autograd.grad((y.float() * target).sum(), [*layer.parameters(), inputs])
    assert len(calls) == taken
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == torch.float32
        assert (a - b).norm() < 0.02 * b.norm()


def test_it_is_over_when_it_is_left():
    with FastWeightGradients():
        pass
    layer = nn.Conv2d(2, 2, 3)
    y = layer(torch.zeros(1, 2, 5, 5))
    assert "Convolution" in type(y.grad_fn).__name__ and y.dtype == torch.float32
    assert type(y.grad_fn).__name__ != "SideBySideConvolutionBackward"


@pytest.mark.parametrize("case", ["autocast is off", "float64"])
def test_what_autocast_leaves_alone_is_left_alone(case):
    dtype = torch.float64 if case == "float64" else torch.float32
    layer = nn.Conv2d(2, 2, 3, dtype=dtype)
    own = torch.autocast("cpu", enabled=case == "float64")
    with torch.autocast("cpu", torch.bfloat16), FastWeightGradients(), own:
        y = layer(torch.randn(4, 2, 5, 5, dtype=dtype))
    assert y.dtype == dtype and type(y.grad_fn).__name__ != "SideBySideConvolutionBackward"


@pytest.mark.parametrize(
    "named",
    [
        {"padding": (1,)},
        {"padding": [1, 1], "stride": (1,)},
        {"padding": torch.Size([1, 1]), "dilation": 1, "groups": 1},
    ],
    ids=str,
)
def test_every_way_to_write_a_convolution_is_understood(named):
    """As torch takes them: all by name, and one number in a list for both directions."""
    x, weight = torch.randn(4, 3, 6, 7), torch.randn(5, 3, 3, 3, requires_grad=True)
    expected = nn.functional.conv2d(input=x, weight=weight, **named)
    with torch.autocast("cpu", torch.bfloat16), FastWeightGradients():
        found = nn.functional.conv2d(input=x, weight=weight, **named)
    assert type(found.grad_fn).__name__ == "SideBySideConvolutionBackward"
    gradient = torch.randn_like(expected)
    (a,) = torch.autograd.grad(found, weight, gradient.bfloat16())
    (b,) = torch.autograd.grad(expected, weight, gradient)
    assert (a - b).norm() < 0.02 * b.norm()
