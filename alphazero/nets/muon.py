"""The optimizer: Muon for matrices and filters, AdamW for all other parameters.

Muon (Jordan et al. 2024) is gradient descent with momentum, where each update is made orthogonal.
torch has a Muon, too. It takes one matrix at a time, always in bf16, and is twelve times slower than float32 on
processors without bf16 (docs/log.md). Here matrices of one shape are one batch, in the precision that is fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.optim.adamw import adamw

MUON_RATE = 3.0
"""Muon's learning rate in units of AdamW's, beyond the factor that makes their updates equally long (Liu et al. 2025);
the best of 1, 3, 6 and 10 in docs/ablations.md."""
ADAM_MOMENTS = "exp_avg", "exp_avg_sq"
"""AdamW's two running means of each parameter."""
MOMENTUM = 0.95
COEFFICIENTS = 3.4445, -4.7750, 2.0315
"""Coefficients of x, x^3 and x^5: five rounds bring all singular values near 1 (Jordan et al. 2024)."""
ROUNDS = 5
MANY = 5_000_000
"""Multiplications of numbers from which on bf16 is faster for a product, that of all matrices of one shape: torch takes
longer to begin it than in float32 (docs/log.md)."""


class Optimizer:
    """Updates parameters by their gradients, in place."""

    def __init__(self, parameters: Sequence[Tensor], weight_decay: float, dtype: torch.dtype):
        """`dtype`: the type for products of MANY multiplications; others are float32.

        `weight_decay` is decoupled, and of matrices alone, as offsets and scales are not meant to be 0.
        """
        self._all, self._weight_decay, self._dtype = list(parameters), weight_decay, dtype
        self.matrices = [parameter for parameter in parameters if _is_matrix(parameter)]
        # Muon takes matrices only: it gets the filters as such, in the same memory
        self._flat = [_as_matrix(parameter.detach(), parameter) for parameter in self.matrices]
        assert all(a.data_ptr() == b.data_ptr() for a, b in zip(self.matrices, self._flat, strict=True))
        shapes = dict.fromkeys(matrix.shape for matrix in self._flat)
        self._groups = [[i for i, matrix in enumerate(self._flat) if matrix.shape == shape] for shape in shapes]
        self._stacks = [torch.zeros_like(torch.stack([self._flat[i] for i in group])) for group in self._groups]
        momenta = {i: row for group, stack in zip(self._groups, self._stacks, strict=True)
                   for i, row in zip(group, stack, strict=True)}  # fmt: skip
        self.momenta = [momenta[i] for i in range(len(self._flat))]
        """The mean gradient of each matrix, in the memory that `step` updates."""
        self.others = [parameter for parameter in parameters if not _is_matrix(parameter)]
        """The parameters that AdamW updates."""
        self.moments = [[torch.zeros_like(each, requires_grad=False) for each in self.others] for _ in ADAM_MOMENTS]
        """Each of ADAM_MOMENTS, for every parameter of `others`."""
        self.adam_steps = [torch.zeros((), device=each.device) for each in self.others]

    def step(
        self, gradients: Sequence[Tensor], learning_rate: float | Tensor, finite: Tensor,
        each: Callable[..., Iterable[None]] = map,
    ) -> None:  # fmt: skip
        """Moves the parameters by their gradients; where those are not `finite bool[]`, by decay and momentum alone.

        Entries of matrices change by about 0.2 x MUON_RATE x the rate (Liu et al. 2025). `each` calls a function for
        matrices of one shape after another, as `map` does, or for several shapes at once on threads.
        """
        found = {one: torch.where(finite, gradient, 0.0) for one, gradient in zip(self._all, gradients, strict=True)}
        rate = MUON_RATE * learning_rate

        @torch.no_grad()  # which holds for one thread
        def move(group: Sequence[int], momentum: Tensor) -> None:
            matrices = [self._flat[i] for i in group]
            gradient = torch.stack([_as_matrix(found[self.matrices[i]], self.matrices[i]) for i in group])
            momentum.lerp_(gradient, 1.0 - MOMENTUM)
            update = orthogonal(gradient.lerp(momentum, MOMENTUM), self._dtype)  # Nesterov's
            length = 0.2 * math.sqrt(max(update.shape[1:]))
            torch._foreach_mul_(matrices, 1.0 - rate * self._weight_decay)
            torch._foreach_sub_(matrices, list(update * (rate * length)))

        list(each(move, self._groups, self._stacks))
        # a function, since the class AdamW imports torch's compiler, which takes a second (Kingma and Ba 2015)
        with torch.no_grad():
            adamw(
                list(self.others), [found[parameter] for parameter in self.others], self.moments[0], self.moments[1],
                [], self.adam_steps, fused=True, amsgrad=False, beta1=0.9, beta2=0.999,
                lr=learning_rate, weight_decay=0.0, eps=1e-8, maximize=False,
            )  # fmt: skip

    def state(self) -> Iterator[tuple[str, Tensor, Tensor]]:
        """The kind, the parameter and the tensor of all that learning goes on from, in the memory that is in use."""
        yield from zip(["momentum_buffer"] * len(self.matrices), self.matrices, self.momenta, strict=True)
        for kind, moments in zip(ADAM_MOMENTS, self.moments, strict=True):
            yield from zip([kind] * len(moments), self.others, moments, strict=True)


def orthogonal(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """About U V^T for every matrix U S V^T of `float32[n, rows, columns]`.

    Singular values end between 0.65 and 1.25; those below a hundredth of the matrix's norm end lower.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=1e-7)  # no singular value is above 1 now
    if x.numel() * x.shape[1] >= MANY:
        x = x.to(dtype)
    a, b, c = COEFFICIENTS
    for _ in range(ROUNDS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrices.dtype)


def _is_matrix(parameter: Tensor) -> bool:
    """Muon makes the rows of an update orthogonal, which means nothing for a single one."""
    return parameter.ndim > 1 and len(parameter) > 1


def _as_matrix(tensor: Tensor, parameter: Tensor) -> Tensor:
    """The parameter or its gradient with one row for each output, in the parameter's own order in memory."""
    if parameter.ndim == 4 and parameter.is_contiguous(memory_format=torch.channels_last):
        tensor = tensor.permute(0, 2, 3, 1)
    return tensor.reshape(len(tensor), -1)
