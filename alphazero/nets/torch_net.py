"""`TorchNet`: plays by any torch module with `forward(observations) -> (policy_logits, values)`."""

from __future__ import annotations

import copy
import functools
import math
import operator
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from alphazero.errors import CheckpointError, NetError, UnknownName, quote, shorten
from alphazero.game import Game
from alphazero.invocation import option
from alphazero.nets.any_module import (
    CannotConvert,
    answers_of,
    check_module,
    checked_masks,
    choose_form,
    count_flops,
    forward,
    frozen_copy,
    lay_out,
    to_arrays,
    to_priors,
)
from alphazero.nets.devices import INFERENCES, bf16_pays, has_amx, say_once, usual_torch
from alphazero.nets.kernels.openvino import OpenVinoInference
from alphazero.nets.kernels.winograd import WinogradInference
from alphazero.nets.neural_net import CudaEvaluator, NeuralNet, on_one_thread
from alphazero.settings import check_range
from alphazero.storage.checkpoint import bytes_of, check_tensors, load_checkpoint, read_card, save_checkpoint

if TYPE_CHECKING:
    from alphazero.nets.torch_trainer import TorchTrainer

CHUNK = 64
"""Positions per network call on a processor core, about: more do not fit its cache, fewer leave it idle."""
GRAIN = 4
"""Calls are filled up to a multiple of this, so that the library's kernels meet few different shapes."""
TURNS = 12
"""Batches that each library answers before the fastest one is chosen; three, once PATIENCE is over."""
PATIENCE = 0.4
"""Seconds."""
Inference = OpenVinoInference | WinogradInference
"""Answers `observations float32[n, P, H, W]` by logits and values, to several threads side by side."""
LIBRARIES: tuple[type[Inference], ...] = (OpenVinoInference, WinogradInference)


@functools.cache
def _mind_forks() -> None:
    """Has torch compute on one thread in every child made by fork from now on: it would wait for threads left here."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=functools.partial(torch.set_num_threads, 1))


class TorchNet(NeuralNet):
    """Plays by a frozen copy of a module.

    The module gives policy logits `[n, A]` and values `[n]` or `[n, 1]` for observations `float[n, P, H, W]`; in a game
    for more than two `[n, V]` (see `Game.value_shape`). Values are cut to [-1, 1]. Raises NetError for something else.

    Weights are float32; where the hardware multiplies bf16 and the module can, the frozen copy is bf16. It has its
    batch norms folded into the convolutions.

    >>> import alphazero as az, math, torch
    >>> class Linear(torch.nn.Module):
    ...     def __init__(self, game):
    ...         super().__init__()
    ...         inputs = math.prod(game.observation_shape)
    ...         self.policy, self.value = torch.nn.Linear(inputs, game.num_actions), torch.nn.Linear(inputs, 1)
    ...     def forward(self, observations):
    ...         inputs = observations.flatten(1)
    ...         return self.policy(inputs), torch.tanh(self.value(inputs))
    >>> game = az.load_game("tictactoe")
    >>> net = az.TorchNet(game, Linear(game))
    >>> az.evaluate(game.start(), net).policy.shape
    (9,)
    """

    @usual_torch()
    def __init__(self, game: Game, module: nn.Module, settings: Mapping[str, Any] | None = None):
        """The module is kept, and becomes float32. The card keeps `settings`, from which `make_net` makes it."""
        if not (isinstance(game, Game) and isinstance(module, nn.Module)):
            given = f"{type(game).__name__} and a {type(module).__name__}"
            raise NetError(f"az.TorchNet takes a Game and a torch module, not a {given}")
        self.device = torch.device("cpu")
        self.for_one = game.num_players == 1
        """Actions differ by less than an answer in bf16 rounds away, as torch's would be; OpenVINO's is float32."""
        self._example = torch.from_numpy(np.stack([game.start().observation] * 2))
        _mind_forks()
        check_module(module, self._example, game.num_actions, game.value_shape)
        self.layout, self._folds = choose_form(module.float(), game.observation_shape)
        """The memory layout of filters and observations, and whether batch norms are folded into convolutions."""
        self.module = lay_out(module, self.layout)
        """The weights that play, in float32."""
        self.card = {
            "game": game.name,
            "net": dict(settings or {}),
            "parameters": sum(p.numel() for p in module.parameters()),
            "flops_per_position": count_flops(module, self._example),
        }
        self.frozen: Any = None
        self._inference: Inference | None = None
        self.freeze()

    @usual_torch()
    def freeze(self) -> None:
        """Makes `evaluate` answer by the module's weights of now."""
        frozen = self.frozen_float()
        if self._inference is not None:
            self._inference.set_weights(frozen)
        if self.frozen is None:
            self.frozen, self.dtype, self.bf16 = frozen, torch.float32, False
            if bf16_pays(self.device):
                short = copy.deepcopy(frozen).to(torch.bfloat16)
                answers = answers_of(short, self._example.to(self.device, torch.bfloat16, memory_format=self.layout))
                self.bf16 = answers is not None and all(bool(torch.isfinite(each).all()) for each in answers)
                if self.bf16 and not self.for_one:
                    self.frozen, self.dtype = short, torch.bfloat16
            return
        # in place, since graphs that were captured know the weights by their addresses; no search may be reading them
        wait = torch.cuda.synchronize if self.device.type == "cuda" else lambda: None
        wait()
        self.frozen.load_state_dict(frozen.state_dict())
        wait()

    def __getstate__(self) -> dict[str, Any]:
        """Without the library that answers, which no other process can have: it makes its own one."""
        return vars(self) | {"_inference": None if self._inference is None else self._inference.name}

    @usual_torch()
    def __setstate__(self, state: dict[str, Any]) -> None:
        _mind_forks()
        vars(self).update(state)
        if self._inference is not None:
            self.use_inference(state["_inference"])

    @torch.inference_mode()
    def evaluate(self, observations: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._inference is not None:
            weights, results = self._inference(observations)
            to_priors(weights, results, legal_masks)
            return weights, results
        logits, values = self._ask_torch(observations)
        mask = _tensor(checked_masks(legal_masks, logits.shape)).to(self.device)
        return _priors(logits, mask).cpu().numpy(), values.clamp(-1, 1).cpu().numpy()

    @usual_torch(in_all_threads=False)
    @torch.inference_mode()
    def _ask_torch(self, observations: np.ndarray) -> tuple[Tensor, Tensor]:
        """Logits `float32[n, A]` and values `float32[n]`."""
        count = len(observations)
        parts = max(1, round(count / CHUNK)) if self.device.type == "cpu" else 1
        size = -(-count // (parts * GRAIN)) * GRAIN  # equal parts, since a small last one is slow for its size
        planes = torch.zeros(parts * size, *observations.shape[1:], dtype=self.dtype, device=self.device)
        planes = planes.contiguous(memory_format=self.layout)
        planes[:count] = _tensor(observations).to(self.device)
        outputs = [forward(self.frozen, part) for part in planes.split(size)]
        logits = torch.cat([policy for policy, _ in outputs])[:count].float()
        return logits, torch.cat([value for _, value in outputs])[:count].float()

    @usual_torch()
    def use_device(self, name: str) -> None:
        try:
            device = torch.device(name)
        except RuntimeError:
            raise UnknownName("device", name, ("cpu", "cuda"), meant=re.sub("^gpu", "cuda", name)) from None
        self.device, self.frozen, self._inference = device, None, None
        self.module.to(self.device)
        self.freeze()

    @usual_torch()
    def use_inference(self, name: str) -> str:
        if name not in INFERENCES:
            raise UnknownName("inference", name, INFERENCES)
        self._inference = None
        if name == "torch" or self.device.type != "cpu":
            return "torch"
        made = list[Inference]()
        for library in LIBRARIES:
            slow = library is WinogradInference and self.bf16 and has_amx()  # bf16 is ten times as fast there
            if library.name == name or (name == "auto" and not slow):
                try:
                    made.append(library(self.frozen_float(), self._example, self.bf16))
                except CannotConvert as error:
                    if name != "auto":
                        raise
                    say_once(f"{error}; another library answers")
        with on_one_thread(self):
            batch = np.repeat(self._example[:1].numpy(), CHUNK, axis=0)
            self._inference = fastest(made, self._ask_torch, batch) if name == "auto" else made[0]
        return "torch" if self._inference is None else self._inference.name

    def frozen_float(self) -> nn.Module:
        """The module as it plays, in float32: a copy with its batch norms folded into the convolutions."""
        return frozen_copy(self.module, self.layout, self._folds)

    def use_threads(self, count: int) -> int:
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        return before

    def use_determinism(self, wanted: bool) -> bool:
        before = torch.are_deterministic_algorithms_enabled()
        if wanted and torch.cuda.is_available():
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or CUDA's matrix products refuse
        # only where it differs, since setting it imports torch's compiler, which takes a second
        if wanted != before:
            torch.use_deterministic_algorithms(wanted)
        return before

    def cuda_evaluator(self) -> CudaEvaluator | None:
        return TorchCudaEvaluator(self) if self.device.type == "cuda" else None

    @usual_torch()
    def grow_from(self, smaller: NeuralNet) -> bool:
        take_over = getattr(self.module, "grow_from", lambda weights: False)
        if not isinstance(smaller, TorchNet) or not take_over(smaller.module.state_dict()):
            return False
        self.freeze()
        return True

    @usual_torch()
    def trainer(
        self, *, weight_decay: float = 1e-4, max_gradient_norm: float = 1.0, ema_decay: float = 0.99, threads: int = 1
    ) -> TorchTrainer:
        from alphazero.nets.torch_trainer import TorchTrainer  # players do not need it

        check_range("threads", threads, 1)
        return TorchTrainer(self, weight_decay, max_gradient_norm, ema_decay, threads)

    def save(self, path: Path, card: Mapping[str, Any]) -> dict[str, Any]:
        return save_checkpoint(path, to_arrays(self.module.state_dict()), {**self.card, **card})

    def load(self, path: Path) -> dict[str, Any]:
        return self._load(path, read_card(path))

    def load_weights(self, path: Path, card: dict[str, Any]) -> dict[str, Any]:
        return self._load(path, card) if type(self).load is TorchNet.load else self.load(path)

    @usual_torch()
    def _load(self, path: Path, card: dict[str, Any]) -> dict[str, Any]:
        expected = to_arrays(self.module.state_dict())
        arrays, card = load_checkpoint(path, bytes_of(expected), card)
        if card.get("game") != self.card["game"]:
            raise CheckpointError(
                f"{path} plays {quote(card.get('game'))}, not {quote(self.card['game'])}: choose it by {option('game')}"
            )
        for name, array in arrays.items():  # a published net has float16 to be half as large
            if array.dtype == np.float16 and name in expected:
                arrays[name] = array.astype(expected[name].dtype)
        check_tensors(arrays, expected, path)
        self.module.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
        self.freeze()
        return card


@torch.inference_mode()
def fastest(
    libraries: Sequence[Inference], by_torch: Callable[[np.ndarray], Any], observations: np.ndarray
) -> Inference | None:
    """Whichever answers soonest, by the best of several turns; None: torch."""
    asks: dict[Inference | None, Any] = {None: by_torch, **{library: library for library in libraries}}
    times = dict.fromkeys(asks, math.inf)
    begun = time.perf_counter()
    for turn in range(TURNS):
        if turn >= 3 and time.perf_counter() - begun > PATIENCE:
            break
        for library, ask in list(asks.items()):
            begin = time.perf_counter()
            try:
                ask(observations)
            except Exception as error:
                if library is None:
                    raise
                say_once(f"{library.name} does not run here ({shorten(error)}); another library answers")
                del asks[library]
            times[library] = min(times[library], time.perf_counter() - begin)
    return min(asks, key=lambda library: times[library])


@torch.no_grad()
def widen(mine: Mapping[str, Tensor], smaller: Mapping[str, Tensor], outputs_second: tuple[str, ...] = ()) -> bool:
    """Writes a smaller network's weights into those of a larger one, which then answers alike (Chen et al. 2016).

    What was there listens to new inputs with weight zero. Weights have their outputs first, but for names that begin
    with one of `outputs_second`. Returns False, and changes nothing, where something of the smaller one is larger.
    """
    for name, weights in smaller.items():
        large, small = mine[name].shape, weights.shape  # inputs and outputs may be more, filters have one size
        if len(large) != len(small) or large[2:] != small[2:] or any(map(operator.lt, large, small)):
            return False
    for name, weights in smaller.items():
        if weights.ndim > 1:
            outputs = 1 if name.startswith(outputs_second) else 0
            mine[name].narrow(outputs, 0, weights.shape[outputs]).zero_()
        mine[name][tuple(slice(length) for length in weights.shape)] = weights
    return True


class TorchCudaEvaluator(CudaEvaluator):
    """The frozen copy, for a search on the GPU."""

    sees_wins = True

    def __init__(self, net: TorchNet):
        self.net: TorchNet = net
        self._arrays: tuple[Any, ...] = (None,) * 4

    @usual_torch(in_all_threads=False)
    @torch.inference_mode()
    def __call__(self, planes: Any, legal_masks: Any, priors: Any, values: Any) -> None:
        arrays = (planes, legal_masks, priors, values)
        if any(new is not old for new, old in zip(arrays, self._arrays, strict=True)):
            self._arrays = arrays
            self._tensors = [torch.as_tensor(array, device=self.net.device) for array in arrays]  # the same memory
        observations, masks, weights, results = self._tensors
        net = self.net
        logits, value = forward(net.frozen, observations.to(net.dtype, memory_format=net.layout))
        weights.copy_(_priors(logits.float(), masks))
        results.copy_(value).clamp_(-1, 1)


def _priors(logits: Tensor, legal_masks: Tensor) -> Tensor:
    """The softmax over the legal actions, 0 for all others; only 0 where no action is legal."""
    return torch.softmax(logits.masked_fill(~legal_masks, -math.inf), dim=1).masked_fill(~legal_masks, 0.0)


def _tensor(array: np.ndarray) -> Tensor:
    """The same memory, or a copy of an array that is read-only, which torch warns of."""
    return torch.from_numpy(np.require(array, requirements=("C", "W")))
