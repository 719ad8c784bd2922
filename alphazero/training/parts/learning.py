"""The second step of a generation: the candidate learns from the replay window."""

from __future__ import annotations

import threading
import time
from typing import Any

from alphazero.errors import Stopped, count_of
from alphazero.machine import return_free_memory
from alphazero.progress import Progress
from alphazero.training.parts.journal import Generation
from alphazero.training.parts.lineup import Lineup
from alphazero.training.parts.pace import Pace
from alphazero.training.parts.store import Store
from alphazero.training.replay_buffer import ReplayBuffer
from alphazero.training.worker_process import TrainingJob


class LearningStep:
    """Lets the learner learn, here and in the processes of further devices."""

    def __init__(self, lineup: Lineup, pace: Pace, window: ReplayBuffer, store: Store, stop: threading.Event):
        self._lineup, self._pace, self._window, self._store, self._stop = lineup, pace, window, store, stop

    def learn(self, generation: Generation, num_new: int) -> None:
        """Draws each of the `num_new` samples as often as configured; raises TrainingError, or Stopped."""
        generation.enter(f"learning from {count_of(num_new, 'new position')}")
        generation.figures |= self._learn(generation.number, num_new)
        return_free_memory()  # of the training set

    def _learn(self, number: int, num_new: int) -> dict[str, Any]:
        begin, plan, learner = time.monotonic(), self._lineup.plan, self._lineup.learner
        training_set = self._window.training_set()
        return_free_memory()  # merging copied the whole window
        batch_size = min(plan.config.learner.batch_size, len(training_set))  # as in `TrainingSet.draws`
        num_updates, progress_of_run = learner.num_updates(num_new, batch_size), self._pace.progress
        job = TrainingJob(
            self._store.learner_file(self._pace.generation), self._store.replay_files, num_updates, number,
            progress_of_run,
        )  # fmt: skip
        with Progress(f"generation {number}: learning") as progress:
            done = 0

            def show(losses: dict[str, float]) -> None:
                nonlocal done
                if self._stop.is_set():
                    raise Stopped
                done += 1
                progress.show(
                    done / num_updates, ", ".join(f"{name.replace('_', ' ')} {x:.3f}" for name, x in losses.items())
                )

            losses = self._lineup.workers.learn(
                learner.trainer, job,
                lambda: learner.learn(training_set, num_updates, number, progress_of_run, show),
            )  # fmt: skip
        return {name: round(loss, 5) for name, loss in losses.items()} | {
            "updates": num_updates,
            "sample_reuse": round(num_updates * batch_size / num_new, 3),
            "draws_per_position": round(num_updates * batch_size / len(training_set), 3),
            "window_generations": len(self._window.generations),
            "window_positions": len(training_set),
            "learning_rate": learner.learning_rate(progress_of_run, plan.config.learner.warmup_updates),
            "learning_seconds": round(time.monotonic() - begin, 3),
        }
