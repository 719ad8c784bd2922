"""Self-play, and a part of the learning, in processes of their own.

For games whose rules run as Python, which on threads would take turns; and for devices other than the run's first. A
process makes its own game, network and search from the same settings, and gets weights and samples as paths of files.
What it plays does not depend on where it runs: the games are those that a thread would have played.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from alphazero.errors import InputError, Stopped, TrainingError
from alphazero.game.kernels import Kernels
from alphazero.game.spec import LoadedGame
from alphazero.nets.devices import see_only
from alphazero.nets.neural_net import NeuralNet
from alphazero.search.cuda_search import make_evaluators
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import SearchConfig
from alphazero.training.learner import Learner, LearnerConfig
from alphazero.training.replay_buffer import ReplayBuffer, ReplayConfig, Samples, read_samples
from alphazero.training.selfplay import SelfPlay, SelfPlayConfig

GAMES, POSITIONS, SIMULATIONS, CPU_MILLISECONDS, STOP = range(5)
"""What the processes share: counts of the one that plays, and the other's wish that it stop."""
SECONDS_TO_LEAVE = 5.0
"""After so long a process that was asked to end is killed."""
PAUSE = 0.2
"""Seconds between two looks at what a process has done."""


@dataclass(frozen=True)
class WorkerSettings:
    """What a process needs to begin."""

    load: Callable[[], LoadedGame]
    """Makes the game anew; can be sent to a process."""
    net: Mapping[str, Any]
    """Settings of the network that learns."""
    playing_net: Mapping[str, Any]
    """Settings of the one that plays."""
    config: SelfPlayConfig
    search: SearchConfig
    replay: ReplayConfig
    learner: LearnerConfig
    device: str
    """Where its network is."""
    deterministic: bool
    """As in `NeuralNet.use_determinism`."""
    threads: int
    """Processor threads of its learning."""
    cache_size: int
    num_slots: int
    seed: int
    first_game: int
    game_stride: int


@dataclass(frozen=True)
class TrainingJob:
    """What all who learn together must agree on."""

    weights: Path
    """What `Trainer.save` wrote after the generation before."""
    replay: tuple[Path, ...]
    """The files of the generations in the window, the oldest first."""
    num_updates: int
    generation: int
    progress: float


class WorkerProcess:
    """Stands for a `SelfPlay` in another process, and for its evaluator's counts."""

    def __init__(self, work: WorkerSettings, weights: Callable[[], Path], stop: threading.Event):
        """`weights` says which checkpoint is to play; once `stop` is set, a process that is gone is no fault."""
        context = multiprocessing.get_context("spawn")  # a fork would take over locks of torch's and numba's threads
        self.num_slots = work.num_slots
        self.num_requests = self.num_evaluations = 0
        self._weights, self._stop = weights, stop
        self._counts = context.Array("q", [0] * 5, lock=False)  # a process that dies would take a lock with it
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._counts, work), daemon=True)
        with _without_interruption():
            self._process.start()
        theirs.close()

    @property
    def num_games(self) -> int:
        """Played so far, as the two below."""
        return int(self._counts[GAMES])

    @property
    def num_positions(self) -> int:
        return int(self._counts[POSITIONS])

    @property
    def num_simulations(self) -> int:
        return int(self._counts[SIMULATIONS])

    @property
    def cpu_seconds(self) -> float:
        """Processor time of the process, since it began."""
        return int(self._counts[CPU_MILLISECONDS]) / 1000

    def play(self, num_games: int, stop: threading.Event | None = None) -> Samples:
        """As `SelfPlay.play`, by the weights of now."""
        samples, self.num_requests, self.num_evaluations = self._ask("play", stop, num_games, self._weights())
        return samples

    def join(self, meeting: Path, rank: int, size: int) -> None:
        """As `Trainer.join`, of the network that learns there."""
        self._ask("join", None, meeting, rank, size)

    def learn(self, job: TrainingJob) -> None:
        """Its part of a generation's learning, which goes on at the same time in all processes that have joined."""
        self._ask("learn", None, job)

    def state(self) -> dict[str, np.ndarray]:
        return self._ask("state")

    def restore(self, state: dict[str, np.ndarray]) -> None:
        self._ask("restore", None, state)

    def clear(self) -> None:
        """The process forgets its evaluations whenever it starts to play."""

    def close(self) -> None:
        """Ends the process."""
        self.ask_to_end()
        self._process.join(SECONDS_TO_LEAVE)
        if self._process.is_alive():
            self._process.kill()

    def ask_to_end(self) -> None:
        """`close` without waiting."""
        self._counts[STOP] = 1
        self._connection.close()

    def _ask(self, command: str, stop: threading.Event | None = None, *arguments: Any) -> Any:
        try:
            self._connection.send((command, arguments))
            while not self._connection.poll(PAUSE):
                if stop is not None and stop.is_set():
                    self._counts[STOP] = 1
                if not self._process.is_alive() and not self._connection.poll():
                    raise EOFError
            kind, answer = self._connection.recv()
        except (EOFError, OSError):
            if self._stop.is_set():  # whoever asked for it may have asked the process as well
                raise Stopped from None
            self._process.join(SECONDS_TO_LEAVE)
            raise TrainingError(
                f"a process of self-play has died (exit code {self._process.exitcode}): too little memory, or killed? "
                "Go on with --resume"
            ) from None
        self._counts[STOP] = 0
        if kind == "mistake":
            raise answer
        if kind == "bug":
            raise RuntimeError(f"in a process of self-play:\n{answer}")
        return answer


@contextlib.contextmanager
def _without_interruption() -> Iterator[None]:
    """A process begun in here ignores Ctrl-C, which reaches all: whoever began it decides."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class _Stop(threading.Event):
    """The wish to stop, as a worker asks for it."""

    def __init__(self, counts: Any):
        super().__init__()
        self._counts = counts

    def is_set(self) -> bool:
        return bool(self._counts[STOP])


def _serve(connection: Connection, counts: Any, work: WorkerSettings) -> None:
    """What runs in the process: answers until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    work = replace(work, device=see_only(work.device))
    made: tuple[SelfPlay, NeuralNet, Any] | None = None
    student, learning = RemoteLearner(work), False
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):  # nobody is left to play for
        while True:
            command, arguments = connection.recv()
            try:
                if command in ("join", "learn"):
                    learning = True
                    answer = getattr(student, command)(*arguments)
                    counts[CPU_MILLISECONDS] = int(1000 * time.process_time())
                    connection.send(("done", answer))
                    learning = False
                    continue
                if made is None:
                    made = _make(work)
                connection.send(("done", _answer(*made, command, arguments, counts)))
            except InputError as error:
                connection.send(("mistake", _as_sentence(error)))
            except (BrokenPipeError, ConnectionResetError):
                raise
            except Exception:
                connection.send(("bug", traceback.format_exc()))
            if learning:  # has failed, and others must not wait for it
                os._exit(1)


def _as_sentence(error: InputError) -> InputError:
    """The same kind of error with the message alone, which can be sent."""
    with contextlib.suppress(TypeError):
        return type(error)(str(error))
    return InputError(str(error))


class RemoteLearner:
    """The learning of one process."""

    def __init__(self, work: WorkerSettings):
        self._work = work
        self._samples: dict[Path, Samples] = {}

    def join(self, meeting: Path, rank: int, size: int) -> None:
        """As `Trainer.join`."""
        work = self._work
        self._kernels, net = _make_net(work, work.net)
        self._learner = Learner(net, work.learner, work.seed, work.threads)
        self._learner.trainer.join(meeting, rank, size)

    def learn(self, job: TrainingJob) -> None:
        """As the coach does at the same time."""
        self._samples = {
            path: self._samples[path] if path in self._samples else read_samples(path) for path in job.replay
        }
        replay = ReplayBuffer(self._kernels, self._work.replay)
        for number, samples in enumerate(self._samples.values()):
            replay.generations.append((number, samples))
        self._learner.trainer.load(job.weights)
        self._learner.learn(replay.training_set(), job.num_updates, job.generation, job.progress)


def _answer(
    worker: SelfPlay, net: NeuralNet, evaluate: Any, command: str, arguments: tuple[Any, ...], counts: Any
) -> Any:
    if command == "state":
        return worker.state()
    if command == "restore":
        return worker.restore(*arguments)
    num_games, weights = arguments
    net.load(weights)
    evaluator = evaluate if isinstance(evaluate, Evaluator) else None
    if evaluator:
        evaluator.clear()
    with _counting(worker, counts):
        samples = worker.play(num_games, _Stop(counts))
    return samples, evaluator.num_requests if evaluator else 0, evaluator.num_evaluations if evaluator else 0


def _make(work: WorkerSettings) -> tuple[SelfPlay, NeuralNet, Any]:
    kernels, net = _make_net(work, work.playing_net)
    net.use_threads(1)
    evaluate = make_evaluators(kernels, net, 1, work.cache_size)[0]
    worker = SelfPlay(
        kernels, work.config, work.search, evaluate, work.num_slots, work.seed, work.first_game, work.game_stride
    )
    return worker, net, evaluate


def _make_net(work: WorkerSettings, settings: Mapping[str, Any]) -> tuple[Kernels, NeuralNet]:
    loaded = work.load()
    net = loaded.make_net(loaded.game, settings)
    net.use_determinism(work.deterministic)
    net.use_device(work.device)
    return Kernels(loaded.game), net


class _counting:
    """Copies the counts of a worker to where the other process sees them, now and then."""

    def __init__(self, worker: SelfPlay, counts: Any):
        self._worker, self._counts, self._over = worker, counts, threading.Event()
        self._thread = threading.Thread(target=self._copy, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _copy(self) -> None:
        while True:
            over = self._over.wait(PAUSE)
            worker = self._worker
            played = [worker.num_games, worker.num_positions, worker.num_simulations]
            self._counts[:STOP] = [*played, int(1000 * time.process_time())]
            parent = multiprocessing.parent_process()
            if parent is not None and not parent.is_alive():
                os._exit(1)  # nobody is left to play for, and the games would go on for minutes
            if over:
                return
