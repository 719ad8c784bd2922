"""The plan of a run: the game, the settings and the place, checked together; and what plays its games must offer."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from alphazero.catalogue.loaded import REPLACEABLE, LoadedGame
from alphazero.errors import InvalidSetting
from alphazero.game.kernels import Kernels
from alphazero.invocation import option
from alphazero.nets.neural_net import Trainer
from alphazero.settings import check_ranges
from alphazero.training.config import RunConfig, settings_by_name
from alphazero.training.parts.arrivals import Arrivals
from alphazero.training.selfplay import SelfPlayCounts, Worker
from alphazero.training.worker_process import TrainingJob, WorkerSettings, check_sendable


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
    """Nothing depends on the clock, a GPU's free memory or the order of sums."""
    cluster: Any = None
    """A `RayCluster`, which plays the games in place of threads and processes on this machine; or None."""

    def __post_init__(self) -> None:
        check_ranges(self, threads=(1, 1024), seed=(0, (1 << 31) - 1))
        if self.config.learner.batch_size < 2 * len(self.devices):
            raise InvalidSetting(
                f"{option('learner.batch_size')} must be {2 * len(self.devices)} or more, since "
                f"{len(self.devices)} devices share a batch"
            )
        if self.deterministic and self.config.minutes:
            raise InvalidSetting(
                f"{option('deterministic')} and {option('minutes')} exclude each other: a time limit depends on the "
                f"clock; {option('minutes', 0)} takes away the limit that a preset has"
            )
        if self.deterministic and len(self.devices) > 1:
            raise InvalidSetting(f"{option('deterministic')} takes one device: sums on several have no fixed order")
        if self.cluster is not None:
            self.cluster.check(self)
        if len(self.devices) > 1 and self.loaded.load_again is None:
            raise InvalidSetting(
                f"{cannot_be_imported(self.loaded)}, and each further device needs a process: choose one device, or "
                "put the game into a module (a .py file)"
            )
        if len(self.devices) > 1 or self.cluster is not None:
            self.check_parts()

    @property
    def names_of_parts(self) -> dict[str, str]:
        """The names of the functions in `LoadedGame.replaced`, or of their types where they have none."""
        return {name: getattr(part, "__name__", type(part).__name__) for name, part in self.loaded.replaced.items()}

    def check_parts(self) -> None:
        """Raises InvalidSetting unless a process can find the parts that are not the game's own."""
        for name, part in self.loaded.replaced.items():
            check_sendable(part, REPLACEABLE[name])

    def worker_settings(self, playing_net: Any, **place: Any) -> WorkerSettings:
        """The settings of a process of this run; `place`: the fields that depend on where it is."""
        assert self.loaded.load_again is not None
        config = replace(self.config, net=self.config.net_settings)
        return WorkerSettings(
            load=self.loaded.load_again, parts=self.loaded.replaced, config=config,
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


def cannot_be_imported(loaded: LoadedGame) -> str:
    """The beginning of a sentence about a game that no other process can load."""
    return f"{loaded.name} is defined where other processes cannot import it"


@dataclass(frozen=True)
class Assignment:
    """The facts about a run that whoever plays its games needs."""

    plan: RunPlan
    kernels: Kernels
    sizes: Any
    """The settings of the net that plays."""
    inference: str
    """The library that runs the networks."""
    playing: Callable[[], tuple[int, Path]]
    """The generation that plays, and its checkpoint; elsewhere asked from `Workers.start` on."""
    arrivals: Arrivals
    """Where games from elsewhere wait for their generation."""
    versions: list[int]
    """All generations whose nets have played, in ascending order."""
    stop: threading.Event = field(default_factory=threading.Event)
    """The run is to end: then a process that is gone is no fault."""
    slots: int | None = None
    """Games at once for each worker of a run that goes on, where they depend on the memory."""


class Workers:
    """All who play the games of a run, by default without any help: threads, processes, or the hosts of a cluster."""

    all: list[Worker]
    """Each of them, in an order that numbers their games."""
    num_slots: int
    """Games that each plays at once."""
    keeps_games = True
    """Games in progress go on in the next generation, and after a resume; else they are given up."""
    network_rate = 0.0
    """The positions that the networks evaluate in a second; 0 if not known."""

    @abstractmethod
    def describe(self) -> str:
        """Their places, and how many games they play at once, as a phrase."""

    @property
    @abstractmethod
    def share_of_match(self) -> float:
        """The share of self-play's speed that a match in this process has."""

    @abstractmethod
    def share_of_network(self, played: SelfPlayCounts, seconds: float) -> float | None:
        """The share of the networks' capacity that self-play used in that time; None if it is not known."""

    @abstractmethod
    def close(self) -> None:
        """Ends them; a second call does nothing."""

    def start(self) -> None:
        """Lets hosts begin to play while this process still gets ready."""

    def get_ready(self) -> None:
        """Waits until they could play, so that their start takes no time of the first generation."""

    def learn(self, trainer: Trainer, job: TrainingJob, learn_here: Callable[[], Any]) -> Any:
        """Calls `learn_here`, and does its own part of the learning meanwhile; returns its result."""
        return learn_here()

    def played(self) -> SelfPlayCounts:
        """Counts of all together."""
        return sum((worker.counts() for worker in self.all), SelfPlayCounts())

    @property
    def cpu_seconds(self) -> float:
        """Processor time outside of this process."""
        return float(sum(worker.cpu_seconds for worker in self.all))

    def forget(self) -> None:
        """Clears the caches of the networks' answers: from now on another net may play."""
        for worker in self.all:
            worker.forget()

    def begin_counting(self) -> tuple[float, SelfPlayCounts]:
        """The time and the counts from which a generation's games count."""
        return time.monotonic(), self.played()

    def figures(self) -> dict[str, Any]:
        """Further figures of the generation's games."""
        return {}

    def arrays(self) -> dict[str, dict[str, np.ndarray]]:
        """Arrays of the generation's games to be kept beside its samples, by the kind of their file."""
        return {}
