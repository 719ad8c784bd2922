"""Self-play on a cluster: one `Worker` that stands for all hosts, however many there are at the time.

`RemotePlayer` plays inside of a host, for a moment at a time, by the weights that it was given last.
"""

from __future__ import annotations

import bisect
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from alphazero.cluster.connection import Cluster
from alphazero.cluster.pool import Pool, RemoteHost
from alphazero.errors import StorageError, count_of
from alphazero.fingerprint import game_fingerprint
from alphazero.machine import count_cores
from alphazero.nets.devices import see_only
from alphazero.nets.neural_net import Trainer
from alphazero.nets.torch_trainer import MOST_THREADS
from alphazero.search.placement import make_evaluators
from alphazero.storage.checkpoint import checkpoint_bytes
from alphazero.training.config import RunConfig
from alphazero.training.parts.arrivals import Chunk, pack, unpack
from alphazero.training.plan import Assignment, Workers
from alphazero.training.replay_buffer import Samples, no_samples
from alphazero.training.selfplay import NO_LIMIT, FinishedGame, SelfPlay, SelfPlayCounts, Until, Worker
from alphazero.training.selfplay.calibration import compile_all
from alphazero.training.selfplay.games import saved_arrays
from alphazero.training.selfplay.worker import LEAST_GAMES, play_games
from alphazero.training.worker_process import TrainingJob, WorkerSettings, make_net

logger = logging.getLogger(__name__)

MOST_AGE = 8
"""Networks that may have taken over self-play since a game began; older games are left out."""
LEAST_ORDERS, MOST_ORDERS, SMALL_ORDER = 8, 24, 8
"""Orders of each host in a generation, and games of an order below which there are as few as LEAST_ORDERS. More orders
let a host take new weights sooner, and all hosts end together; each costs the coach some milliseconds."""
SECONDS_OF_ORDER = 2.0
"""The longest order: after so long a worker tells what it has."""
PATIENCE = 60.0
"""Seconds without an answer after which a worker is taken for lost: many times the longest order."""
PAUSE = 0.1
CHECKPOINT = "weights.safetensors"
CARD = "weights.json"
"""The checkpoint in a parcel, and its card."""

# --- inside of a host ------------------------------------------------------------------------------------------------


class Order(NamedTuple):
    """Some games to play: until `num_games` are over, or `seconds` have passed.

    Games may begin with the numbers `first_game` to `first_game + new_games - 1`. `show` sends a few along for people.
    """

    first_game: int
    new_games: int
    num_games: int
    seconds: float
    show: bool


class NumberedSelfPlay(SelfPlay):
    """Self-play whose games have the numbers that somebody hands out."""

    numbers: SimpleQueue[int]
    fresh = True
    """The weights are new since the last call of `play`."""

    def play(self, num_games: int, until: Until = NO_LIMIT, search_anew: bool = False) -> Samples:
        fresh, self.fresh = self.fresh, False
        return super().play(num_games, until, fresh or search_anew)

    def _take_numbers(self, count: int) -> np.ndarray:
        return np.array([self.numbers.get_nowait() for _ in range(count)], np.int64)


class RemotePlayer:
    """The guest of a host that plays for a run; see `alphazero.cluster.pool.Host`."""

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
        for player in self._players:
            player.numbers = self._numbers
        self._begun = False
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
            player.weights, player.fresh = generation, True

    def play(self, order: Order) -> bytes:
        """A chunk of games that are over; the others go on with the next order."""
        for number in range(order.first_game, order.first_game + order.new_games):
            self._numbers.put(number)
        if not self._begun:
            for player in self._players:
                player.begin_at(0)
        self._begun = True
        wanted = max(0, order.num_games - self._surplus)
        # a GPU searches for one player while the other's moves are played
        samples = play_games(self._players, wanted, self._net.use_threads, Until(most_seconds=order.seconds))
        ended = np.concatenate([player.ended_games() for player in self._players])
        self._surplus = max(0, len(ended) + self._surplus - order.num_games)
        counts = sum((player.counts() for player in self._players), SelfPlayCounts())
        cpu = time.process_time()
        shown = [game for player in self._players for game in player.finished_games()][:4] if order.show else []
        chunk = Chunk(samples, ended, counts - self._counts, int(1000 * (cpu - self._cpu)), shown)
        self._counts, self._cpu = counts, cpu
        return pack(chunk)


# --- here ------------------------------------------------------------------------------------------------------------


def games_of_order(games: float) -> int:
    """Games in one order, for a host that plays `games` in a generation."""
    return max(1, int(games / MOST_ORDERS), min(SMALL_ORDER, int(games / LEAST_ORDERS)))


@dataclass
class _Ledger:
    """The games that a host plays at once, and the numbers that it was given and that have not come back."""

    slots: int
    numbers: set[int] = field(default_factory=set)
    orders: int = 0
    """Games that orders under way ask for."""


class AllHosts(Worker):
    """A `Worker` that is all hosts of a cluster together, and the work of their pool."""

    maker = "alphazero.cluster.self_play:RemotePlayer"
    patience = PATIENCE
    num_slots = 0
    """The games in progress are elsewhere, and are not saved."""

    def __init__(self, cluster: Cluster, assignment: Assignment):
        plan = self._plan = assignment.plan
        self._cluster, self._assignment, self.inbox = cluster, assignment, assignment.arrivals
        self.fingerprint = game_fingerprint(plan.loaded.game)
        self.wanted = plan.config.self_play.games_per_generation
        self.versions = assignment.versions
        """The generations whose networks took over self-play, in ascending order."""
        self._lock = threading.Lock()  # held while the versions grow: the coach and the pool both see to it
        self._ledgers: dict[int, _Ledger] = {}
        self._next_game = 0
        self._counts, self.cpu_seconds = SelfPlayCounts(), 0.0
        self.bytes = self.positions = 0
        self._chunks: list[Chunk] = []
        self._shown: list[FinishedGame] = []
        self._wants_shown = True
        self._sent: int | None = None
        self._arrived = threading.Event()
        self.resting: str | None = None  # the machine on which the network learns now: its hosts get no orders
        self.began: float | None = None
        self.counted, self._playing_now = SelfPlayCounts(), False
        """The end of the last call of `play`, and the counts of then."""
        self.pool = Pool(cluster, self)

    # --- as Work ------------------------------------------------------------------------------------------------------

    def settings(self, host: RemoteHost) -> WorkerSettings:
        slots = slots_of_host(self._plan.config, expected_hosts(self._cluster))
        self._ledgers[host.number] = _Ledger(slots * (2 if host.device == "cuda" else 1))
        return self._plan.worker_settings(
            self._assignment.sizes, device=host.device, inference=self._assignment.inference, deterministic=False,
            threads=1, num_slots=slots,
        )  # fmt: skip

    def files(self) -> tuple[int, dict[str, bytes]] | None:
        generation, path = self.note_version()
        if generation == self._sent:
            return None
        self._sent = generation
        return generation, dict(zip((CHECKPOINT, CARD), checkpoint_bytes(path), strict=True))

    def note_version(self) -> tuple[int, Path]:
        """Counts the network that plays as one that has taken over; returns its generation and checkpoint."""
        with self._lock:
            generation, path = self._assignment.playing()
            if not self.versions or generation > self.versions[-1]:
                self.versions.append(generation)
        return generation, path

    def next_order(self, host: RemoteHost) -> Order | None:
        # if its games suffice for the next generation, the learner is behind
        if host.machine.identity == self.resting or self.inbox.num_games >= self.wanted:
            return None
        ledger, num_games = self._ledgers[host.number], games_of_order(self.wanted / len(self._ledgers))
        # all slots, as many again if all their games end at once, and the games of orders under way
        first, new = self._next_game, max(0, 2 * ledger.slots + ledger.orders + num_games - len(ledger.numbers))
        ledger.numbers |= set(range(first, first + new))
        self._next_game += new
        ledger.orders += num_games
        show, self._wants_shown = self._wants_shown, False
        return Order(first, new, num_games, SECONDS_OF_ORDER, show)

    def take(self, host: RemoteHost, order: Order, content: bytes) -> None:
        ledger, where = self._ledgers[host.number], f"a chunk of {host.name}"
        ledger.orders -= order.num_games
        chunk = unpack(content, where, self._plan.loaded.game, len(ledger.numbers))
        numbers = set(chunk.games[:, 0].tolist())
        if not ledger.numbers >= numbers:
            raise StorageError(f"{where}: it holds games that nobody asked it for")
        if (chunk.games[:, 2] > self.versions[-1]).any():
            raise StorageError(f"{where}: it names weights that have never played")
        ledger.numbers -= numbers
        self._counts += chunk.counts
        self.cpu_seconds += chunk.cpu_milliseconds / 1000
        self.bytes, self.positions = self.bytes + len(content), self.positions + len(chunk.samples)
        self._shown = chunk.shown or self._shown
        self._wants_shown |= order.show and not chunk.shown
        self._chunks.append(chunk)

    def taken(self) -> None:
        chunks, self._chunks = self._chunks, []
        self.inbox.add(chunks)
        self._arrived.set()

    def lose(self, host: RemoteHost, orders: Sequence[Order]) -> None:
        self._ledgers.pop(host.number, None)
        self._wants_shown |= any(order.show for order in orders)

    # --- as Worker ----------------------------------------------------------------------------------------------------

    def counts(self) -> SelfPlayCounts:
        """As of the last call of `play`; while it plays, those of now. So games count that arrived in between."""
        return self._counts if self._playing_now else self.counted

    def play(self, num_games: int, until: Until = NO_LIMIT) -> Samples:
        """Waits until so many games have arrived, and takes them; raises what has ended the pool."""
        begin = time.monotonic()
        self.pool.start()
        self._playing_now = True
        try:
            while not until.is_over():
                self.inbox.leave_out(self.oldest())
                self.pool.raise_error()
                passed = time.monotonic() - begin
                enough = num_games if passed <= until.seconds else min(num_games, LEAST_GAMES)
                if self.inbox.num_games >= enough or passed > until.most_seconds:
                    break
                self._arrived.wait(PAUSE)
                self._arrived.clear()
            taken = self.inbox.take(num_games)
            self.last = taken or Chunk(no_samples(self._plan.loaded.game), np.empty((0, 3), np.int64))
            return self.last.samples
        finally:
            self.counted, self.began, self._playing_now = self._counts, time.monotonic(), False
            self._wants_shown = True

    def oldest(self) -> int:
        """The oldest generation whose weights may have played in a game."""
        return self.versions[-1 - MOST_AGE] if len(self.versions) > MOST_AGE else 0

    def ages(self) -> np.ndarray:
        """For each game that `play` has taken, the networks that took over since its first weights: `int64[n]`."""
        versions = self.versions
        return np.array([len(versions) - bisect.bisect_right(versions, w) for w in self.last.games[:, 2]], np.int64)

    def finished_games(self) -> list[FinishedGame]:
        return self._shown

    def state(self) -> dict[str, np.ndarray]:
        none = {name: array.zeros() for name, array in saved_arrays(self._plan.loaded.game, 0).items()}
        return {**none, "next_game": np.array(self._next_game, np.int64)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self.begin_at(int(state["next_game"]))

    def begin_at(self, first_game: int) -> None:
        self._next_game = max(self._next_game, first_game)


class ClusterWorkers(Workers):
    """The hosts of a cluster; learning stays here, on one device."""

    keeps_games = False
    num_slots = 0

    def __init__(self, cluster: Cluster, assignment: Assignment):
        self._plan, self._cluster, self.inbox = assignment.plan, cluster, assignment.arrivals
        self.worker = AllHosts(cluster, assignment)
        self.pool = self.worker.pool
        self.all = [self.worker]

    def describe(self) -> str:
        slots = slots_of_host(self._plan.config, expected_hosts(self._cluster))
        return f"on {self._cluster.describe()}: each worker plays {count_of(slots, 'game')} at once"

    def start(self) -> None:
        self.pool.start()

    def close(self) -> None:
        self.pool.close()

    def begin_counting(self) -> tuple[float, SelfPlayCounts]:
        """The time and the counts from which a generation's games count: hosts play on while the network learns."""
        return self.worker.began or time.monotonic(), self.worker.counted

    def forget(self) -> None:
        """Lets all hosts get orders again, once it is known which network plays; older games age by it."""
        self.worker.note_version()
        self.worker.resting = None

    def share_of_network(self, played: SelfPlayCounts, seconds: float) -> float | None:
        return None  # the machines differ

    @property
    def share_of_match(self) -> float:
        return 1 / max(1, self.pool.num_ready)

    def figures(self) -> dict[str, Any]:
        """Figures of the games that the last call of `play` has taken."""
        worker, ages, taken = self.worker, self.worker.ages(), self.worker.last
        return {
            "games": taken.num_games,
            "plies_per_game": round(len(taken.samples) / max(1, taken.num_games), 2),
            "cluster_workers": self.pool.num_ready,
            "workers_replaced": self.pool.num_replaced,
            "games_waiting": self.inbox.num_games,
            "games_left_out": self.inbox.count_left_out(),
            "weights_age": round(float(ages.mean()), 3) if len(ages) else 0.0,
            "oldest_weights_age": int(ages.max(initial=0)),
            "bytes_per_position": round(worker.bytes / max(1, worker.positions), 1),
        }

    def arrays(self) -> dict[str, dict[str, np.ndarray]]:
        """The numbers of the games that the last call of `play` has taken."""
        return {"played": {"games": self.worker.last.games}}

    def learn(self, trainer: Trainer, job: TrainingJob, learn_here: Callable[[], Any]) -> Any:
        """Calls `learn_here`; if it takes all cores of this machine, hosts here get no orders until `forget`.

        They would slow it down with games by the last weights. Hosts elsewhere play on.
        """
        if self._plan.device_kinds == ["cpu"] and min(self._plan.threads, MOST_THREADS) >= count_cores():
            self.worker.resting = self._cluster.here()
        return learn_here()


def slots_of_host(config: RunConfig, num_hosts: int) -> int:
    """Games that each of so many hosts plays at once: together no more than a generation has."""
    return min(config.self_play.num_slots, max(1, config.self_play.games_per_generation // num_hosts))


def expected_hosts(cluster: Cluster) -> int:
    """The hosts that fit on the machines that are there now."""
    there = sum(machine.room for machine in cluster.machines())
    return max(1, min(there, cluster.workers or there))
