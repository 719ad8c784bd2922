"""What the framework asks of a network; any library can stand behind it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsFloat

import numpy as np

from alphazero.errors import InvalidSetting


@dataclass(frozen=True)
class Batch:
    """n samples as the learner sees them: numpy's arrays, or torch's tensors on the device that learns."""

    observations: Any
    """`float32[n, P, H, W]`."""
    legal_masks: Any
    """`bool[n, A]`: true = allowed."""
    policy_targets: Any
    """`float32[n, A]`: sums to 1, 0 on illegal actions."""
    value_targets: Any
    """`float32[n]` in [-1, 1], for the player to move."""


class DeviceEvaluate(ABC):
    """A network that answers where the trees are: on a GPU, from its memory into its memory."""

    sees_wins = False
    """The search overrules the answers where the mover wins at once, as `Evaluator` does."""

    @abstractmethod
    def __call__(self, planes: Any, legal_masks: Any, priors: Any, values: Any) -> None:
        """Answers every row of `planes float32[n, P, H, W]`, `legal_masks bool[n, A]`, all on the device.

        Writes `priors float32[n, A]` (weights of any sum) and `values float32[n]`, for the player to move. A caller
        passes the same arrays at every call, on a stream that may be captured as a graph: nothing may wait for the
        device, and new weights must take the place of the old ones in memory.
        """


class NeuralNet(ABC):
    """A policy and value network for one game."""

    card: dict[str, Any]
    """What a checkpoint says of the network: `game`, `net` (its settings), `parameters`, `flops_per_position`."""
    learns_on: str = "cpu"
    """The torch device that `train_step` wants its batches on; `cpu` stands for numpy's arrays."""

    @abstractmethod
    def evaluate(self, observations: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Priors `float32[m, A]` and values `float32[m]` of `float32[m, P, H, W]` under `bool[m, A]`.

        Priors sum to 1 and are 0 on illegal actions; values are in [-1, 1], for the player to move. Safe to call from
        several threads at once.
        """

    def use_determinism(self, wanted: bool) -> None:  # noqa: B027
        """Whether all networks of this process must add in a fixed order from now on, which takes longer on a GPU.

        Asked for before `use_device`; a network that always does so need not care.
        """

    @abstractmethod
    def use_device(self, name: str) -> None:
        """Moves the network to `cpu`, `cuda` or `cuda:1`, before it learns."""

    def device_evaluate(self) -> DeviceEvaluate | None:
        """For a search on the GPU, one for each search; None unless the network is there and can do it."""
        return None

    @abstractmethod
    def prepare_training(self, weight_decay: float, max_gradient_norm: float, ema_decay: float, threads: int) -> None:
        """Settings of `train_step`: decay of weights, bound of the gradient's norm, decay of the average, threads."""

    @abstractmethod
    def train_step(self, batch: Batch, learning_rate: float) -> Mapping[str, SupportsFloat]:
        """One optimizer step; returns `policy_loss` and `value_loss`: nan if they were not finite, and nothing learned.

        On a GPU `float` of a loss waits until the step is done, which nothing else does; so there a batch that gives no
        finite gradient still costs a step of decay and momentum.
        """

    def join(self, meeting: Path, rank: int, size: int) -> Callable[[], None]:
        """From now on `train_step` is one step of `size` processes together, each for its part of the same batches.

        They meet by the file `meeting`, which nobody else knows; this one is number `rank`. Waits for all of them.
        Everyone must have the same weights then, and all must make the same steps. Returns what ends it.
        """
        raise InvalidSetting("this network cannot learn on several devices: choose one by --device")

    @abstractmethod
    def use_threads(self, count: int) -> None:
        """How many processor threads the calling thread's network calls may use from now on."""

    @abstractmethod
    def finish_training(self) -> None:
        """Makes `evaluate` answer by what was learned since the last call."""

    @abstractmethod
    def save(self, path: Path, card: dict[str, Any]) -> dict[str, Any]:
        """Writes the weights that play and the card (own fields plus `card`'s); returns the card as written."""

    @abstractmethod
    def load(self, path: Path) -> dict[str, Any]:
        """Reads weights written by `save`; returns the card; raises CheckpointError."""

    @abstractmethod
    def save_training(self, path: Path) -> dict[str, Any]:
        """Writes all that learning needs to go on as if never stopped; returns the card as written."""

    @abstractmethod
    def load_training(self, path: Path) -> None:
        """Reads what `save_training` wrote; raises CheckpointError."""
