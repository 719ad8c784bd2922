"""Self-play inside of a host: plays for a moment at a time, by the weights that it was given last."""

from __future__ import annotations

import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from alphazero.fingerprint import game_fingerprint
from alphazero.nets.devices import see_only
from alphazero.search.placement import make_evaluators
from alphazero.training.parts.chunk import Chunk, pack
from alphazero.training.replay_buffer import Samples
from alphazero.training.selfplay import SelfPlay, SelfPlayCounts, Until
from alphazero.training.selfplay.first_compile import compile_all
from alphazero.training.worker_process import WorkerSettings, make_net

CHECKPOINT = "weights.safetensors"
CARD = "weights.json"
"""The checkpoint in a parcel, and its card."""


class Order(NamedTuple):
    """Some games to play."""

    first_games: tuple[tuple[int, int], ...]
    """Numbers for games to begin: the first one, and how many in a row."""
    num_games: int
    """The order is done when so many games are over,"""
    seconds: float
    """or after this time, whatever is over by then."""
    show: bool
    """Sends a few games for people along."""


class Numbers:
    """The numbers of games that may begin here; several threads take them."""

    def __init__(self) -> None:
        self._ranges: deque[tuple[int, int]] = deque()
        self._lock = threading.Lock()

    def add(self, first: int, count: int) -> None:
        """Adds `first`, `first + 1`, ..."""
        with self._lock:
            self._ranges.append((first, count))

    def take(self, count: int) -> np.ndarray:
        """The next ones, `int64[count]`."""
        found: list[int] = []
        with self._lock:
            while len(found) < count:
                first, there = self._ranges.popleft()
                taken = min(there, count - len(found))
                found += range(first, first + taken)
                if taken < there:
                    self._ranges.appendleft((first + taken, there - taken))
        return np.array(found, np.int64)


class NumberedSelfPlay(SelfPlay):
    """Self-play whose games have the numbers that somebody hands out."""

    def draw_from(self, numbers: Numbers) -> None:
        """Begins new games by these numbers, and all later ones."""
        self._numbers = numbers
        self._begin_games(np.arange(self.num_slots), numbers.take(self.num_slots))

    def _take_numbers(self, count: int) -> np.ndarray:
        return self._numbers.take(count)


class RemotePlayer:
    """The guest of a host that plays for a run; see `alphazero.cluster.host.Guest`."""

    def __init__(self, settings: WorkerSettings):
        settings = replace(settings, device=see_only(settings.device))
        loaded, kernels, self._net = make_net(settings, settings.playing_net)
        config = settings.config
        self.fingerprint = game_fingerprint(loaded.game)
        self._net.use_threads(1)
        compile_all(kernels, config.self_play, config.search, self._net)
        evaluators = make_evaluators(kernels, self._net, 1, config.cache_size)
        self._players = [
            NumberedSelfPlay(
                kernels, config.self_play, config.search, evaluate, settings.num_slots, settings.seed,
                value_targets=loaded.value_targets,
            )
            for evaluate in evaluators
        ]  # fmt: skip
        self._numbers = Numbers()
        self._begun = self._fresh = False
        self._surplus = 0
        """Games that ended beyond those that orders asked for: the next ones ask for fewer."""
        self._counts, self._cpu = SelfPlayCounts(), time.process_time()

    def take(self, generation: int, folder: Path) -> None:
        """Plays by the checkpoint in the folder from now on."""
        self._net.load(folder / CHECKPOINT)
        for player in self._players:
            player.forget()
            player.weights = generation
        self._fresh = True

    def play(self, order: Order) -> bytes:
        """A chunk of games that are over; the others go on with the next order."""
        for first, count in order.first_games:
            self._numbers.add(first, count)
        if not self._begun:
            for player in self._players:
                player.draw_from(self._numbers)
        search_anew, self._begun, self._fresh = self._fresh or not self._begun, True, False
        wanted = max(0, order.num_games - self._surplus)
        end = time.monotonic() + order.seconds
        samples, ended = self._play(wanted, Until(lambda: time.monotonic() >= end), search_anew)
        self._surplus = max(0, len(ended) + self._surplus - order.num_games)
        counts = sum((player.counts() for player in self._players), SelfPlayCounts())
        cpu = time.process_time()
        shown = [game for player in self._players for game in player.finished_games()][:4] if order.show else []
        chunk = Chunk(samples, ended, counts - self._counts, int(1000 * (cpu - self._cpu)), shown)
        self._counts, self._cpu = counts, cpu
        return pack(chunk)

    def _play(self, num_games: int, until: Until, search_anew: bool) -> tuple[Samples, np.ndarray]:
        if len(self._players) == 1:
            found = [self._players[0].play(num_games, until, search_anew=search_anew)]
        else:  # a GPU searches for one while the other's moves are played
            share = -(-num_games // len(self._players))
            with ThreadPoolExecutor(len(self._players)) as pool:
                found = list(pool.map(lambda player: player.play(share, until, search_anew=search_anew), self._players))
        return Samples.join(found), np.concatenate([player.ended_games() for player in self._players])
