"""Who plays the games of a run: threads beside the coach, and processes for slow rules and for further devices."""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any

from alphazero.game.kernels import Kernels
from alphazero.game.spec import LoadedGame
from alphazero.nets.neural_net import CudaEvaluator, NeuralNet, Trainer
from alphazero.nets.resnet import NetConfig
from alphazero.search.cuda_search import as_many_as_fit, make_evaluators, runs_on_device
from alphazero.search.evaluator import Evaluator
from alphazero.training.calibration import bytes_of_search, choose_slots, rate_on_device, rate_on_processor
from alphazero.training.config import RunConfig
from alphazero.training.selfplay import SelfPlay
from alphazero.training.worker_process import SECONDS_TO_LEAVE, TrainingJob, WorkerProcess, WorkerSettings

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkerPlan:
    """What decides who plays what."""

    loaded: LoadedGame
    config: RunConfig
    net: NetConfig
    """Sizes of the network that plays; `config.net` has those of the one that learns."""
    devices: Sequence[str]
    """The first is the coach's own."""
    threads: int
    """Processor threads of all together."""
    seed: int
    slots: int | None
    """Games at once for each worker that a run had before, which it goes on with where they were chosen."""
    deterministic: bool
    """How many games a GPU plays at once must not depend on how fast it is, nor sums on the order of their parts."""
    weights: Callable[[], Path]
    """The checkpoint that is to play."""
    stop: threading.Event

    @property
    def threads_each(self) -> int:
        """For each device."""
        return max(1, self.threads // len(self.devices))


@dataclass(frozen=True)
class SelfPlayCounts:
    """Counts of self-play."""

    games: int
    positions: int
    simulations: int
    requests: int
    """What searches on the processor asked for."""
    evaluations: int
    """What of that the networks were asked, since no answer was kept."""

    def __sub__(self, other: SelfPlayCounts) -> SelfPlayCounts:
        return SelfPlayCounts(*(now - then for now, then in zip(astuple(self), astuple(other), strict=True)))


class Workers:
    """All who play, in an order that numbers their games; and those of them who learn on further devices."""

    def __init__(self, setup: WorkerPlan, kernels: Kernels, net: NeuralNet):
        """`net` is the one that plays, on the first device."""
        self._plan, self._kernels, self._net = setup, kernels, net
        self._on_gpu = runs_on_device(kernels, net)
        self._leave: Callable[[], None] | None = None
        self._meeting: tempfile.TemporaryDirectory[str] | None = None
        """Where the processes that learn together meet; needed as long as they do."""
        evaluators = make_evaluators(kernels, net, setup.threads_each, setup.config.cache_size)
        self._each = len(evaluators)
        self._total = self._each * len(setup.devices)
        # before the trees take the memory
        rate, slots = as_many_as_fit(
            lambda most: self._rate_of_network(evaluators[0], most), self._choose_slots(evaluators[0])
        )
        self._network_rate = len(setup.devices) * rate
        # rules that run as Python would take turns on threads
        beside = setup.loaded.game.compiled or self._total == 1 or setup.loaded.load_again is None
        self.all: list[SelfPlay | WorkerProcess] = []
        if beside:
            threads, slots = as_many_as_fit(lambda most: self._make_threads(evaluators, most), slots)
            self.all += threads
        self.num_slots = slots
        self.all += [self._start_process(i) for i in range(len(self.all), self._total)]
        self.learners = [each for each in self.all[self._each :: self._each] if isinstance(each, WorkerProcess)]
        """The first process of every further device."""
        self.evaluators: list[Evaluator | WorkerProcess] = [
            each for each in (*(evaluators if beside else ()), *self.all) if isinstance(each, Evaluator | WorkerProcess)
        ]
        """Who counts what the networks are asked."""

    def describe(self) -> str:
        """Where the trees are, how many games are played at once, and what the networks can answer."""
        devices = ", ".join(self._plan.devices)
        trees = "the processor"
        if self._on_gpu:
            trees = f"the GPU ({self._each * self._bytes_of_trees(self.num_slots) / 1e9:.1f} GB)"
        return (
            f"on {devices}: trees on {trees}, {self._total} x {self.num_slots:,} games at once; "
            f"the network alone answers {self._network_rate:,.0f} positions/s"
        )

    def played(self) -> SelfPlayCounts:
        """All games so far."""
        return SelfPlayCounts(
            *(
                sum(getattr(each, name) for each in group)
                for group, names in (
                    (self.all, ("num_games", "num_positions", "num_simulations")),
                    (self.evaluators, ("num_requests", "num_evaluations")),
                )
                for name in names
            )
        )

    def forget(self) -> None:
        """Answers of the networks that were kept."""
        for evaluator in self.evaluators:
            evaluator.clear()

    def share_of_network(self, played: SelfPlayCounts, seconds: float) -> float:
        """Of what the networks can answer in that time, how much they were asked; on a GPU nothing is kept."""
        return (played.simulations if self._on_gpu else played.evaluations) / seconds / self._network_rate

    def close(self) -> None:
        """Ends the processes, if there are any, and gives back the trees; a second time does no harm."""
        leave, self._leave = self._leave, None
        try:
            if leave:
                leave()
        finally:
            for worker in self.learners:  # all at once: each may have to be waited for
                worker.ask_to_end()
            for each in self.all:
                each.close()
            if self._meeting:
                self._meeting.cleanup()
            self.all.clear()
            self.evaluators.clear()

    # --- learning on further devices ---------------------------------------------------------------------------------

    def learn(self, trainer: Trainer, job: TrainingJob, learn_here: Callable[[], Any]) -> Any:
        """`learn_here()` while the processes of the further devices do their part of the same; returns what it does."""
        if not self.learners:
            return learn_here()
        pool = ThreadPoolExecutor(len(self.learners))
        if self._leave is None:
            self._leave = self._meet(trainer, pool)
        parts = [pool.submit(learner.learn, job) for learner in self.learners]
        for part in parts:
            part.add_done_callback(self._end_if_failed)
        try:
            found = learn_here()
        except RuntimeError:  # what torch raises if another has left, who knows better why; or the fault is ours
            over, _ = wait(parts, timeout=SECONDS_TO_LEAVE)
            _raise_first(list(over))
            raise
        finally:
            pool.shutdown(wait=False)
        _raise_first(parts)
        return found

    def _end_if_failed(self, part: Future[None]) -> None:
        """Nobody waits for a process that has failed; on the processor its closed connections see to that."""
        if part.exception() is not None and self._leave and self._plan.devices[0] != "cpu":
            leave, self._leave = self._leave, None
            leave()

    def _meet(self, trainer: Trainer, pool: ThreadPoolExecutor) -> Callable[[], None]:
        self._meeting = tempfile.TemporaryDirectory()
        size, meeting = 1 + len(self.learners), Path(self._meeting.name) / "meeting"
        parts = [pool.submit(each.join, meeting, i, size) for i, each in enumerate(self.learners, start=1)]
        leave = trainer.join(meeting, 0, size)
        _raise_first(parts)
        return leave

    # --- making them -------------------------------------------------------------------------------------------------

    def _choose_slots(self, evaluate: Evaluator | CudaEvaluator) -> int:
        setup, self_play = self._plan, self._plan.config.self_play
        most = max(1, self_play.games_per_generation // self._total)
        if isinstance(evaluate, CudaEvaluator) and not setup.deterministic:
            if setup.slots:
                return setup.slots
            return choose_slots(self._kernels, evaluate, setup.config.search, self._each, most)
        return min(self_play.num_slots, most)

    def _rate_of_network(self, evaluate: Evaluator | CudaEvaluator, num_slots: int) -> float:
        """Positions a second that the network of one device answers, alone."""
        if isinstance(evaluate, CudaEvaluator):
            return rate_on_device(self._kernels, evaluate, num_slots)
        return rate_on_processor(self._kernels, self._net, self._plan.threads_each)

    def _bytes_of_trees(self, num_slots: int) -> int:
        return bytes_of_search(self._kernels, self._plan.config.search, num_slots)

    def _make_threads(self, evaluators: Sequence[Evaluator | CudaEvaluator], num_slots: int) -> list[SelfPlay]:
        setup = self._plan
        return [
            SelfPlay(
                self._kernels, setup.config.self_play, setup.config.search, evaluate, num_slots, setup.seed, i,
                self._total,
            )
            for i, evaluate in enumerate(evaluators)
        ]  # fmt: skip

    def _start_process(self, number: int) -> WorkerProcess:
        setup, config = self._plan, self._plan.config
        assert setup.loaded.load_again is not None
        work = WorkerSettings(
            load=setup.loaded.load_again, net=asdict(config.net), playing_net=asdict(setup.net),
            config=config.self_play, search=config.search, replay=config.replay, learner=config.learner,
            device=setup.devices[number // self._each], deterministic=setup.deterministic, threads=setup.threads_each,
            cache_size=config.cache_size, num_slots=self.num_slots, seed=setup.seed, first_game=number,
            game_stride=self._total,
        )  # fmt: skip
        return WorkerProcess(work, setup.weights, setup.stop)


def _raise_first(parts: Sequence[Future[None]]) -> None:
    """Waits for all; raises the first mistake of theirs."""
    for part in parts:
        part.result()
