"""`TorchNet`: the NeuralNet interface for any torch module with `forward(observations) -> (policy_logits, value)`."""

from __future__ import annotations

import copy
import functools
import logging
import math
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval
from torch.utils.flop_counter import FlopCounterMode

from alphazero.errors import CheckpointError, TrainingError, is_out_of_memory
from alphazero.game import Game
from alphazero.nets.muon import Muon
from alphazero.nets.neural_net import Batch, DeviceEvaluate, NeuralNet
from alphazero.storage.checkpoint import check_tensors, load_checkpoint, save_checkpoint

logger = logging.getLogger(__name__)

CHUNK = 64
"""Positions per network call on a processor core, about: more do not fit its cache, fewer leave it idle."""
GRAIN = 4
"""Calls are filled up to a multiple of this, so that the library's kernels meet few different shapes."""
MUON_RATE = 3.0
"""Muon's learning rate in units of AdamW's, beyond the factor that makes their updates equally long (Liu et al. 2025);
the best of 1, 3, 6 and 10 in docs/ablations.md."""
ADAM_MOMENTS = "exp_avg", "exp_avg_sq"
"""What AdamW remembers of each parameter."""
PATIENCE = timedelta(minutes=10)
"""A process that learns with others waits so long for them."""
MASKED = -1e9
"""The logit of an illegal action."""


def bf16_pays() -> bool:
    """The processor multiplies bf16 in hardware."""
    return torch.backends.mkldnn.is_available() and bool(torch.cpu._is_avx512_bf16_supported())


class TorchNet(NeuralNet):
    """Trains a module, averages its weights, and plays by a frozen copy of the average.

    Weights and their updates are float32; where the hardware multiplies bf16, passes through the network are bf16. The
    frozen copy has its batch norms folded into the convolutions; its error against float32 is bounded in
    tests/test_torch_net.py.
    """

    def __init__(self, game: Game, module: nn.Module, settings: dict[str, Any]):
        self.device = torch.device("cpu")
        self.rank, self.processes = 0, 1
        self.frozen: Any = None
        self.module = channels_last(module)
        self.averaged = copy.deepcopy(self.module).requires_grad_(False)
        self.num_updates = 0
        self.prepare_training()
        self.card = {
            "game": game.name,
            "net": settings,
            "parameters": sum(p.numel() for p in module.parameters()),
            "flops_per_position": count_flops(module, game.observation_shape),
        }
        self.finish_training()

    # --- playing -----------------------------------------------------------------------------------------------------

    def use_determinism(self, wanted: bool) -> None:
        if wanted:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or CUDA's matrix products refuse
        torch.use_deterministic_algorithms(wanted)

    def use_device(self, name: str) -> None:
        self.device, self.frozen, self.learns_on = torch.device(name), None, name
        for module in (self.module, self.averaged, *self.replicas):  # replicas have buffers of their own
            module.to(self.device)
        self.finish_training()

    def finish_training(self) -> None:
        pays = torch.cuda.is_bf16_supported(including_emulation=False) if self.device.type == "cuda" else bf16_pays()
        self.dtype = torch.bfloat16 if pays else torch.float32
        frozen = channels_last(fold(copy.deepcopy(self.averaged).eval())).to(self.dtype)
        if self.frozen is None:
            self.frozen = frozen
            return
        # in place, since graphs that were captured know the weights by their addresses; no search may be reading them
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        self.frozen.load_state_dict(frozen.state_dict())
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def device_evaluate(self) -> DeviceEvaluate | None:
        return OnDevice(self) if self.device.type == "cuda" else None

    @torch.inference_mode()
    def evaluate(self, observations: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count = len(observations)
        parts = max(1, round(count / CHUNK)) if self.device.type == "cpu" else 1
        size = -(-count // (parts * GRAIN)) * GRAIN  # equal parts, since a small last one is slow for its size
        padded = parts * size
        planes = torch.zeros(padded, *observations.shape[1:], dtype=self.dtype, device=self.device)
        planes = planes.contiguous(memory_format=torch.channels_last)
        planes[:count] = torch.from_numpy(observations).to(self.device)
        outputs = [self.frozen(part) for part in planes.split(size)]
        logits = torch.cat([policy for policy, _ in outputs])[:count].float()
        values = torch.cat([value for _, value in outputs])[:count].float()
        mask = torch.from_numpy(legal_masks).to(self.device)
        priors = torch.softmax(logits.masked_fill(~mask, MASKED), dim=1) * mask
        return priors.cpu().numpy(), values.cpu().numpy()

    def use_threads(self, count: int) -> None:
        torch.set_num_threads(count)

    # --- learning ----------------------------------------------------------------------------------------------------

    def prepare_training(
        self, weight_decay: float = 1e-4, max_gradient_norm: float = 1.0, ema_decay: float = 0.99, threads: int = 1
    ) -> None:
        self.weight_decay, self.max_gradient_norm, self.ema_decay = weight_decay, max_gradient_norm, ema_decay
        # a thread works on its own part of each batch, so that threads meet once an update and not in every layer,
        # where each meeting waits for the processor's other work
        self.replicas = [_share(self.module) for _ in range(threads if self.device.type == "cpu" else 1)]
        self.pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))

    @functools.cached_property
    def optimizers(self) -> tuple[Muon, torch.optim.AdamW]:
        """Muon for matrices and filters, AdamW for all else.

        Made when first needed: torch takes a second to import what it needs, and players do not need it.
        """
        self.matrices = [parameter for parameter in self.module.parameters() if _is_matrix(parameter)]
        others = [parameter for parameter in self.module.parameters() if not _is_matrix(parameter)]
        # Muon takes matrices only: it gets the filters as such, in the same memory
        flat = [_as_matrix(parameter.detach()) for parameter in self.matrices]
        assert all(a.data_ptr() == b.data_ptr() for a, b in zip(self.matrices, flat, strict=True))
        # decay pulls weights to zero, which is meant for matrices, not for offsets and scales
        return Muon(flat, self.weight_decay, self.dtype), torch.optim.AdamW(others, weight_decay=0.0, fused=True)

    def train_step(self, batch: Batch, learning_rate: float) -> dict[str, Tensor]:
        found = self._gradients_of_all(batch)
        losses = [torch.stack(parts).sum() for parts in zip(*(losses for losses, _ in found), strict=True)]
        for parameter, *gradients in zip(self.module.parameters(), *(part for _, part in found), strict=True):
            parameter.grad = functools.reduce(torch.add, gradients)
        buffers = self._new_buffers(len(found))
        gradients_and_losses = [*(p.grad for p in self.module.parameters() if p.grad is not None), *losses]
        self._add_up([*gradients_and_losses, *(new for new in buffers if new.dtype.is_floating_point)])
        norm = nn.utils.clip_grad_norm_(self.module.parameters(), self.max_gradient_norm)
        finite = torch.isfinite(losses[0] + losses[1] + norm)
        # whether a batch on the GPU is good is not waited for: a bad one costs a step of decay and momentum
        if self.device.type == "cuda" or finite:
            self._step(learning_rate, finite)
            for mine, new in zip(self.module.buffers(), buffers, strict=True):
                mine.copy_(torch.where(finite, new, mine))
            self._average()
        self._hand_out_buffers()
        policy_loss, value_loss = (torch.where(finite, loss, math.nan) for loss in losses)
        return {"policy_loss": policy_loss, "value_loss": value_loss}

    def _gradients_of_all(self, batch: Batch) -> list[tuple[tuple[Tensor, ...], tuple[Tensor, ...]]]:
        """What `_gradients` gives for the pieces of our part of a batch: as many as memory asks for, from now on."""
        whole, rank, size = len(batch.value_targets), self.rank, self.processes
        first, count = whole * rank // size, whole * (rank + 1) // size - whole * rank // size
        while True:
            parts = max(1, min(len(self.replicas), count // 2))  # a batch norm needs two positions
            pieces = [slice(first + count * i // parts, first + count * (i + 1) // parts) for i in range(parts)]
            work = self.replicas[:parts], [batch] * parts, pieces
            try:
                return list((self.pool.map if self.device.type == "cpu" else map)(self._gradients, *work))
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                if parts > count // 4:
                    raise TrainingError(
                        "the GPU's memory does not hold the learning of four positions: choose a smaller net "
                        "(--net.channels), or close what else uses the GPU, and go on with --resume"
                    ) from error
            # not sooner: until here the error holds what was computed
            torch.cuda.empty_cache()
            logger.warning("a batch does not fit into the GPU's memory: it is learned in %d parts", 2 * parts)
            self.replicas += [_share(self.module) for _ in range(2 * parts - len(self.replicas))]
            self._hand_out_buffers()

    def _step(self, learning_rate: float, finite: Tensor) -> None:
        """Moves the weights by their gradients; where those are not `finite bool[]`, by decay and momentum alone."""
        for parameter in self.module.parameters():
            assert parameter.grad is not None
            parameter.grad = torch.where(finite, parameter.grad, 0.0)
        muon, adam = self.optimizers
        gradients = [_as_matrix(parameter.grad) for parameter in self.matrices if parameter.grad is not None]
        muon.step(gradients, MUON_RATE * learning_rate)
        for group in adam.param_groups:
            group["lr"] = learning_rate
        adam.step()
        self.num_updates += 1

    def _gradients(
        self, replica: nn.Module, batch: Batch, piece: slice
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The share of a piece of the batch in the two losses and in the gradient."""
        observations, masks, policies, values = (
            torch.as_tensor(array[piece], device=self.device)
            for array in (batch.observations, batch.legal_masks, batch.policy_targets, batch.value_targets)
        )
        replica.train()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            logits, value = replica(observations.contiguous(memory_format=torch.channels_last))
        share = len(values) / len(batch.value_targets)
        found = [share * loss for loss in losses(logits.float(), value.float(), masks, policies, values)]
        gradients = torch.autograd.grad(found[0] + found[1], list(replica.parameters()))
        return tuple(loss.detach() for loss in found), gradients

    @torch.no_grad()
    def _new_buffers(self, parts: int) -> list[Tensor]:
        """For the module's batch norms: the mean of what those of the first replicas have counted, or our share of it.

        Whole numbers, which count updates, are the same everywhere.
        """
        return [
            torch.stack(found).mean(dim=0) / self.processes if found[0].dtype.is_floating_point else found[0]
            for found in zip(*(replica.buffers() for replica in self.replicas[:parts]), strict=True)
        ]

    def join(self, meeting: Path, rank: int, size: int) -> Callable[[], None]:
        # what the processes open to find each other is for this machine alone
        local = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
        os.environ |= {"GLOO_SOCKET_IFNAME": local, "NCCL_SOCKET_IFNAME": local}
        on_gpu = self.device.type == "cuda"
        torch.distributed.init_process_group(
            "nccl" if on_gpu else "gloo", rank=rank, world_size=size, timeout=PATIENCE,
            store=torch.distributed.FileStore(str(meeting), size),
            device_id=torch.device("cuda", 0) if on_gpu else None,  # so that NCCL connects now, not when first needed
        )  # fmt: skip
        self.rank, self.processes = rank, size
        # NCCL's kernels wait on the GPU for processes that are gone; only this ends them
        return torch.distributed.distributed_c10d._abort_process_group if on_gpu else _leave_group

    def _add_up(self, tensors: list[Tensor]) -> None:
        """Every tensor becomes the sum over the processes that learn together."""
        if self.processes == 1:
            return
        everything = torch.cat([tensor.reshape(-1) for tensor in tensors])
        torch.distributed.all_reduce(everything)
        for tensor, total in zip(tensors, everything.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(total.view_as(tensor))

    @torch.no_grad()
    def _hand_out_buffers(self) -> None:
        for replica in self.replicas:
            for theirs, mine in zip(replica.buffers(), self.module.buffers(), strict=True):
                theirs.copy_(mine)

    @torch.no_grad()
    def _average(self) -> None:
        # early on the average is that of all steps so far, so that the first weights do not linger
        decay = min(self.ema_decay, self.num_updates / (self.num_updates + 10))
        kept, new = (list(module.state_dict().values()) for module in (self.averaged, self.module))
        mixed = [i for i, tensor in enumerate(kept) if tensor.dtype.is_floating_point]
        torch._foreach_lerp_([kept[i] for i in mixed], [new[i] for i in mixed], 1.0 - decay)
        for i in set(range(len(kept))) - set(mixed):
            kept[i].copy_(new[i])

    # --- on disk -----------------------------------------------------------------------------------------------------

    def save(self, path: Path, card: dict[str, Any]) -> dict[str, Any]:
        return save_checkpoint(path, _contiguous(self.averaged.state_dict()), self.card | card)

    def load(self, path: Path) -> dict[str, Any]:
        tensors, card = load_checkpoint(path)
        if card.get("game") != self.card["game"]:
            raise CheckpointError(f"{path} plays {card.get('game')!r}, not {self.card['game']!r}: choose it by --game")
        check_tensors(tensors, _shapes(self.averaged.state_dict()), path)
        self.averaged.load_state_dict(tensors)
        self.module.load_state_dict(tensors)
        self._hand_out_buffers()
        self.finish_training()
        return card

    def _training_tensors(self) -> dict[str, Tensor]:
        muon, adam = self.optimizers
        tensors = {f"module.{name}": tensor for name, tensor in self.module.state_dict().items()}
        tensors |= {f"averaged.{name}": tensor for name, tensor in self.averaged.state_dict().items()}
        names: dict[Tensor, str] = {parameter: name for name, parameter in self.module.named_parameters()}
        for matrix, momentum in zip(self.matrices, muon.momenta, strict=True):
            tensors[f"momentum_buffer.{names[matrix]}"] = momentum
        for parameter, state in adam.state.items():
            tensors |= {f"{moment}.{names[parameter]}": state[moment] for moment in ADAM_MOMENTS}
        return tensors

    def save_training(self, path: Path) -> dict[str, Any]:
        return save_checkpoint(path, _contiguous(self._training_tensors()), {"num_updates": self.num_updates})

    def load_training(self, path: Path) -> None:
        tensors, card = load_checkpoint(path)
        self.num_updates = int(card["num_updates"])
        if self.num_updates:
            _, adam = self.optimizers
            for parameter in (parameter for group in adam.param_groups for parameter in group["params"]):
                step = torch.tensor(float(self.num_updates), device=parameter.device)
                adam.state[parameter] = {"step": step} | {name: torch.zeros_like(parameter) for name in ADAM_MOMENTS}
        expected = self._training_tensors()
        check_tensors(tensors, _shapes(expected), path)
        with torch.no_grad():
            for name, tensor in expected.items():
                tensor.copy_(tensors[name])
        self._hand_out_buffers()
        self.finish_training()


class OnDevice(DeviceEvaluate):
    """A network on the GPU."""

    sees_wins = True

    def __init__(self, net: TorchNet):
        self._net = net
        self._arrays: tuple[Any, ...] = ()
        self._tensors: list[Tensor] = []

    @torch.inference_mode()
    def __call__(self, planes: Any, legal_masks: Any, priors: Any, values: Any) -> None:
        arrays = (planes, legal_masks, priors, values)
        if len(self._arrays) == 0 or any(new is not old for new, old in zip(arrays, self._arrays, strict=True)):
            self._arrays = arrays
            self._tensors = [torch.as_tensor(array, device=self._net.device) for array in arrays]  # the same memory
        observations, masks, weights, results = self._tensors
        logits, value = self._net.frozen(observations.to(self._net.dtype, memory_format=torch.channels_last))
        weights.copy_(torch.softmax(logits.float().masked_fill(~masks, MASKED), dim=1) * masks)
        results.copy_(value)


def losses(
    logits: Tensor, value: Tensor, legal_mask: Tensor, policy_target: Tensor, value_target: Tensor
) -> tuple[Tensor, Tensor]:
    """Cross-entropy of the policy over the legal actions, and mean squared error of the value.

    `logits float[n, A]`, `value float[n]`, `legal_mask bool[n, A]`, and the targets `float[n, A]` and `float[n]`.
    Illegal actions have no part in the softmax, so no gradient is spent on learning the rules.
    """
    log_policy = torch.log_softmax(logits.masked_fill(~legal_mask, MASKED), dim=1)
    policy_loss = -(policy_target * log_policy).sum(dim=1).mean()
    return policy_loss, nn.functional.mse_loss(value, value_target)


def _leave_group() -> None:
    torch.distributed.destroy_process_group()


def _is_matrix(parameter: Tensor) -> bool:
    """Muon makes the rows of an update orthogonal, which means nothing for a single one."""
    return parameter.ndim > 1 and len(parameter) > 1


def _as_matrix(tensor: Tensor) -> Tensor:
    """One row for each output; filters keep the order that they have in memory, so that no copy is made of them."""
    return (tensor.permute(0, 2, 3, 1) if tensor.ndim == 4 else tensor).reshape(len(tensor), -1)


def _share(module: nn.Module) -> nn.Module:
    """A copy that has the module's own parameters, and buffers of its own."""
    return copy.deepcopy(module, {id(parameter): parameter for parameter in module.parameters()})


def channels_last(module: nn.Module) -> nn.Module:
    """Lays the filters out in memory as the fastest convolutions want them, in place."""
    for parameter in module.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
    return module


def fold(module: nn.Module) -> nn.Module:
    """Folds every batch norm that follows a convolution in an `nn.Sequential` into it, in place."""
    for child in module.modules():
        if isinstance(child, nn.Sequential):
            for i in range(len(child) - 1):
                layer, following = child[i], child[i + 1]
                if isinstance(layer, nn.Conv2d) and isinstance(following, nn.BatchNorm2d):
                    child[i], child[i + 1] = fuse_conv_bn_eval(layer, following), nn.Identity()
    return module


def count_flops(module: nn.Module, observation_shape: tuple[int, int, int]) -> int:
    """Floating-point operations (a multiply-add is two) of the convolutions and linear layers for one position."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        copy.deepcopy(module).eval()(torch.zeros(1, *observation_shape))
    return int(counter.get_total_flops())


def _shapes(tensors: dict[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _contiguous(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
