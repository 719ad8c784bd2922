"""Self-play inside of a host: plays for a moment at a time, by the weights that it was given last."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from alphazero.fingerprint import game_fingerprint
from alphazero.nets.devices import see_only
from alphazero.search.placement import make_evaluators
from alphazero.training.parts.arrivals import Chunk, pack
from alphazero.training.replay_buffer import Samples
from alphazero.training.selfplay import SelfPlay, SelfPlayCounts, Until
from alphazero.training.selfplay.calibration import compile_all
from alphazero.training.worker_process import WorkerSettings, make_net

CHECKPOINT = "weights.safetensors"
CARD = "weights.json"
"""The checkpoint in a parcel, and its card."""


class Order(NamedTuple):
    """Some games to play."""

    first_game: int
    """Further games may begin here, with this number and those after it,"""
    new_games: int
    """so many."""
    num_games: int
    """The order is done when so many games are over,"""
    seconds: float
    """or after this time, whatever is over by then."""
    show: bool
    """Sends a few games for people along."""


class NumberedSelfPlay(SelfPlay):
    """Self-play whose games have the numbers that somebody hands out."""

    def draw_from(self, numbers: SimpleQueue[int]) -> None:
        """Begins new games by these numbers, and all later ones."""
        self._numbers = numbers
        self._begin_games(np.arange(self.num_slots), self._take_numbers(self.num_slots))

    def _take_numbers(self, count: int) -> np.ndarray:
        return np.array([self._numbers.get_nowait() for _ in range(count)], np.int64)


class RemotePlayer:
    """The guest of a host that plays for a run; see `alphazero.cluster.host.Guest`."""

    def __init__(self, settings: WorkerSettings):
        settings = replace(settings, device=see_only(settings.device))
        loaded, kernels, self._net = make_net(settings, settings.playing_net)
        config = settings.config
        self.fingerprint = game_fingerprint(loaded.game)
        self._net.use_threads(1)
        compile_all(kernels, config.self_play, config.search, self._net)
        self._players = [
            NumberedSelfPlay(
                kernels, config.self_play, config.search, evaluate, settings.num_slots, settings.seed,
                value_targets=loaded.value_targets,
            )
            for evaluate in make_evaluators(kernels, self._net, 1, config.cache_size)
        ]  # fmt: skip
        self._numbers: SimpleQueue[int] = SimpleQueue()
        self._begun = self._fresh = False
        self._surplus = 0
        """Games that ended beyond those that orders asked for: the next ones ask for fewer."""
        self._counts, self._cpu = SelfPlayCounts(), time.process_time()

    def take(self, generation: int, files: Mapping[str, bytes]) -> None:
        """Plays by the checkpoint in the files from now on."""
        with tempfile.TemporaryDirectory(prefix="az-weights-") as folder:
            for name in (CHECKPOINT, CARD):
                (Path(folder) / name).write_bytes(files[name])
            self._net.load(Path(folder) / CHECKPOINT)
        for player in self._players:
            player.forget()
            player.weights = generation
        self._fresh = True

    def play(self, order: Order) -> bytes:
        """A chunk of games that are over; the others go on with the next order."""
        for number in range(order.first_game, order.first_game + order.new_games):
            self._numbers.put(number)
        if not self._begun:
            for player in self._players:
                player.draw_from(self._numbers)
        search_anew, self._begun, self._fresh = self._fresh or not self._begun, True, False
        wanted = max(0, order.num_games - self._surplus)
        until, share = Until(most_seconds=order.seconds), -(-wanted // len(self._players))

        def play(player: SelfPlay) -> Samples:
            return player.play(share, until, search_anew=search_anew)

        if len(self._players) == 1:
            found = [play(self._players[0])]
        else:  # a GPU searches for one while the other's moves are played
            with ThreadPoolExecutor(len(self._players)) as pool:
                found = list(pool.map(play, self._players))
        ended = np.concatenate([player.ended_games() for player in self._players])
        self._surplus = max(0, len(ended) + self._surplus - order.num_games)
        counts = sum((player.counts() for player in self._players), SelfPlayCounts())
        cpu = time.process_time()
        shown = [game for player in self._players for game in player.finished_games()][:4] if order.show else []
        chunk = Chunk(Samples.join(found), ended, counts - self._counts, int(1000 * (cpu - self._cpu)), shown)
        self._counts, self._cpu = counts, cpu
        return pack(chunk)
