"""The interface of whoever plays games of a run: a thread, a process or a cluster; and several of them at work."""

from __future__ import annotations

import math
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import astuple, dataclass
from typing import NamedTuple

import numpy as np

from alphazero.training.replay_buffer import Samples
from alphazero.training.selfplay.shown_games import FinishedGame

LEAST_GAMES = 2
"""Games that a worker finishes in each generation, however long they take; fewer if it has fewer slots."""


class Until(NamedTuple):
    """Limits of a call of `play`."""

    is_over: Callable[[], bool] = lambda: False
    """Asked between two plies; ends it at once."""
    seconds: float = math.inf
    """Then it ends as soon as LEAST_GAMES are over."""
    most_seconds: float = math.inf
    """Then it ends with what there is."""


NO_LIMIT = Until()


@dataclass(frozen=True)
class SelfPlayCounts:
    """Counts of self-play."""

    games: int = 0
    positions: int = 0
    simulations: int = 0
    requests: int = 0
    """Positions that searches on the processor asked about."""
    evaluations: int = 0
    """Cache misses: requests that reached the network."""

    def __add__(self, other: SelfPlayCounts) -> SelfPlayCounts:
        return SelfPlayCounts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: SelfPlayCounts) -> SelfPlayCounts:
        return SelfPlayCounts(*(a - b for a, b in zip(astuple(self), astuple(other), strict=True)))


class Worker:
    """Plays games by the network that plays at the time; its games go on from call to call.

    A worker keeps `num_slots` games going. Its games are numbered `first_game`, `first_game + game_stride`, ...: the
    number keys a game's randomness, so the games of a run do not depend on where its workers are.
    """

    num_slots: int
    """Games played at once."""

    cpu_seconds = 0.0
    """Processor time outside of this process."""

    @abstractmethod
    def counts(self) -> SelfPlayCounts:
        """Counts since the worker began; any thread may ask while it plays."""

    @abstractmethod
    def play(self, num_games: int, until: Until = NO_LIMIT) -> Samples:
        """Plays until `num_games` more games are over; returns their samples, in the order in which they ended."""

    @abstractmethod
    def finished_games(self) -> list[FinishedGame]:
        """Some of the games that ended in the last call of `play`."""

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """The games in progress, for `restore`; `games int64[num_slots]` are their numbers."""

    @abstractmethod
    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on with the games of `state`."""

    @abstractmethod
    def begin_at(self, first_game: int) -> None:
        """Begins new games in place of those in progress, numbered from `first_game` on."""

    def forget(self) -> None:
        """Clears the cache of the network's answers, if it is not cleared in every call of `play`."""


def play_games(
    workers: Sequence[Worker],
    num_games: int,
    use_threads: Callable[[int], object],
    until: Until = NO_LIMIT,
    on_progress: Callable[[], None] = lambda: None,
) -> Samples:
    """Lets every worker play its share of `num_games` on a thread of its own; joins the samples in order.

    `use_threads(1)` is called in each thread first, so that network calls stay on it; `on_progress` now and then.
    """
    shares = [num_games // len(workers) + (i < num_games % len(workers)) for i in range(len(workers))]
    failed = threading.Event()
    each = until._replace(is_over=lambda: failed.is_set() or until.is_over())
    with ThreadPoolExecutor(len(workers), initializer=use_threads, initargs=(1,)) as pool:
        futures = [pool.submit(worker.play, share, each) for worker, share in zip(workers, shares, strict=True)]
        try:
            while waiting := wait(futures, timeout=0.5, return_when=FIRST_EXCEPTION).not_done:
                for future in set(futures) - waiting:
                    future.result()  # raises what the worker raised
                on_progress()
            return Samples.join([future.result() for future in futures])
        except BaseException:
            failed.set()  # one worker failed, or the user wants to leave: the others need not go on
            raise
