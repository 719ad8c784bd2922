"""From samples to a better network."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import numpy as np

from alphazero.errors import TrainingError
from alphazero.invocation import option
from alphazero.nets.neural_net import NeuralNet
from alphazero.training.config import LearnerConfig
from alphazero.training.replay_buffer import TrainingSet, batches_on

logger = logging.getLogger(__name__)

FALLS_FROM = 0.7
"""Share of a run after which the learning rate falls linearly; until then it is constant."""

READ_EVERY = 32
"""Updates after which the losses are read from a GPU, which waits for it."""


class Learner:
    """Updates a network on the replay window; keeps nothing between generations that the network does not keep."""

    def __init__(self, net: NeuralNet, config: LearnerConfig, seed: int, threads: int = 1):
        self.net, self.config, self.seed, self._threads = net, config, seed, threads
        self.begin()

    def begin(self) -> None:
        """Makes the `trainer` anew, from the weights that the network has now."""
        config = self.config
        self.trainer = self.net.trainer(
            weight_decay=config.weight_decay, max_gradient_norm=config.max_gradient_norm, ema_decay=config.ema_decay,
            threads=self._threads,
        )  # fmt: skip

    def num_updates(self, num_new_samples: int, batch_size: int) -> int:
        """Updates of `batch_size` samples for so many new ones: `sample_reuse` draws for each."""
        return max(1, math.ceil(num_new_samples * self.config.sample_reuse / batch_size))

    def learning_rate(self, progress: float, update: int) -> float:
        """At `progress` (0 to 1) through the run, `update` updates after its start."""
        config = self.config
        rate = np.interp(progress, (FALLS_FROM, 1.0), (config.learning_rate, config.final_learning_rate))
        return float(rate) * min(1.0, (update + 1) / (config.warmup_updates + 1))

    def learn(
        self,
        training_set: TrainingSet,
        num_updates: int,
        generation: int,
        progress: float,
        on_update: Callable[[dict[str, float]], None] = lambda losses: None,
    ) -> dict[str, float]:
        """Updates the network; returns the mean losses. Raises TrainingError when they stop being finite."""
        rng = np.random.Generator(np.random.Philox(key=(self.seed << 32) + generation))
        draws = training_set.draws(self.config.batch_size, num_updates, rng)
        tally, unread = Tally(generation), []
        for update, batch in enumerate(batches_on(self.trainer.device, training_set, draws, self._threads)):
            warming_up = update if generation == 1 else self.config.warmup_updates
            unread.append(self.trainer.train_step(batch, self.learning_rate(progress, warming_up)))
            if self.trainer.device == "cpu" or len(unread) == READ_EVERY or update == num_updates - 1:
                for losses in unread:
                    tally.add({name: float(loss) for name, loss in losses.items()})
                unread.clear()
            on_update(tally.finite[-1] if tally.finite else {})
        self.trainer.finish()
        return tally.means()


class Tally:
    """The losses of a generation; raises TrainingError when they stop being finite."""

    def __init__(self, generation: int):
        self.finite: list[dict[str, float]] = []
        """The losses of each batch that gave finite ones."""
        self._generation, self._skipped, self._in_a_row = generation, 0, 0

    def add(self, losses: dict[str, float]) -> None:
        """Counts the losses of the next batch."""
        if missing := {"policy_loss", "value_loss"} - losses.keys():
            raise TrainingError(
                "train_step of the network's trainer must return policy_loss and value_loss, "
                f"and {min(missing)} is missing"
            )
        if all(math.isfinite(loss) for loss in losses.values()):
            self.finite.append(losses)
            self._in_a_row = 0
            return
        self._skipped, self._in_a_row = self._skipped + 1, self._in_a_row + 1
        if self._in_a_row == 3:
            raise TrainingError(self._diagnosis(f"three batches in a row gave no finite loss ({losses})"))

    def _diagnosis(self, fault: str) -> str:
        if self._generation == 1 and not self.finite:
            return (
                f"{fault} before anything was learned: the reason is in the network, whose values must lie in [-1, 1], "
                "or in the value targets"
            )
        return (
            f"{fault} in generation {self._generation}: lower {option('learner.learning_rate')} and go on with "
            f"{option('resume', True)}; the generations before are safe"
        )

    def means(self) -> dict[str, float]:
        """The mean losses of the batches that gave finite ones."""
        if not self.finite:
            raise TrainingError(self._diagnosis("no batch gave a finite loss"))
        if self._skipped:
            total = len(self.finite) + self._skipped
            logger.warning("%d of %d batches gave no finite loss and were skipped", self._skipped, total)
        return {name: float(np.mean([each.get(name, 0.0) for each in self.finite])) for name in self.finite[-1]}
