"""Batch norm, addition and relu in one: against torch's three in float64, by hand, and with numbers that are none."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from alphazero.nets.norm_relu import norm_relu, to_bits, to_float


def test_bf16_is_that_of_torch():
    """Random bits, halves between two neighbours, zeros, infinities, the largest numbers."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 20_000, dtype=np.uint64).astype(np.uint32)
    special = np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x3F808000, 0x3F818000, 0x3F808001], np.uint32)
    numbers = np.concatenate([bits, special]).view(np.float32)
    numbers = numbers[~np.isnan(numbers)]
    expected = torch.from_numpy(numbers.copy()).bfloat16()
    assert [int(to_bits(number)) for number in numbers] == expected.view(torch.uint16).tolist()
    back = np.array([to_float(bit) for bit in expected.view(torch.uint16).numpy()], np.float32)
    np.testing.assert_array_equal(back, expected.float().numpy())
    assert np.isnan(to_float(to_bits(np.float32(np.nan))))


def _norm(channels: int) -> nn.BatchNorm2d:
    torch.manual_seed(2)
    norm = nn.BatchNorm2d(channels)
    with torch.no_grad():
        norm.weight.copy_(torch.rand(channels) + 0.5)
        norm.bias.copy_(torch.randn(channels))
    return norm.train()


# values of about 40 are rounded, divided by their deviation of 3, and their mean is taken away
@pytest.mark.parametrize(
    ("dtype", "rounding", "of_zero"),
    [(torch.bfloat16, 0.01, 1e-3), (torch.float32, 1e-5, 1e-5)],
    ids=["bf16", "float32"],
)
@pytest.mark.parametrize("with_added", [False, True])
@pytest.mark.parametrize("shape", [(200, 16, 6, 7), (3, 5, 1, 1), (300, 1, 3, 3), (2, 33, 8, 8), (3, 600, 2, 2)])
def test_it_is_what_torch_computes_in_float64(shape, with_added, dtype, rounding, of_zero):
    norm = _norm(shape[1])
    other = copy.deepcopy(norm).double()
    # far from zero, so that a difference of squares would lose its digits
    x = (3 * torch.randn(shape) + 40 * torch.randn(1, shape[1], 1, 1)).to(dtype)
    added, gradient = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)
    inputs = [a.detach().clone().requires_grad_() for a in ([x, added] if with_added else [x])]
    wide = [a.detach().double().requires_grad_() for a in inputs]

    y = norm_relu(norm, *inputs)
    expected = torch.relu(other(wide[0]) + (wide[1] if with_added else 0.0))
    torch.testing.assert_close(y.double(), expected, rtol=rounding, atol=of_zero)
    torch.testing.assert_close(norm.running_mean.double(), other.running_mean, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(norm.running_var.double(), other.running_var, rtol=1e-4, atol=1e-5)
    assert norm.num_batches_tracked == other.num_batches_tracked == 1

    found = torch.autograd.grad(y, [*inputs, norm.weight, norm.bias], gradient)
    # where the output is so near to zero that it is rounded to it, the one has a gradient and the other none
    wanted = torch.autograd.grad(expected, [*wide, other.weight, other.bias], gradient.double())
    for a, b in zip(found, wanted, strict=True):
        assert (a.double() - b).norm() <= rounding * b.norm() + min(of_zero, 1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_it_is_what_a_hand_computes(dtype):
    """Values 1 and 3: mean 2, variance 1. With scale 2 and shift 1 they become -1 and 3, and after relu 0 and 3.

    The gradient (5, 7) passes only the second, so the sum over both is 7, and over gradient x normalised value 7.
    """
    norm = nn.BatchNorm2d(1, eps=0.0)
    with torch.no_grad():
        norm.weight.fill_(2.0)
        norm.bias.fill_(1.0)
    x = torch.tensor([1.0, 3.0]).to(dtype).view(2, 1, 1, 1).requires_grad_()
    y = norm_relu(norm, x)
    assert y.flatten().tolist() == [0.0, 3.0]
    to_x, to_scale, to_shift = torch.autograd.grad(
        y, (x, norm.weight, norm.bias), torch.tensor([5.0, 7.0]).view(y.shape)
    )
    assert (to_scale.item(), to_shift.item()) == (7.0, 7.0)
    # 2 (g - 3.5 - 3.5 n) with g = 0, 7 and n = -1, 1: two values that are normalised can only be -1 and 1
    assert to_x.flatten().tolist() == [0.0, 0.0]
    assert norm.running_mean.item() == pytest.approx(0.2) and norm.running_var.item() == pytest.approx(0.9 + 0.1 * 2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_numbers_that_are_none_are_not_hidden(dtype):
    norm = _norm(4)
    x = torch.randn(8, 4, 3, 3).to(dtype)
    x[2, 1, 0, 0] = float("nan")
    y = norm_relu(norm, x)
    assert y[:, 1].isnan().all() and not y[:, [0, 2, 3]].isnan().any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_other_layouts_of_memory_give_the_same(dtype):
    x, added = torch.randn(2, 8, 16, 6, 7).to(dtype)
    results = []
    for layout in (torch.contiguous_format, torch.channels_last):
        inputs = [a.contiguous(memory_format=layout).requires_grad_() for a in (x, added)]
        y = norm_relu(_norm(16), *inputs)
        results.append([y, *torch.autograd.grad(y.flatten(1).square().sum(), inputs)])
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


def test_a_single_value_has_no_variance():
    norm = _norm(4)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm_relu(norm, torch.randn(1, 4, 1, 1).bfloat16())
    assert norm.running_var.isfinite().all()
