"""The workers of a run: threads beside the coach, and processes for slow rules and for further devices."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from alphazero.errors import count_of
from alphazero.nets.devices import describe_inference
from alphazero.nets.neural_net import CudaEvaluator, NeuralNet, Trainer
from alphazero.search.evaluator import Evaluator
from alphazero.search.placement import as_many_as_fit, make_evaluators, runs_on_cuda
from alphazero.training.plan import Assignment, Workers, cannot_be_imported
from alphazero.training.selfplay import SelfPlay, SelfPlayCounts
from alphazero.training.selfplay.calibration import bytes_of_tree, choose_slots, rate_on_device, rate_on_processor
from alphazero.training.worker_process import SECONDS_TO_LEAVE, TrainingJob, WorkerProcess, end_all

logger = logging.getLogger(__name__)

FEW = 4
"""So many threads always share a process: a process takes seconds to start, and half a gigabyte."""
SECONDS_UNDER_LOCK = 60e-6
"""Time of a step of self-play for which a thread holds Python's lock, or waits for it to wake up."""


class LocalWorkers(Workers):
    """Threads and processes on this machine; and the processes that learn on further devices."""

    def __init__(self, assignment: Assignment, net: NeuralNet):
        """`net` plays on the first device."""
        plan, kernels = assignment.plan, assignment.kernels
        self._assignment, self._plan, self._kernels, self._net = assignment, plan, kernels, net
        self._on_gpu = runs_on_cuda(kernels, net)
        evaluators = make_evaluators(kernels, net, plan.threads_each, plan.config.cache_size)
        games = plan.config.self_play.games_per_generation
        evaluators = evaluators[: max(1, games // len(plan.devices))]  # others would never get a game
        self._each = len(evaluators)
        self._total = self._each * len(plan.devices)
        # before the trees take the memory
        rate, slots = as_many_as_fit(lambda most: self._rate(evaluators[0], most), self._choose_slots(evaluators[0]))
        self.network_rate = len(plan.devices) * rate
        self.all = []
        beside = evaluators[: self._number_of_threads(slots)]
        if beside:
            threads, slots = as_many_as_fit(lambda most: self._make_threads(beside, most), slots)
            self.all += threads
        self.num_slots = slots
        if self._total > len(self.all):
            plan.check_parts()
        self._processes = [self._start_process(i) for i in range(len(self.all), self._total)]
        self.learners = self._processes[self._each - len(self.all) :: self._each]
        """The first process of every further device, which learns beside this one."""
        self._meeting: contextlib.ExitStack | None = None
        """As long as those who learn are connected: ends that, and removes the folder in which they have met."""
        self.all += self._processes

    def get_ready(self) -> None:
        with ThreadPoolExecutor(max(1, len(self._processes))) as pool:
            raise_first([pool.submit(process.get_ready) for process in self._processes])

    def describe(self) -> str:
        devices, trees = ", ".join(self._plan.devices), "the processor"
        processes = len(self._processes)
        if self._on_gpu:
            each = self.num_slots * bytes_of_tree(self._kernels, self._plan.config.search)
            trees = f"the GPU ({self._each * each / 1e9:.1f} GB)"
        library = describe_inference(self._assignment.inference)
        return (
            f"on {devices}: trees on {trees}, {self._total} x {count_of(self.num_slots, 'game')} at once"
            f"{f', {processes} of them in processes of their own' * (processes > 0)}; "
            f"the network alone evaluates {self.network_rate:,.0f} positions/s by {library}"
        )

    @property
    def share_of_match(self) -> float:
        plan = self._plan
        if not plan.loaded.game.compiled:
            return 1 / len(self.all)
        # it runs on all threads, but on the first GPU alone
        return 1 / len(plan.devices) if plan.device_kinds[0] == "cuda" else 1.0

    def share_of_network(self, played: SelfPlayCounts, seconds: float) -> float:
        # on a GPU nothing is cached
        return (played.simulations if self._on_gpu else played.evaluations) / seconds / self.network_rate

    def close(self) -> None:
        try:
            self._leave()
        finally:
            end_all(self._processes)
            self._processes.clear()
            self.all.clear()  # frees the trees

    def _number_of_threads(self, num_slots: int) -> int:
        """The workers of this process, which take turns at Python's lock; all others get processes of their own."""
        plan = self._plan
        if self._total == 1 or plan.loaded.load_again is None:
            if self._total > 1 and not plan.loaded.game.compiled:
                logger.warning(
                    "%s, so all games are played in this process, which is slower: put the game into a module (a .py "
                    "file)", cannot_be_imported(plan.loaded),
                )  # fmt: skip
            return self._each
        if not plan.loaded.game.compiled:  # its rules hold the lock all the time
            return 0
        if self._on_gpu or self._each <= FEW:
            return self._each
        # about so many threads each keep 80% of a lonely one's speed (docs/results/speed.md has the model)
        step = num_slots * self._total / self.network_rate
        return min(self._each, 1 + int(step / SECONDS_UNDER_LOCK))

    def _choose_slots(self, evaluate: Evaluator | CudaEvaluator) -> int:
        plan, self_play = self._plan, self._plan.config.self_play
        most = max(1, self_play.games_per_generation // self._total)
        if isinstance(evaluate, CudaEvaluator) and not plan.deterministic:
            slots = self._assignment.slots
            return slots or choose_slots(self._kernels, evaluate, plan.config.search, self._each, most)
        return min(self_play.num_slots, most)

    def _rate(self, evaluate: Evaluator | CudaEvaluator, num_slots: int) -> float:
        """Positions per second that the network of one device evaluates by itself."""
        if isinstance(evaluate, CudaEvaluator):
            return rate_on_device(self._kernels, evaluate, num_slots)
        return rate_on_processor(self._kernels, self._net, self._plan.threads_each)

    def _make_threads(self, evaluators: Sequence[Evaluator | CudaEvaluator], num_slots: int) -> list[SelfPlay]:
        plan, config = self._plan, self._plan.config
        return [
            SelfPlay(
                self._kernels, config.self_play, config.search, evaluate, num_slots, plan.seed, i, self._total,
                plan.loaded.value_targets,
            )
            for i, evaluate in enumerate(evaluators)
        ]  # fmt: skip

    def _start_process(self, number: int) -> WorkerProcess:
        plan, run = self._plan, self._assignment
        settings = plan.worker_settings(
            run.sizes, device=plan.devices[number // self._each], inference=run.inference,
            deterministic=plan.deterministic, threads=plan.threads_each, num_slots=self.num_slots, first_game=number,
            game_stride=self._total, learns=number >= self._each and number % self._each == 0,
        )  # fmt: skip
        return WorkerProcess(settings, lambda: run.playing()[1], run.stop)

    # --- learning on several devices ---

    def learn(self, trainer: Trainer, job: TrainingJob, learn_here: Callable[[], Any]) -> Any:
        if not self.learners:
            return learn_here()
        pool = ThreadPoolExecutor(len(self.learners))
        if self._meeting is None:
            self._meet(trainer, pool)
        parts = [pool.submit(child.ask, "learn", job) for child in self.learners]
        for part in parts:
            part.add_done_callback(self._end_if_failed)
        try:
            return in_company(parts, learn_here)
        finally:
            pool.shutdown(wait=False)

    def _end_if_failed(self, part: Future[None]) -> None:
        """Frees those who would wait for a process that has failed; on the processor its closed connections do."""
        if part.exception() is not None and self._plan.devices[0] != "cpu":
            self._leave()

    def _leave(self) -> None:
        """Ends the connections between those who learn together; a second call does nothing."""
        meeting, self._meeting = self._meeting, None
        if meeting:
            meeting.close()

    def _meet(self, trainer: Trainer, pool: ThreadPoolExecutor) -> None:
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
            size, meeting = 1 + len(self.learners), Path(folder) / "meeting"
            parts = [pool.submit(child.ask, "join", meeting, i, size) for i, child in enumerate(self.learners, start=1)]
            in_company(parts, lambda: stack.callback(trainer.join(meeting, 0, size)))
            self._meeting = stack.pop_all()


def in_company(parts: Sequence[Future[None]], do_ours: Callable[[], Any]) -> Any:
    """The result of `do_ours` once the `parts` of others are done, too; an error of theirs says why ours has failed."""
    try:
        found = do_ours()
    except RuntimeError:  # torch says only that somebody has left; or the fault is ours
        over, _ = wait(parts, timeout=SECONDS_TO_LEAVE)
        raise_first(list(over))
        raise
    raise_first(parts)
    return found


def raise_first(parts: Sequence[Future[None]]) -> None:
    """Waits for all of them; raises the first error."""
    for part in parts:
        part.result()
