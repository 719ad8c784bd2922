"""Muon: against torch's own, which takes matrices one at a time, and against singular values."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from alphazero.nets.muon import MUON_RATE, Optimizer, orthogonal

SHAPES = (32, 216), (32, 288), (32, 288), (64, 16), (192, 256), (2, 64), (128, 96), (32, 288)
"""Wide and tall ones, with many and few multiplications, three of one shape apart from each other."""
GOOD = torch.tensor(True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_moves_matrices_as_torch_does(dtype):
    """torch's rounds are in bf16, which keeps 8 bits: single entries differ by percents of an update, means do not."""
    generator = torch.Generator().manual_seed(3)
    start = [torch.randn(shape, generator=generator) for shape in SHAPES]
    mine, theirs = [matrix.clone() for matrix in start], [torch.nn.Parameter(matrix.clone()) for matrix in start]
    ours = Optimizer(mine, weight_decay=0.1, dtype=dtype)
    reference = torch.optim.Muon(theirs, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for step in range(4):
        rate = 0.02 / (step + 1)
        gradients = [torch.randn(shape, generator=generator) for shape in SHAPES]
        ours.step(gradients, rate / MUON_RATE, GOOD)
        for parameter, gradient in zip(theirs, gradients, strict=True):
            parameter.grad = gradient
        reference.param_groups[0]["lr"] = rate
        reference.step()
    for matrix, parameter, before in zip(mine, theirs, start, strict=True):
        moved, expected = matrix - before, parameter.detach() - before
        assert ((moved - expected).square().mean() / expected.square().mean()).sqrt() < 0.02
    for momentum, parameter in zip(ours.momenta, theirs, strict=True):
        torch.testing.assert_close(momentum, reference.state[parameter]["momentum_buffer"])


def test_shapes_that_move_at_once_on_threads_move_as_one_after_another():
    generator = torch.Generator().manual_seed(7)
    start = [torch.randn(shape, generator=generator) for shape in SHAPES]
    gradients = [torch.randn(shape, generator=generator) for shape in SHAPES]
    found = []
    # both on threads that compute alone, so that sums are rounded alike
    with ThreadPoolExecutor(3, initializer=torch.set_num_threads, initargs=(1,)) as pool:

        def in_turns(move, *shapes):
            return [pool.submit(move, *shape).result() for shape in zip(*shapes, strict=True)]

        for each in (in_turns, pool.map):
            matrices = [matrix.clone() for matrix in start]
            ours = Optimizer(matrices, weight_decay=0.1, dtype=torch.float32)
            for _ in range(3):
                ours.step(gradients, 0.02, GOOD, each)
            found.append([*matrices, *ours.momenta])
    assert not torch.equal(found[0][0], start[0])
    for one, other in zip(*found, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("shape", [(3, 40, 100), (2, 100, 40), (1, 7, 7), (4, 1, 30)])
def test_singular_vectors_stay_and_singular_values_come_near_1(shape):
    """The values' bounds are those of the polynomial (Jordan et al. 2024), above a hundredth of the largest norm."""
    generator = torch.Generator().manual_seed(5)
    matrices = 1000 * torch.randn(shape, generator=generator)
    u, values, v = torch.linalg.svd(matrices, full_matrices=False)
    turned = u.mT @ orthogonal(matrices, torch.float32) @ v.mT
    found = torch.diagonal(turned, dim1=1, dim2=2)
    assert (values > 0.01 * torch.linalg.matrix_norm(matrices)[:, None]).all()
    assert (found > 0.65).all() and (found < 1.25).all()
    torch.testing.assert_close(turned - torch.diag_embed(found), torch.zeros_like(turned), atol=1e-4, rtol=0)


@pytest.mark.parametrize(("shape", "many"), [((3, 64, 576), True), ((2, 64, 576), False), ((3, 576, 64), True)])
def test_bf16_is_for_many_multiplications(shape, many):
    """For fewer, torch takes longer to begin a product of bf16 than it takes for all of it in float32."""
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(8))
    assert torch.equal(orthogonal(matrices, torch.bfloat16), orthogonal(matrices, torch.float32)) != many


def test_the_first_step_by_hand():
    """A row becomes itself over its norm, times what five rounds make of 1; the factor of its length is 0.2 sqrt(4).

    A row without a gradient moves by its decay alone.
    """
    gradient, length = torch.tensor([[3.0, 0.0, 4.0, 0.0], [0.0] * 4]), 1.0
    for _ in range(5):
        length = 3.4445 * length - 4.7750 * length**3 + 2.0315 * length**5
    start = torch.tensor([[1.0, 2.0, 3.0, 4.0], [1.0] * 4])
    matrix = start.clone()
    Optimizer([matrix], weight_decay=0.5, dtype=torch.float32).step([gradient], 0.1 / MUON_RATE, GOOD)
    torch.testing.assert_close(matrix, 0.95 * start - 0.1 * 0.4 * length * gradient / 5)
