"""Self-play, and a part of the learning, in processes: for rules that run as Python, and for further devices.

A process makes its own game, network and search from the same settings, and gets weights and samples as paths of files.
It plays the games that a thread would have played.
"""

from __future__ import annotations

import contextlib
import functools
import math
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, cast

import numpy as np

from alphazero.catalogue.loaded import LoadedGame
from alphazero.catalogue.user_code import ALONE
from alphazero.errors import InputError, InvalidSetting, Stopped, TrainingError
from alphazero.game.kernels import Kernels, kernels_of
from alphazero.invocation import option
from alphazero.nets.devices import see_only
from alphazero.nets.neural_net import NeuralNet
from alphazero.players.child_processes import main_of_workers, start_worker
from alphazero.search.placement import make_evaluators
from alphazero.training.config import RunConfig
from alphazero.training.learner import Learner
from alphazero.training.replay_buffer import ReplayBuffer, Samples, TrainingSet, make_examples, read_samples
from alphazero.training.selfplay import NO_LIMIT, FinishedGame, SelfPlay, SelfPlayCounts, Until, Worker
from alphazero.training.selfplay.calibration import compile_all

CPU_MILLISECONDS, STOP, COUNTS = 0, 1, slice(2, 7)
"""Places in the memory that the processes share: STOP is the parent's wish, all else is the child's."""
SECONDS_TO_LEAVE = 5.0
"""A process that was asked to end is killed after so long."""
SECONDS_TO_ANSWER = 60.0
"""A process that was asked to stop is not waited for any longer; one with slow rules stops after one step."""
PAUSE = 0.2
"""Seconds between two looks at what a process has done."""


@dataclass(frozen=True)
class WorkerSettings:
    """All that a process needs to begin."""

    load: Callable[[], LoadedGame]
    """Makes the game anew; can be sent to a process."""
    parts: Mapping[str, Any]
    """Parts that take the place of the game's own, as in `LoadedGame.replaced`."""
    config: RunConfig
    """The run's; its `net` holds plain values, which need no module of the user's."""
    playing_net: Mapping[str, Any]
    """Settings of the network that plays."""
    device: str
    inference: str
    deterministic: bool
    threads: int
    """Processor threads of its learning."""
    num_slots: int
    seed: int
    first_game: int = 0
    game_stride: int = 1
    learns: bool = False
    """It learns together with the run's own process."""


@dataclass(frozen=True)
class TrainingJob:
    """The part of a generation's learning on which all processes that learn together must agree."""

    weights: Path
    """Written by `Trainer.save` after the generation before."""
    replay: tuple[Path, ...]
    """The files of the generations in the window, the oldest first."""
    num_updates: int
    generation: int
    progress: float


def check_sendable(part: Callable[..., Any], name: str) -> None:
    """Raises InvalidSetting unless another process can find the function by its module and name."""
    with contextlib.suppress(Exception):
        names = bytes(ForkingPickler.dumps(part))  # as it is sent to a process
        if ALONE.encode() not in names and (b"__main__" not in names or main_of_workers()):
            return
    raise InvalidSetting(
        f"this run plays in processes of its own, which cannot load its {name}, {getattr(part, '__name__', part)}: "
        "define it at the top level of a module (a .py file) and import it from there"
    )


class WorkerProcess(Worker):
    """A `Worker` in another process, which may also do a part of the learning."""

    def __init__(self, settings: WorkerSettings, weights: Callable[[], Path], stop: threading.Event):
        """`weights()` is the checkpoint that plays; once `stop` is set, a process that is gone is no fault."""
        self.num_slots, self._weights = settings.num_slots, weights
        if multiprocessing.current_process().daemon:
            raise InvalidSetting(
                f"this run plays in processes of its own, which a process of multiprocessing.Pool cannot start: take "
                f"{option('threads', 1)}, or concurrent.futures.ProcessPoolExecutor in place of the Pool"
            )
        context = multiprocessing.get_context("spawn")  # a fork would take over locks of torch's and numba's threads
        self._stop = stop
        self.shared = context.Array("q", [0] * 7, lock=False)  # a process that dies would take a lock with it
        self.connection, theirs = context.Pipe()
        self.process = start_worker(functools.partial(_serve, settings), self.connection, theirs, self.shared)

    def ask(self, command: str, *arguments: Any, is_over: Callable[[], bool] = lambda: False) -> Any:
        """The answer to a command; raises what the process raised. Once `is_over()`, the process is told to stop.

        It waits for SECONDS_TO_ANSWER from then on: a process may be stopped, as by Ctrl-Z.
        """
        until = math.inf
        try:
            self.connection.send((command, arguments))
            while not self.connection.poll(PAUSE):
                if is_over() and not self.shared[STOP]:
                    self.shared[STOP], until = 1, time.monotonic() + SECONDS_TO_ANSWER
                gone = not self.process.is_alive() or time.monotonic() > until
                if gone and not self.connection.poll():
                    raise EOFError
            kind, answer = self.connection.recv()
        except (EOFError, OSError):
            if self._stop.is_set():  # whoever asked for it may have asked the process as well
                raise Stopped from None
            self.process.join(SECONDS_TO_LEAVE)
            code = self.process.exitcode
            reason = "see the error above" if code == 1 else "perhaps memory ran out, or it was killed"
            fault = "does not answer" if code is None else f"has died (exit code {code}): {reason}"
            raise TrainingError(f"a process of self-play {fault}; go on with {option('resume', True)}") from None
        self.shared[STOP] = 0
        if kind == "mistake":
            raise answer
        if kind == "bug":
            raise RuntimeError(f"in a process of self-play:\n{answer}")
        return answer

    def get_ready(self) -> None:
        """Waits until the process could play."""
        self.ask("get_ready", self._weights())

    @property
    def cpu_seconds(self) -> float:  # type: ignore[override]
        """Processor time of the process since it began."""
        return int(self.shared[CPU_MILLISECONDS]) / 1000

    def counts(self) -> SelfPlayCounts:
        return SelfPlayCounts(*self.shared[COUNTS])

    def play(self, num_games: int, until: Until = NO_LIMIT) -> Samples:
        is_over, *limits = until
        return cast(Samples, self.ask("play_by", self._weights(), num_games, *limits, is_over=is_over))

    def finished_games(self) -> list[FinishedGame]:
        return cast(list[FinishedGame], self.ask("finished_games"))

    def state(self) -> dict[str, np.ndarray]:
        return cast(dict[str, np.ndarray], self.ask("state"))

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self.ask("restore", state)

    def begin_at(self, first_game: int) -> None:
        self.ask("begin_at", first_game)


def end_all(children: Sequence[WorkerProcess]) -> None:
    """Ends the processes; kills those that have not ended by themselves SECONDS_TO_LEAVE from now."""
    for child in children:
        child.shared[STOP] = 1
        child.connection.close()
    until = time.monotonic() + SECONDS_TO_LEAVE
    for child in children:
        child.process.join(max(0.0, until - time.monotonic()))
        child.process.kill()
        child.process.join()


# --- in the process ---


def _serve(settings: WorkerSettings, connection: Connection, shared: Any) -> None:
    """Answers until the other end is closed; makes what plays here when it is first asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = replace(settings, device=see_only(settings.device))
    served: Any = None
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):  # nobody is left to play for
        while True:
            command, arguments = connection.recv()
            try:
                served = served or Served(settings, shared)
                answer = "done", getattr(served, command)(*arguments)
            except InputError as error:
                answer = "mistake", error
            except Exception:
                answer = "bug", traceback.format_exc()
            shared[CPU_MILLISECONDS] = int(1000 * time.process_time())
            connection.send(answer)
            if command in LEARNING and answer[0] != "done":
                os._exit(1)


LEARNING = ("join", "learn")
"""Commands whose failure ends the process: others must not wait for it."""


class Served(SelfPlay):
    """The games of this process, and its part of the learning; its methods are the commands of `WorkerProcess`."""

    def __init__(self, settings: WorkerSettings, shared: Any):
        loaded, kernels, self._net = make_net(settings, settings.playing_net)
        self._settings, self._shared, self._shown_at, config = settings, shared, 0.0, settings.config
        self._examples: dict[Path, TrainingSet] = {}
        if settings.learns:
            _, _, net = make_net(settings, config.net)
            self._learner = Learner(net, config.learner, settings.seed, settings.threads)
        self._net.use_threads(1)
        evaluate = make_evaluators(kernels, self._net, 1, config.cache_size)[0]
        super().__init__(
            kernels, config.self_play, config.search, evaluate, settings.num_slots, settings.seed,
            settings.first_game, settings.game_stride, loaded.value_targets,
        )  # fmt: skip

    def get_ready(self, weights: Path) -> None:
        """Loads what has been compiled."""
        self._net.load(weights)
        compile_all(self.kernels, self.config, self.search.config, self._net)

    def play_by(self, weights: Path, num_games: int, seconds: float, most_seconds: float) -> Samples:
        """Plays by the checkpoint `weights`; shows the counts to the parent meanwhile."""
        self._net.load(weights)
        self.forget()
        samples = self.play(num_games, Until(self._is_over, seconds, most_seconds))
        self._show_counts()
        return samples

    def _is_over(self) -> bool:
        if time.monotonic() > self._shown_at + PAUSE:
            self._show_counts()
        return bool(self._shared[STOP])

    def _show_counts(self) -> None:
        self._shown_at = time.monotonic()
        self._shared[COUNTS] = astuple(self.counts())
        self._shared[CPU_MILLISECONDS] = int(1000 * time.process_time())

    def join(self, meeting: Path, rank: int, size: int) -> None:
        """As `Trainer.join`."""
        self._learner.trainer.join(meeting, rank, size)

    def learn(self, job: TrainingJob) -> None:
        """The same as the coach does at the same time."""
        for path in job.replay:
            if path not in self._examples:
                self._examples[path] = make_examples(self.kernels, read_samples(path, self.kernels.game))
        self._examples = {path: self._examples[path] for path in job.replay}
        replay = ReplayBuffer(self.kernels, self._settings.config.replay)
        replay.generations.extend(enumerate(self._examples.values()))
        self._learner.trainer.load(job.weights)
        self._learner.learn(replay.training_set(), job.num_updates, job.generation, job.progress)


def make_net(settings: WorkerSettings, net_settings: Mapping[str, Any]) -> tuple[LoadedGame, Kernels, NeuralNet]:
    """The game, its kernels, and a fresh network of these settings in its place."""
    loaded = replace(settings.load(), **settings.parts)
    net = loaded.make_net(loaded.game, net_settings)
    net.use_determinism(settings.deterministic)
    net.use_device(settings.device)
    net.use_inference(settings.inference)
    return loaded, kernels_of(loaded.game), net
