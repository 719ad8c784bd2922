"""For games that can be solved: a solver's threads and memory, and a player that takes the best by a score."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from alphazero.game.kernels import Kernels
from alphazero.machine import Threads, count_cores
from alphazero.players.player import Chooser, Player

NO_SCORE = -100
"""In arrays of scores: the action is not legal."""


class ExactSolver:
    """Solves positions on all cores. Each thread has a memory of its own, which `make_memory` makes for its kernels.

    The first word of a memory's last array counts the positions looked at.
    """

    def __init__(self, make_memory: Callable[[], tuple[np.ndarray, ...]], threads: int | None = None):
        self.threads = count_cores() if threads is None else threads
        self._make_memory = make_memory
        self._pool, self._own = Threads(self.threads), threading.local()
        self._memories: list[tuple[np.ndarray, ...]] = []

    @property
    def num_nodes(self) -> int:
        """Positions looked at so far."""
        return sum(int(memory[-1].flat[0]) for memory in self._memories)

    def memory(self) -> tuple[np.ndarray, ...]:
        """The memory of this thread."""
        if not hasattr(self._own, "memory"):
            self._own.memory = self._make_memory()
            self._memories.append(self._own.memory)
        return self._own.memory  # type: ignore[no-any-return]

    def share(self, count: int, size: int, work: Callable[..., Any], threads: int | None = None) -> None:
        """Calls `work(slice, *memory)` for `count` rows, `size` at a time, on some or all of the solver's `threads`."""
        starts = iter(range(0, count, size))

        def take(_: int) -> None:
            memory = self.memory()
            for start in starts:
                work(slice(start, start + size), *memory)

        list(self._pool.map(take, range(min(threads or self.threads, math.ceil(count / size)))))


class ScorePlayer(Player):
    """Plays an action of the highest score, equally good ones at random; `score(states) -> [n, A]`."""

    def __init__(self, name: str, kernels: Kernels, seed: int, score: Callable[[np.ndarray], np.ndarray]):
        self.name, self._score, self._chooser = name, score, Chooser(kernels, seed)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        return self._chooser.best(self._score(states), games, plies)
