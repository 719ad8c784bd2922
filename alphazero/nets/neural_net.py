"""The interfaces of a network: `NeuralNet` plays, `Trainer` learns. They can be written with any library.

The smallest network writes `evaluate`, `save` and `load`; one that can learn also gives a `trainer`.
"""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsFloat

import numpy as np

from alphazero.errors import CheckpointError, InvalidSetting, NetError, shorten
from alphazero.game import Game
from alphazero.invocation import option
from alphazero.settings import check_function
from alphazero.storage.checkpoint import read_card


@dataclass(frozen=True)
class Batch:
    """n samples to learn from: numpy arrays, or torch tensors on the trainer's GPU.

    >>> import alphazero as az, numpy as np
    >>> masks = np.ones((2, 9), bool)
    >>> batch = az.Batch(np.zeros((2, 2, 3, 3), np.float32), masks, (masks / 9).astype(np.float32), np.float32([1, -1]))
    """

    observations: Any
    """`float32[n, P, H, W]`."""
    legal_masks: Any
    """`bool[n, A]`: true = allowed."""
    policy_targets: Any
    """`float32[n, A]`: sums to 1, 0 on illegal actions."""
    value_targets: Any
    """`float32[n]` in [-1, 1], for the player to move; in a game for more than two `float32[n, V]`."""


class NeuralNet(ABC):
    """A policy and value network for one game, as players use it.

    >>> import alphazero as az, numpy as np
    >>> class Uniform(az.NeuralNet):
    ...     def evaluate(self, observations, legal_masks):
    ...         priors = legal_masks / legal_masks.sum(axis=1, keepdims=True)
    ...         return priors.astype(np.float32), np.zeros(len(priors), np.float32)
    ...     def save(self, path, card):
    ...         return az.save_checkpoint(path, {"weights": np.zeros(1, np.float32)}, {**self.card, **card})
    ...     def load(self, path):
    ...         arrays, card = az.load_checkpoint(path)
    ...         return card
    >>> position = az.load_game("tictactoe").position("a1 b2 a2 c3")
    >>> position.format(az.search(position, Uniform(), simulations=50).best)
    'a3'
    """

    card: Mapping[str, Any] = {}
    """Facts for the checkpoint's card, as `parameters` and `flops_per_position`. A run adds `game` and `net`."""

    @abstractmethod
    def evaluate(self, observations: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Priors `float32[m, A]` and values `float32[m]` of `float32[m, P, H, W]` under `bool[m, A]`.

        Priors sum to 1 and are 0 on illegal actions; values are in [-1, 1], for the player to move. The arrays given
        may be read-only. Must be safe to call from several threads at once.
        """

    @abstractmethod
    def save(self, path: Path, card: Mapping[str, Any]) -> dict[str, Any]:
        """Writes the weights to `path`, a `.safetensors` file, and the card to the `.json` file beside it.

        Use `alphazero.storage.checkpoint.save_checkpoint(path, arrays, {**self.card, **card})`, which does both, and
        return the card that it returns. `card` must be kept: it names the game and the settings of `make_net`.
        """

    @abstractmethod
    def load(self, path: Path) -> dict[str, Any]:
        """Reads weights that `save` wrote, by `load_checkpoint`; returns the card. Raises CheckpointError."""

    def load_weights(self, path: Path, card: dict[str, Any]) -> dict[str, Any]:
        """As `load`, where the card has just been read; by default it is read again."""
        return self.load(path)

    def trainer(
        self, *, weight_decay: float = 1e-4, max_gradient_norm: float = 1.0, ema_decay: float = 0.99, threads: int = 1
    ) -> Trainer:
        """A trainer that starts from the current weights, on the current device.

        `ema_decay` is for the average of the learned weights that plays; `threads` are the trainer's own. A trainer may
        ignore any of them.
        """
        raise InvalidSetting(f"{type(self).__name__} cannot learn: give it a method `trainer` that returns a Trainer")

    def grow_from(self, smaller: NeuralNet) -> bool:
        """Takes over the weights of a smaller net and answers alike from now on; returns whether it could.

        By default it cannot: nothing happens, and what it knows must be learned again.
        """
        return False

    def use_device(self, name: str) -> None:  # noqa: B027
        """Moves the network to `cpu`, `cuda` or `cuda:1`. By default it stays on the processor."""

    def use_inference(self, name: str) -> str:
        """Chooses the library that answers on the processor, one of `devices.INFERENCES`; returns the one chosen.

        Call it after `use_device`. By default nothing happens, and it is the network's own.
        """
        return "its own library"

    def use_threads(self, count: int) -> int:
        """Sets the processor threads for this thread's network calls, if it can; returns the number before."""
        return count

    def use_determinism(self, wanted: bool) -> bool:
        """Makes all networks of this process add in a fixed order, which is slower on a GPU. Call before `use_device`.

        Returns whether they did before. By default nothing happens.
        """
        return False

    def cuda_evaluator(self) -> CudaEvaluator | None:
        """A new evaluator for one search on the GPU; None, the default, if the network is not on a GPU."""
        return None


class Trainer(ABC):
    """Teaches one network. The network plays by what was learned once `finish` is called.

    >>> import alphazero as az, numpy as np
    >>> game = az.load_game("connect4")
    >>> trainer = az.load_net("best", game, device="cpu").trainer()
    >>> planes, masks = np.zeros((2, *game.observation_shape), np.float32), np.ones((2, 7), bool)
    >>> batch = az.Batch(planes, masks, (masks / 7).astype(np.float32), np.float32([1, -1]))
    >>> losses = trainer.train_step(batch, learning_rate=0.001)
    >>> sorted(losses)
    ['policy_loss', 'value_loss']
    >>> trainer.finish()
    """

    device: str = "cpu"
    """The torch device for batches; `cpu` stands for numpy arrays."""

    @abstractmethod
    def train_step(self, batch: Batch, learning_rate: float) -> Mapping[str, SupportsFloat]:
        """Makes one optimizer step; returns `policy_loss` and `value_loss`: nan if one was not finite.

        A batch with a loss that is not finite changes nothing on the processor, and costs a step of decay and momentum
        on a GPU. There, `float(loss)` waits until the step is done, and nothing else waits.
        """

    @abstractmethod
    def save(self, path: Path) -> dict[str, Any]:
        """Writes all that learning needs to go on as if never stopped, as `NeuralNet.save` does; returns the card."""

    @abstractmethod
    def load(self, path: Path) -> None:
        """Reads what `save` wrote, and calls `finish`; raises CheckpointError."""

    def finish(self) -> None:  # noqa: B027
        """Lets the network play by what was learned. By default nothing happens: the network itself was changed."""

    def join(self, meeting: Path, rank: int, size: int) -> Callable[[], None]:
        """Makes every later `train_step` one step of `size` processes, each with its part of the same batch.

        The processes meet by the file `meeting`, which nobody else knows; this one is number `rank`. Waits for all of
        them. All must have the same weights and make the same steps. Returns a function that ends it.
        """
        raise InvalidSetting(f"this network cannot learn on several devices: choose one by {option('device')}")


_lock = threading.Lock()
_before: dict[int, int] = {}
"""For each thread inside `on_one_thread` the number of threads that it had before."""


@contextlib.contextmanager
def on_one_thread(net: object) -> Iterator[None]:
    """Inside, a network of the calling thread computes on one processor thread; for others nothing happens.

    More threads are slower for one position at a time, and much slower if they wait for other programs.
    """
    me = threading.get_ident()
    if not isinstance(net, NeuralNet) or me in _before:
        yield
        return
    with _lock:
        found = net.use_threads(1)
        # torch has given a new thread the number that was set last: the 1 of another one that is inside
        _before[me] = next(iter(_before.values()), 1) if found == 1 else found
    try:
        yield
    finally:
        with _lock:
            net.use_threads(_before.pop(me))


def check_net(net: NeuralNet, game: Game) -> None:
    """Raises NetError if the card of the net says that it is for another game; InvalidSetting for another interface."""
    check_function(f"{type(net).__name__}.evaluate", net.evaluate, "observations", "legal_masks")
    if (trained := net.card.get("game", game.name)) != game.name:
        raise NetError(f"this is a net for {shorten(trained)}, not for {game.name}")


def check_apart(learning: NeuralNet, playing: NeuralNet) -> None:
    """Raises NetError if both are one net, or share weights in memory: a gate would compare a net with itself."""
    made: list[Any] = [getattr(net, "module", None) for net in (learning, playing)]
    mine, others = ({id(x) for x in each.parameters()} if hasattr(each, "parameters") else set() for each in made)
    if learning is playing or mine & others:
        raise NetError(
            f"the function that makes nets gave the same {type(made[0] or learning).__name__} twice: let it make a new "
            "one at each call, as one learns while the other plays"
        )


def check_saved(saver: NeuralNet | Trainer, path: Path, card: Mapping[str, Any]) -> None:
    """Raises NetError unless `saver.save` has written a checkpoint at `path` whose card has the entries of `card`."""
    try:
        if missing := sorted(card.keys() - read_card(path).keys()):
            raise CheckpointError(f"the card has no {', '.join(missing)}")
    except CheckpointError as error:
        raise NetError(
            f"{type(saver).__name__}.save must write {path} and beside it all of the card that it gets ({error}): let "
            "it call alphazero.storage.checkpoint.save_checkpoint(path, arrays, card)"
        ) from error


class CudaEvaluator(ABC):
    """Evaluates a search's positions on the GPU, from its memory into its memory."""

    net: NeuralNet
    """The network itself, for trees on the processor."""
    sees_wins = False
    """True: in a game for two, the search replaces the evaluations of positions that the mover wins at once, as
    `Evaluator` does."""

    @abstractmethod
    def __call__(self, planes: Any, legal_masks: Any, priors: Any, values: Any) -> None:
        """Evaluates all rows of `planes float32[n, P, H, W]`, `legal_masks bool[n, A]`, all on the device.

        Writes `priors float32[n, A]` (weights of any sum) and `values float32[n]`, for the player to move. A caller
        passes the same arrays at every call, on a stream that may be captured as a graph: nothing may wait for the
        device, and new weights must take the place of the old ones in memory.
        """
