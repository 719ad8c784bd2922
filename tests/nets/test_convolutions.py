"""Convolutions that learn, by boards side by side and by Winograd's method: results and gradients are torch's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

from alphazero.catalogue import registry
from alphazero.nets import convolutions, torch_trainer
from alphazero.nets.convolutions import (
    Convolutions,
    by_winograd,
    convolved,
    gradient_by_winograd,
    gradient_of_filters,
    side_by_side,
)
from games.connect4.game import Connect4
from tests.nets.batches import random_batch


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
    real = convolutions.gradient_of_filters
    monkeypatch.setattr(convolutions, "gradient_of_filters", lambda *a: calls.append(a) or real(*a))
    torch.manual_seed(1)
    inputs = torch.randn(12, 6, 6, 7, requires_grad=True)
    target = torch.randn_like(layer(inputs))
    wanted = torch.autograd.grad((layer(inputs) * target).sum(), [*layer.parameters(), inputs])

    with torch.autocast("cpu", torch.bfloat16), Convolutions(side_by_side):
        y = layer(inputs)
    assert y.dtype == torch.bfloat16
    found = torch.autograd.grad((y.float() * target).sum(), [*layer.parameters(), inputs])
    assert len(calls) == taken
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == torch.float32
        assert (a - b).norm() < 0.02 * b.norm()


@pytest.mark.parametrize("case", ["autocast is off", "float64"])
def test_what_autocast_leaves_alone_is_left_alone(case):
    dtype = torch.float64 if case == "float64" else torch.float32
    layer = nn.Conv2d(2, 2, 3, dtype=dtype)
    own = torch.autocast("cpu", enabled=case == "float64")
    with torch.autocast("cpu", torch.bfloat16), Convolutions(side_by_side), own:
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
    with torch.autocast("cpu", torch.bfloat16), Convolutions(side_by_side):
        found = nn.functional.conv2d(input=x, weight=weight, **named)
    assert type(found.grad_fn).__name__ == "SideBySideConvolutionBackward"
    gradient = torch.randn_like(expected)
    (a,) = torch.autograd.grad(found, weight, gradient.bfloat16())
    (b,) = torch.autograd.grad(expected, weight, gradient)
    assert (a - b).norm() < 0.02 * b.norm()


# --- by Winograd ---

SHAPES = [(1, 1), (2, 5), (6, 7), (8, 8), (9, 10)]


def some_boards(count, channels, height, width, seed=0):
    generator = torch.Generator().manual_seed(seed)
    boards = torch.randn(count, channels, height, width, generator=generator)
    return boards.contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(("inputs", "outputs"), [(16, 16), (32, 16), (16, 48)])
@pytest.mark.parametrize(("height", "width"), SHAPES)
def test_results_and_gradients_are_those_of_torch(height, width, inputs, outputs):
    """In float64 by torch; 19 boards are one group of 16 for the gradient of filters, and a rest.

    float32 has seven digits, of which Winograd's sums lose one, and two where they are over all squares and boards.
    """
    x = some_boards(19, inputs, height, width).requires_grad_()
    weight = some_boards(outputs, inputs, 3, 3, seed=1).mul(0.1).requires_grad_()
    bias = torch.randn(outputs, generator=torch.Generator().manual_seed(2)).requires_grad_()
    with Convolutions(by_winograd):
        result = torch.conv2d(x, weight, bias, padding=1)
    twice = [tensor.detach().double().requires_grad_() for tensor in (x, weight, bias)]
    expected = torch.conv2d(*twice, padding=1)
    assert relative_error(result, expected) < 1e-5
    assert result.is_contiguous(memory_format=torch.channels_last)
    gradient = some_boards(19, outputs, height, width, seed=3)
    found = torch.autograd.grad(result, (x, weight, bias), gradient)
    wanted = torch.autograd.grad(expected, twice, gradient.double())
    for one, other in zip(found, wanted, strict=True):
        assert relative_error(one, other) < 5e-5


def relative_error(found, expected):
    """The largest error over the largest number."""
    assert found.shape == expected.shape
    found, expected = found.detach().double(), expected.detach()
    return float((found - expected).abs().max() / expected.abs().max())


def spy(monkeypatch):
    asked = []
    convolve = convolutions.convolved

    def convolved_here(x, weight):
        asked.append(tuple(weight.shape))
        return convolve(x, weight)

    monkeypatch.setattr(convolutions, "convolved", convolved_here)
    return asked


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("padding", [1, (1, 1), "same"])
def test_modules_are_computed_here(monkeypatch, padding, bias):
    asked, module = spy(monkeypatch), nn.Conv2d(16, 32, 3, padding=padding, bias=bias)
    x = some_boards(3, 16, 5, 4)
    with Convolutions(by_winograd):
        result = module(x)
    assert asked == [(32, 16, 3, 3)]
    torch.testing.assert_close(result, module(x), atol=1e-5, rtol=1e-4)
    assert asked == [(32, 16, 3, 3)], "outside of the mode torch computes"


@pytest.mark.parametrize(
    ("module", "dtype"),
    [
        (nn.Conv2d(16, 24, 3, padding=1), torch.float32),
        (nn.Conv2d(20, 16, 3, padding=1), torch.float32),
        (nn.Conv2d(16, 16, 3), torch.float32),
        (nn.Conv2d(16, 16, 3, padding=1, stride=2), torch.float32),
        (nn.Conv2d(16, 16, 3, padding=2, dilation=2), torch.float32),
        (nn.Conv2d(32, 32, 3, padding=1, groups=2), torch.float32),
        (nn.Conv2d(16, 16, 5, padding=2), torch.float32),
        (nn.Conv2d(16, 16, (3, 1), padding=(1, 0)), torch.float32),
        (nn.Conv2d(16, 16, 3, padding=1), torch.float64),
        (nn.Conv2d(16, 16, 3, padding=1), torch.bfloat16),
    ],
)
def test_all_others_are_torchs(monkeypatch, module, dtype):
    asked, module = spy(monkeypatch), module.to(dtype)
    x = some_boards(3, module.in_channels, 6, 6).to(dtype)
    with Convolutions(by_winograd):
        given = module.stride, module.padding, module.dilation, module.groups
        assert torch.equal(module(x), nn.functional.conv2d(x, module.weight, module.bias, *given))
    assert asked == []


def test_bf16_of_autocast_and_an_image_without_a_batch_are_torchs(monkeypatch):
    asked, layer = spy(monkeypatch), nn.Conv2d(16, 16, 3, padding=1)
    with Convolutions(by_winograd):
        assert layer(torch.ones(16, 4, 4)).shape == (16, 4, 4)
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(some_boards(2, 16, 4, 4)).dtype == torch.bfloat16
    assert asked == []


def test_boards_of_any_memory_layout():
    """The result has the layout that torch gives it, on which a `view` depends."""
    x, weight = some_boards(5, 16, 6, 7), some_boards(16, 16, 3, 3, seed=1)
    for boards, filters in ((x, weight), (x.contiguous(), weight), (x, weight.contiguous())):
        assert torch.equal(convolved(boards, filters), convolved(x.contiguous(), weight.contiguous()))
        assert convolved(boards, filters).stride() == torch.conv2d(boards, filters, padding=1).stride()
    plain = convolved(x.contiguous(), weight.contiguous())
    assert plain.stride() == torch.conv2d(x.contiguous(), weight.contiguous(), padding=1).stride()
    assert torch.equal(gradient_by_winograd(x, x), gradient_by_winograd(x.contiguous(), x.contiguous()))


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_results_may_be_changed_in_place(layout):
    layer = nn.Conv2d(16, 16, 3, padding=1, bias=False)
    module = nn.Sequential(layer, nn.ReLU(inplace=True))
    x = some_boards(5, 16, 6, 7).contiguous(memory_format=layout)
    with Convolutions(by_winograd):
        found = torch.autograd.grad(module(x).square().sum(), layer.weight)[0]
    expected = torch.autograd.grad(module(x).square().sum(), layer.weight)[0]
    assert relative_error(found, expected.double()) < 1e-4


def test_arguments_that_torch_refuses_get_its_sentence():
    with Convolutions(by_winograd):
        with pytest.raises(RuntimeError, match="expected input"):
            torch.conv2d(some_boards(2, 32, 4, 4), torch.zeros(16, 16, 3, 3), padding=1)
        with pytest.raises(RuntimeError, match="bias"):
            torch.conv2d(some_boards(2, 16, 4, 4), torch.zeros(16, 16, 3, 3), torch.zeros(1), padding=1)


def test_threads_compute_side_by_side():
    x, weight = some_boards(40, 16, 6, 7), some_boards(32, 16, 3, 3, seed=1)
    expected = convolved(x, weight)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: convolved(x, weight), range(12)):
            assert torch.equal(found, expected)


def test_a_step_of_learning_is_the_one_of_torch(monkeypatch):
    """The same losses, and weights that differ by less than a hundredth of the step."""
    batch, found = random_batch(Connect4(), 48), []
    monkeypatch.setattr(torch_trainer, "bf16_pays", lambda device: False)
    for ours in (True, False):
        torch.manual_seed(0)
        net = registry.load("connect4").make_net(Connect4(), {"blocks": 2, "channels": 16})
        trainer = net.trainer(threads=2)
        asked = spy(monkeypatch)
        if not ours:
            monkeypatch.setattr(torch_trainer, "fastest", lambda dtype: None)
        before = [parameter.detach().clone() for parameter in trainer.parameters]
        losses = trainer.train_step(batch, 1e-3)
        assert bool(asked) == ours
        found.append((losses, [new.detach() - old for new, old in zip(trainer.parameters, before, strict=True)]))
    (losses, steps), (expected, expected_steps) = found
    for name, loss in losses.items():
        assert float(loss) == pytest.approx(float(expected[name]), rel=1e-5)
    size = np.sqrt(sum(float((step**2).sum()) for step in expected_steps))
    error = np.sqrt(sum(float(((a - b) ** 2).sum()) for a, b in zip(steps, expected_steps, strict=True)))
    assert error < 0.01 * size
