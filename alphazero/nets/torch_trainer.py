"""`TorchTrainer`: teaches a TorchNet by Muon and AdamW, on threads, a GPU, or several processes together."""

from __future__ import annotations

import contextlib
import copy
import functools
import logging
import math
import os
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from alphazero.errors import CheckpointError, NetError, TrainingError, is_out_of_memory, listed, quote
from alphazero.invocation import WINDOWS, option
from alphazero.machine import Threads
from alphazero.nets.any_module import forward, to_arrays
from alphazero.nets.convolutions import Convolutions, compile_convolutions, fastest
from alphazero.nets.cuda_updates import CudaUpdates
from alphazero.nets.devices import bf16_pays, usual_torch
from alphazero.nets.muon import ADAM_MOMENTS, Optimizer
from alphazero.nets.neural_net import Batch, Trainer
from alphazero.nets.norm_relu import compile_kernels
from alphazero.storage.checkpoint import bytes_of, check_tensors, load_checkpoint, save_checkpoint
from alphazero.storage.formats import LearnerCard
from alphazero.storage.schema import check

logger = logging.getLogger(__name__)

MOST_THREADS = 4
"""More threads are not used: each passes through the network in Python, under one lock. On two cores a step of 2x32
takes 33 ms with two threads, 56, 120 and 251 with 4, 8 and 16 (docs/log.md); on more cores it is not measured."""
LEAST_VARIANCE = 1e-6
PATIENCE = timedelta(minutes=10)
"""The time that a process waits for the others that learn with it."""


class TorchTrainer(Trainer):
    """Learns float32 weights, whose moving average is the network's module; passes are bf16 where hardware has that."""

    def __init__(self, net: Any, weight_decay: float, max_gradient_norm: float, ema_decay: float, threads: int):
        """`net` is a TorchNet."""
        self.net, self.device = net, str(net.device)
        self.module = copy.deepcopy(net.module)
        """The weights that learn."""
        self.parameters = [parameter for parameter in self.module.parameters() if parameter.requires_grad]
        if not self.parameters:
            raise NetError(f"{type(self.module).__name__} has no parameters that can learn: requires_grad is off")
        self._averages, self._averaged = _distinct(net.module, self.module, floating=True)
        self._counts, self._counted = _distinct(net.module, self.module, floating=False)
        self.max_gradient_norm, self.ema_decay = max_gradient_norm, ema_decay
        self.dtype = torch.bfloat16 if bf16_pays(net.device) else torch.float32
        self.optimizer = Optimizer(self.parameters, weight_decay, self.dtype)
        self._tried = False  # a batch has gone through the module in this precision
        # a class speaks for itself: one made from it may do something else
        self._same_steps = bool(vars(type(self.module)).get("same_steps", False))
        self.num_updates, self._group = 0, Group()
        self._on_gpu = net.device.type == "cuda"
        self._cuda_updates = CudaUpdates(net.device) if self._on_gpu else None
        # a thread works on its own part of each batch, so that threads meet once an update and not in every layer,
        # where each meeting waits for the processor's other work
        threads = min(threads, MOST_THREADS)
        self.replicas = [_share(self.module) for _ in range(1 if self._on_gpu else threads)]
        self.pool = Threads(threads, functools.partial(torch.set_num_threads, 1))
        self._each = map if self._on_gpu else self.pool.map
        if not self._on_gpu:
            compile_kernels(self.dtype)
            compile_convolutions(self.dtype)

    @usual_torch()
    def train_step(self, batch: Batch, learning_rate: float) -> dict[str, Tensor]:
        # early on the average is that of the last tenth of the steps, about, so that the first weights do not linger
        share = 1.0 - min(self.ema_decay, (self.num_updates + 1) / (self.num_updates + 11))
        if self._cuda_updates is None:
            policy_loss, value_loss, finite = self._update(batch, learning_rate, share)
        else:
            replays = self._same_steps and self._group.size == 1 and len(self.replicas) == 1
            policy_loss, value_loss, finite = self._cuda_updates(self._update, batch, learning_rate, share, replays)
        self.num_updates += self._on_gpu or bool(finite)
        return {"policy_loss": policy_loss, "value_loss": value_loss}

    def _update(self, batch: Batch, learning_rate: float | Tensor, share: float | Tensor) -> tuple[Tensor, ...]:
        """Both losses, and whether the batch was finite; `share`: that of the newest weights in their average."""
        found = self._gradients_of_all(batch)
        losses = [torch.stack(parts).sum() for parts in zip(*(losses for losses, _ in found), strict=True)]
        # in memory of their own, since autograd may give two parameters one tensor
        gradients = [gradient.clone() for gradient in found[0][1]]
        for _, part in found[1:]:
            torch._foreach_add_(gradients, part)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        buffers = self._new_buffers(len(found))
        self._group.add_up([*gradients, *losses, *(new for new in buffers if new.dtype.is_floating_point)])
        norm = nn.utils.clip_grad_norm_(self.parameters, self.max_gradient_norm)
        finite = torch.isfinite(losses[0] + losses[1] + norm)
        # whether a batch on the GPU is good is not waited for: a bad one costs a step of decay and momentum
        if self._on_gpu or finite:
            self.optimizer.step(gradients, learning_rate, finite, self._each)
            mine = list(self.module.buffers())
            _copy(mine, [torch.where(finite, *pair) for pair in zip(buffers, mine, strict=True)])
            steps = torch._foreach_sub(self._averaged, self._averages)
            torch._foreach_add_(self._averages, torch._foreach_mul(steps, share))
            _copy(self._counts, self._counted)
        self._hand_out_buffers()
        return *(torch.where(finite, loss, math.nan) for loss in losses), finite

    def finish(self) -> None:
        self.net.freeze()

    def _gradients_of_all(self, batch: Batch) -> list[tuple[tuple[Tensor, ...], tuple[Tensor, ...]]]:
        """`_gradients` of each piece of our part of a batch; there are as many pieces as memory asks for."""
        whole, rank, size = len(batch.value_targets), self._group.rank, self._group.size
        first, count = whole * rank // size, whole * (rank + 1) // size - whole * rank // size
        parts = max(1, min(len(self.replicas), count // 2))  # a batch norm needs two positions
        pieces = [slice(first + count * i // parts, first + count * (i + 1) // parts) for i in range(parts)]
        work, needed = (self.replicas[:parts], [batch] * parts, pieces), parts
        try:
            if self._on_gpu:
                found = list(map(self._gradients, *work))
            else:
                futures = [self.pool.submit(self._gradients, *each) for each in zip(*work, strict=True)]
                wait(futures)  # a failure is raised once all threads are done
                found = [future.result() for future in futures]
            self._tried = True
            return found
        except NetError:
            raise
        except Exception as error:
            if not is_out_of_memory(error) or (self._on_gpu and torch.cuda.is_current_stream_capturing()):
                if self._tried or self.dtype == torch.float32:
                    raise
                logger.warning("this network learns in float32, since it fails in bf16: %s", quote(str(error), 200))
                self.dtype = torch.float32
            elif parts > count // 4:
                raise TrainingError(
                    "the GPU's memory does not hold the learning of four positions: choose a smaller net "
                    f"({option('net.channels')}) or free the GPU, and go on with {option('resume', True)}"
                ) from error
            else:
                logger.warning("a batch does not fit into the GPU's memory: it is learned in %d parts", 2 * parts)
                needed = 2 * parts
        # not sooner: until here the error holds what was computed
        torch.cuda.empty_cache()
        self.replicas += [_share(self.module) for _ in range(needed - len(self.replicas))]
        self._hand_out_buffers()  # those of layers before the failing one have moved
        return self._gradients_of_all(batch)

    def _gradients(
        self, replica: nn.Module, batch: Batch, piece: slice
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The share of a piece of the batch in the two losses and in the gradient."""
        given = (torch.as_tensor(array[piece], device=self.net.device) for array in vars(batch).values())
        # a tensor of torch.inference_mode has no gradients, but its copy has
        observations, masks, policies, values = (each.clone() if each.is_inference() else each for each in given)
        replica.train()
        reduced = self.dtype == torch.bfloat16
        faster = None if self._on_gpu else fastest(self.dtype)
        mode = Convolutions(faster) if faster else contextlib.nullcontext()
        with torch.autocast(self.net.device.type, torch.bfloat16, enabled=reduced), mode:
            logits, value = forward(replica, observations.contiguous(memory_format=self.net.layout))
        share = len(values) / len(batch.value_targets)
        found = [share * loss for loss in losses(logits.float(), value.float(), masks, policies, values)]
        if self.net.for_one:  # in units of the differences within the batch
            found[1] = found[1] / (batch.value_targets.var() + LEAST_VARIANCE)
        gradients = torch.autograd.grad(found[0] + found[1], self.parameters, allow_unused=True)
        if not self._tried and replica is self.replicas[0]:
            _check_used(self.module, gradients)
        made = (torch.zeros_like(p) if g is None else g for p, g in zip(self.parameters, gradients, strict=True))
        return tuple(loss.detach() for loss in found), tuple(made)

    @torch.no_grad()
    def _new_buffers(self, parts: int) -> list[Tensor]:
        """New buffers: means over the first replicas, or our share of them. Counts of updates are alike everywhere."""
        all_of = [list(replica.buffers()) for replica in self.replicas[:parts]]
        floating = [i for i, buffer in enumerate(all_of[0]) if buffer.dtype.is_floating_point]
        if floating:
            shares = [torch._foreach_div([each[i] for i in floating], parts * self._group.size) for each in all_of]
            for other in shares[1:]:
                torch._foreach_add_(shares[0], other)
            for i, mean in zip(floating, shares[0], strict=True):
                all_of[0][i] = mean
        return all_of[0]

    @torch.no_grad()
    def _hand_out_buffers(self) -> None:
        mine = list(self.module.buffers())
        for replica in self.replicas:
            _copy(list(replica.buffers()), mine)

    @torch.no_grad()
    def join(self, meeting: Path, rank: int, size: int) -> Callable[[], None]:
        return self._group.join(meeting, rank, size, self._on_gpu)

    def _tensors(self) -> dict[str, Tensor]:
        """The state of learning by name, in the memory that is in use."""
        tensors = {f"module.{name}": tensor for name, tensor in self.module.state_dict().items()}
        tensors |= {f"averaged.{name}": tensor for name, tensor in self.net.module.state_dict().items()}
        names: dict[Tensor, str] = {parameter: name for name, parameter in self.module.named_parameters()}
        for kind, parameter, tensor in self.optimizer.state():
            if self.num_updates or kind not in ADAM_MOMENTS:
                tensors[f"{kind}.{names[parameter]}"] = tensor
        return tensors

    def save(self, path: Path) -> dict[str, Any]:
        return save_checkpoint(path, to_arrays(self._tensors()), {"num_updates": self.num_updates})

    @usual_torch()
    def load(self, path: Path) -> None:
        # the weights, their averages, momenta or two moments
        arrays, card = load_checkpoint(path, 5 * bytes_of(to_arrays(self.module.state_dict())))
        self.num_updates = check(LearnerCard, card, f"the card of {path}", CheckpointError).num_updates
        for step in self.optimizer.adam_steps:
            step.fill_(float(self.num_updates))
        expected = self._tensors()
        check_tensors(arrays, to_arrays(expected), path)
        with torch.no_grad():
            for name, tensor in expected.items():
                tensor.copy_(torch.from_numpy(arrays[name]))
        self._hand_out_buffers()
        self.finish()


class Group:
    """The processes that learn together; at first, this one alone."""

    rank, size = 0, 1

    def join(self, meeting: Path, rank: int, size: int, on_gpu: bool) -> Callable[[], None]:
        """As `Trainer.join`."""
        # the ports that the processes open to find each other are for this machine alone
        if not WINDOWS:  # where interfaces have other names, and the processes use the one of the host's name
            local = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
            os.environ |= {"GLOO_SOCKET_IFNAME": local, "NCCL_SOCKET_IFNAME": local}
        torch.distributed.init_process_group(
            "nccl" if on_gpu else "gloo", rank=rank, world_size=size, timeout=PATIENCE,
            store=torch.distributed.FileStore(str(meeting), size),
            device_id=torch.device("cuda", 0) if on_gpu else None,  # so that NCCL connects now, not when needed
        )  # fmt: skip
        self.rank, self.size = rank, size
        # NCCL's kernels wait on the GPU for processes that are gone; only this ends them
        abort = torch.distributed.distributed_c10d._abort_process_group
        return abort if on_gpu else torch.distributed.destroy_process_group

    def add_up(self, tensors: list[Tensor]) -> None:
        """Every tensor becomes the sum over the processes."""
        if self.size == 1:
            return
        everything = torch.cat([tensor.reshape(-1) for tensor in tensors])
        torch.distributed.all_reduce(everything)
        for tensor, total in zip(tensors, everything.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(total.view_as(tensor))


def losses(
    logits: Tensor, value: Tensor, legal_mask: Tensor, policy_target: Tensor, value_target: Tensor
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of the policy over the legal actions, and mean squared error of the value.

    `logits float[n, A]`, `value float[n]`, `legal_mask bool[n, A]`, and the targets `float[n, A]` and `float[n]`.
    Illegal actions have no part in the softmax, so no gradient is spent on learning the rules.
    """
    log_policy = torch.log_softmax(logits.masked_fill(~legal_mask, -math.inf), dim=1)
    log_policy = log_policy.masked_fill(policy_target == 0, 0.0)  # 0 * -inf would be nan
    policy_loss = -(policy_target * log_policy).sum(dim=1).mean()
    return policy_loss, nn.functional.mse_loss(value, value_target)


def _check_used(module: nn.Module, gradients: Sequence[Tensor | None]) -> None:
    """Warns of parameters on which the answers do not depend; raises NetError if they depend on none."""
    names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
    idle = [name for name, gradient in zip(names, gradients, strict=True) if gradient is None]
    said = f"the answers of {type(module).__name__} do not depend on {listed(idle, 4)}"
    if idle == names:
        raise NetError(f"{said}: let `forward` use the module's own parameters, in a copy of it, too")
    if idle:
        logger.warning("%s, so these learn nothing", said)


def _distinct(module: nn.Module, copied: nn.Module, floating: bool) -> tuple[list[Tensor], list[Tensor]]:
    """Weights and buffers of one kind of a module and of its copy, in the memory that is in use.

    Those with several names, as of layers that share their weights, are there once.
    """
    found, others = module.state_dict(), copied.state_dict()
    chosen = {name: tensor for name, tensor in found.items() if tensor.dtype.is_floating_point == floating}
    names = {(tensor.data_ptr(), tensor.shape): name for name, tensor in chosen.items()}.values()
    return [found[name] for name in names], [others[name] for name in names]


@torch.no_grad()
def _copy(targets: list[Tensor], sources: list[Tensor]) -> None:
    if targets:
        torch._foreach_copy_(targets, sources)


def _share(module: nn.Module) -> nn.Module:
    """A copy that has the module's own parameters, and buffers of its own."""
    return copy.deepcopy(module, {id(parameter): parameter for parameter in module.parameters()})
