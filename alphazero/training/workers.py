"""The workers of a run: threads beside the coach, and processes for slow rules and for further devices."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from alphazero.cluster.connection import Cluster
from alphazero.errors import InvalidSetting
from alphazero.game.kernels import Kernels
from alphazero.game.spec import LoadedGame
from alphazero.invocation import option
from alphazero.nets.devices import describe_inference
from alphazero.nets.neural_net import CudaEvaluator, NeuralNet, Trainer
from alphazero.search.evaluator import Evaluator
from alphazero.search.placement import as_many_as_fit, make_evaluators, runs_on_cuda
from alphazero.settings import check_ranges
from alphazero.training.calibration import bytes_of_search, choose_slots, rate_on_device, rate_on_processor
from alphazero.training.config import RunConfig, settings_by_name
from alphazero.training.selfplay import SelfPlay, SelfPlayCounts, Worker
from alphazero.training.selfplay.threads import share_under_lock, threads_that_pay
from alphazero.training.worker_process import (
    SECONDS_TO_LEAVE,
    ChildProcess,
    LearnerProcess,
    TrainingJob,
    WorkerProcess,
    WorkerSettings,
    check_sendable,
    end_all,
)

logger = logging.getLogger(__name__)

PARTS = {"make_net": "net", "value_targets": "value target"}
"""The parts of a game that a run may replace, and words for them."""
FEW = 4
"""So many threads always share a process: a process takes seconds to start, and half a gigabyte."""


@dataclass(frozen=True)
class RunPlan:
    """The game, the settings and the place of a run."""

    loaded: LoadedGame
    config: RunConfig
    devices: Sequence[str]
    """Where the networks are; the first one is the coach's own."""
    threads: int
    """Processor threads of all devices together."""
    seed: int
    deterministic: bool
    """Nothing depends on the clock, as the number of games at once on a GPU does, nor on the order of sums."""
    cluster: Cluster | None = None
    """Plays the games, in place of threads and processes on this machine."""

    def __post_init__(self) -> None:
        check_ranges(self, threads=(1, 1024), seed=(0, (1 << 31) - 1))
        if self.config.learner.batch_size < 2 * len(self.devices):
            raise InvalidSetting(
                f"{option('learner.batch_size')} must be {2 * len(self.devices)} or more, since "
                f"{len(self.devices)} devices share a batch"
            )
        if self.deterministic:
            check_determinism(self.config.minutes, len(self.devices))
        if self.cluster is not None:
            self._check_cluster()
        if len(self.devices) > 1 and self.loaded.load_again is None:
            raise InvalidSetting(
                f"{_cannot_be_imported(self.loaded)}, and each further device needs a process: choose one device, or "
                "put the game into a module (a .py file)"
            )
        if len(self.devices) > 1 or self.cluster is not None:
            self.check_parts()

    def _check_cluster(self) -> None:
        cluster = option("cluster")
        if self.deterministic:
            raise InvalidSetting(
                f"{option('deterministic')} and {cluster} exclude each other: which games arrive first depends on the "
                "clock and the network"
            )
        if len(self.devices) > 1:
            raise InvalidSetting(f"with {cluster} the network learns on one device: choose it by {option('device')}")
        if self.loaded.load_again is None:
            raise InvalidSetting(
                f"{_cannot_be_imported(self.loaded)}, and {cluster} needs other processes: put the game into a module "
                "(a .py file)"
            )

    @property
    def replaced_parts(self) -> dict[str, Any]:
        """The parts that took the place of the game's own, as by `replace(loaded, make_net=...)`, by their names."""
        own, now = self.loaded.game.loaded, vars(self.loaded)
        return {name: now[name] for name in PARTS if own is not None and now[name] is not getattr(own, name)}

    @property
    def names_of_parts(self) -> dict[str, str]:
        """The names of the functions in `replaced_parts`, or of their types where they have none."""
        return {name: getattr(part, "__name__", type(part).__name__) for name, part in self.replaced_parts.items()}

    def check_parts(self) -> None:
        """Raises InvalidSetting unless a process can find the parts that are not the game's own."""
        for name, part in self.replaced_parts.items():
            check_sendable(part, PARTS[name])

    def worker_settings(self, playing_net: Any, **place: Any) -> WorkerSettings:
        """The settings of a process of this run; `place`: the fields that depend on where it is."""
        assert self.loaded.load_again is not None
        config = replace(self.config, net=self.config.net_settings)
        return WorkerSettings(
            load=self.loaded.load_again, parts=self.replaced_parts, config=config,
            playing_net=settings_by_name(playing_net), seed=self.seed, **place,
        )  # fmt: skip

    @property
    def threads_each(self) -> int:
        """Processor threads for each device."""
        return max(1, self.threads // len(self.devices))

    @property
    def device_kinds(self) -> list[str]:
        """`cpu` or `cuda` for each device: a run can go on with other GPUs, if they are as many."""
        return [device.partition(":")[0] for device in self.devices]


class Workers(Protocol):
    """All who play the games of a run: threads, processes, or the hosts of a cluster."""

    num_slots: int
    """Games that each plays at once."""
    keeps_games: bool
    """Games in progress go on in the next generation, and after a resume; else they are given up."""

    @property
    def all(self) -> Sequence[Worker]:
        """Each of them, in an order that numbers their games."""

    @property
    def cpu_seconds(self) -> float:
        """Processor time outside of this process."""

    @property
    def share_of_match(self) -> float:
        """The share of self-play's speed that a match in this process has."""

    def describe(self) -> str:
        """Where they are and how many games they play at once, as a phrase."""

    def place(self) -> None:
        """Lets hosts load their code while this process makes its networks."""

    def start(self) -> None:
        """Lets hosts begin to play while this process still gets ready."""

    def get_ready(self) -> None:
        """Waits until they could play, so that their start takes no time of the first generation."""

    def played(self) -> SelfPlayCounts:
        """Counts of all together."""

    def begin_counting(self) -> tuple[float, SelfPlayCounts]:
        """The time and the counts from which a generation's games count."""

    def share_of_network(self, played: SelfPlayCounts, seconds: float) -> float | None:
        """The share of the networks' capacity that self-play used in that time; None if it is not known."""

    def figures(self) -> dict[str, Any]:
        """Further figures of the generation's games."""

    def arrays(self) -> dict[str, dict[str, np.ndarray]]:
        """Arrays of the generation's games to be kept beside its samples, by the kind of their file."""

    def state(self) -> dict[str, Any]:
        """The entries of the manifest about them."""

    def committed(self) -> None:
        """The generation is on disk."""

    def learn(self, trainer: Trainer, job: TrainingJob, learn_here: Callable[[], Any]) -> Any:
        """Calls `learn_here`, and does its own part of the learning meanwhile; returns its result."""

    def forget(self) -> None:
        """Clears the caches of the networks' answers: from now on another net may play."""

    def close(self) -> None:
        """Ends them; a second call does nothing."""


class LocalWorkers:
    """Threads and processes on this machine; and the processes that learn on further devices."""

    keeps_games = True

    def __init__(
        self,
        plan: RunPlan,
        kernels: Kernels,
        net: NeuralNet,
        sizes: Any,
        inference: str,
        slots: int | None,
        weights: Callable[[], Path],
        stop: threading.Event,
    ):
        """`net`, of `sizes`, plays on the first device by the library `inference`; `weights()` is its checkpoint.

        `slots`: games at once for each worker of a run that goes on, where they were chosen by trying.
        """
        self._plan, self._kernels, self._net = plan, kernels, net
        self._sizes, self._slots, self._weights, self._stop = sizes, slots, weights, stop
        self._inference = inference
        self._on_gpu = runs_on_cuda(kernels, net)
        self._leave: Callable[[], None] | None = None
        self._meeting: tempfile.TemporaryDirectory[str] | None = None
        """The folder in which processes that learn together meet, as long as they do."""
        evaluators = make_evaluators(kernels, net, plan.threads_each, plan.config.cache_size)
        games = plan.config.self_play.games_per_generation
        evaluators = evaluators[: max(1, games // len(plan.devices))]  # others would never get a game
        self._each = len(evaluators)
        self._total = self._each * len(plan.devices)
        # before the trees take the memory
        rate, slots = as_many_as_fit(
            lambda most: self._rate_of_network(evaluators[0], most), self._choose_slots(evaluators[0])
        )
        self._network_rate = len(plan.devices) * rate
        self.all: list[Worker] = []
        beside = evaluators[: self._number_of_threads(slots)]
        if beside:
            threads, slots = as_many_as_fit(lambda most: self._make_threads(beside, most), slots)
            self.all += threads
        self.num_slots = slots
        if self._total > len(self.all):
            plan.check_parts()
        children = [self._start_process(i) for i in range(len(self.all), self._total)]
        self.learners = [LearnerProcess(child) for child in children[self._each - len(self.all) :: self._each]]
        """The first process of every further device."""
        self.all += [WorkerProcess(child, slots, weights) for child in children]

    def place(self) -> None:
        """Does nothing: threads and processes are there already."""

    start = committed = place

    def get_ready(self) -> None:
        """Waits until the processes could play."""
        processes = [worker for worker in self.all if isinstance(worker, WorkerProcess)]
        with ThreadPoolExecutor(max(1, len(processes))) as pool:
            _raise_first([pool.submit(worker.get_ready) for worker in processes])

    def describe(self) -> str:
        """The place of the trees, the number of games at once and the speed of the networks, as a phrase."""
        devices = ", ".join(self._plan.devices)
        trees = "the processor"
        if self._on_gpu:
            trees = f"the GPU ({self._each * self._bytes_of_trees(self.num_slots) / 1e9:.1f} GB)"
        library = describe_inference(self._inference)
        return (
            f"on {devices}: trees on {trees}, {self._total} x {self.num_slots:,} games at once; "
            f"the network alone evaluates {self._network_rate:,.0f} positions/s by {library}"
        )

    def played(self) -> SelfPlayCounts:
        """Counts of all workers together."""
        return sum((worker.counts() for worker in self.all), SelfPlayCounts())

    @property
    def cpu_seconds(self) -> float:
        """Processor time of the workers outside of this process."""
        return sum(worker.cpu_seconds for worker in self.all)

    def forget(self) -> None:
        """Clears the caches of the networks' answers."""
        for worker in self.all:
            worker.forget()

    def begin_counting(self) -> tuple[float, SelfPlayCounts]:
        """The time and the counts from which a generation's games count: now."""
        return time.monotonic(), self.played()

    @property
    def share_of_match(self) -> float:
        """The share of self-play's speed that a match in this process has."""
        plan = self._plan
        if not plan.loaded.game.compiled:
            return 1 / len(self.all)
        # it runs on all threads, but on the first GPU alone
        return 1 / len(plan.devices) if plan.device_kinds[0] == "cuda" else 1.0

    def figures(self) -> dict[str, Any]:
        """None, as there are no further arrays."""
        return {}

    arrays = figures

    def state(self) -> dict[str, Any]:
        """As in Workers."""
        return {"slots": self.num_slots}

    def share_of_network(self, played: SelfPlayCounts, seconds: float) -> float:
        """The share of the networks' capacity in that time that self-play used; on a GPU nothing is cached."""
        return (played.simulations if self._on_gpu else played.evaluations) / seconds / self._network_rate

    def close(self) -> None:
        """Ends the processes, if there are any, and frees the trees; a second call does nothing."""
        leave, self._leave = self._leave, None
        try:
            if leave:
                leave()
        finally:
            end_all([worker.child for worker in self.all if isinstance(worker, WorkerProcess)])
            if self._meeting:
                self._meeting.cleanup()
            self.all.clear()

    # --- learning on further devices ---------------------------------------------------------------------------------

    def learn(self, trainer: Trainer, job: TrainingJob, learn_here: Callable[[], Any]) -> Any:
        """Calls `learn_here` while the processes of the further devices do their part; returns its result."""
        if not self.learners:
            return learn_here()
        pool = ThreadPoolExecutor(len(self.learners))
        if self._leave is None:
            self._leave = self._meet(trainer, pool)
        parts = [pool.submit(learner.learn, job) for learner in self.learners]
        for part in parts:
            part.add_done_callback(self._end_if_failed)
        try:
            with _their_reasons_first(parts):
                found = learn_here()
        finally:
            pool.shutdown(wait=False)
        _raise_first(parts)
        return found

    def _end_if_failed(self, part: Future[None]) -> None:
        """Frees those who would wait for a process that has failed; on the processor its closed connections do."""
        if part.exception() is not None and self._leave and self._plan.devices[0] != "cpu":
            leave, self._leave = self._leave, None
            leave()

    def _meet(self, trainer: Trainer, pool: ThreadPoolExecutor) -> Callable[[], None]:
        _raise_first([pool.submit(each.make) for each in self.learners])  # one that fails later is waited for
        self._meeting = tempfile.TemporaryDirectory()
        size, meeting = 1 + len(self.learners), Path(self._meeting.name) / "meeting"
        parts = [pool.submit(each.join, meeting, i, size) for i, each in enumerate(self.learners, start=1)]
        with _their_reasons_first(parts):
            leave = trainer.join(meeting, 0, size)
        _raise_first(parts)
        return leave

    # --- making them -------------------------------------------------------------------------------------------------

    def _number_of_threads(self, num_slots: int) -> int:
        """The workers of this process, which take turns at Python's lock; all others get processes of their own."""
        plan = self._plan
        if self._total == 1 or plan.loaded.load_again is None:
            if self._total > 1 and not plan.loaded.game.compiled:
                logger.warning(
                    "%s, so all games are played in this process, which is slower: put the game into a module (a .py "
                    "file)", _cannot_be_imported(plan.loaded),
                )  # fmt: skip
            return self._each
        if not plan.loaded.game.compiled:  # its rules hold the lock all the time
            return 0
        if self._on_gpu or self._each <= FEW:
            return self._each
        rate = self._network_rate / self._total
        share = share_under_lock(self._kernels, plan.config.search, num_slots, rate)
        count = threads_that_pay(share, self._each)
        if count < self._each:
            logger.info(
                "%d of %d workers are processes of their own, since each would hold Python's lock for %.0f%% of a step "
                "as a thread", self._total - count, self._total, 100 * share,
            )  # fmt: skip
        return count

    def _choose_slots(self, evaluate: Evaluator | CudaEvaluator) -> int:
        plan, self_play = self._plan, self._plan.config.self_play
        most = max(1, self_play.games_per_generation // self._total)
        if isinstance(evaluate, CudaEvaluator) and not plan.deterministic:
            if self._slots:
                return self._slots
            return choose_slots(self._kernels, evaluate, plan.config.search, self._each, most)
        return min(self_play.num_slots, most)

    def _rate_of_network(self, evaluate: Evaluator | CudaEvaluator, num_slots: int) -> float:
        """Positions per second that the network of one device evaluates by itself."""
        if isinstance(evaluate, CudaEvaluator):
            return rate_on_device(self._kernels, evaluate, num_slots)
        return rate_on_processor(self._kernels, self._net, self._plan.threads_each)

    def _bytes_of_trees(self, num_slots: int) -> int:
        return bytes_of_search(self._kernels, self._plan.config.search, num_slots)

    def _make_threads(self, evaluators: Sequence[Evaluator | CudaEvaluator], num_slots: int) -> list[SelfPlay]:
        plan, config = self._plan, self._plan.config
        return [
            SelfPlay(
                self._kernels, config.self_play, config.search, evaluate, num_slots, plan.seed, i, self._total,
                plan.loaded.value_targets,
            )
            for i, evaluate in enumerate(evaluators)
        ]  # fmt: skip

    def _start_process(self, number: int) -> ChildProcess:
        plan = self._plan
        settings = plan.worker_settings(
            self._sizes, device=plan.devices[number // self._each], inference=self._inference,
            deterministic=plan.deterministic, threads=plan.threads_each, num_slots=self.num_slots, first_game=number,
            game_stride=self._total,
        )  # fmt: skip
        return ChildProcess(settings, self._stop)


def check_determinism(minutes: float, num_devices: int) -> None:
    """Raises InvalidSetting if a run with this time limit, on so many devices, cannot be deterministic."""
    if minutes:
        raise InvalidSetting(
            f"{option('deterministic')} and {option('minutes')} exclude each other: a time limit depends on the clock; "
            f"{option('minutes', 0)} takes away the limit that a preset has"
        )
    if num_devices > 1:
        raise InvalidSetting(f"{option('deterministic')} takes one device: the order of sums on several is not fixed")


def _cannot_be_imported(loaded: LoadedGame) -> str:
    return f"{loaded.name} is defined where other processes cannot import it"


@contextlib.contextmanager
def _their_reasons_first(parts: Sequence[Future[None]]) -> Iterator[None]:
    """Lets a process that has failed say why, where torch here says only that it has left."""
    try:
        yield
    except RuntimeError:  # what torch raises; or the fault is ours
        over, _ = wait(parts, timeout=SECONDS_TO_LEAVE)
        _raise_first(list(over))
        raise


def _raise_first(parts: Sequence[Future[None]]) -> None:
    """Waits for all of them; raises the first error."""
    for part in parts:
        part.result()
