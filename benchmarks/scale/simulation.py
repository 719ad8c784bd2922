"""A discrete-event simulation of a run on a cluster: what every part waits for, and where it is used up.

The parts are those of `alphazero.cluster`: hosts that play orders and lose them
when they die; a network into the coach's machine; one thread that checks answers and writes what has arrived; and a
learner that begins when a generation has arrived, while hosts play on until the next one waits. Hosts on the machine
of a learner that takes all its cores stand still instead.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from alphazero.cluster.pool import DEPTH
from alphazero.cluster.self_play import SECONDS_OF_ORDER, games_of_order
from alphazero.training.config import RunConfig

PARTS = "workers", "learner", "ingest", "network"


@dataclass(frozen=True)
class Costs:
    """What the parts of a run take; seconds and bytes."""

    positions_per_s: float
    """One host."""
    plies_per_game: float
    bytes_per_position: float
    message_seconds: float
    """From the end of an order to its answer at the coach, on a network that is free."""
    answer_seconds: float
    """The coach's thread, for each answer: taking it, checking it."""
    position_seconds: float
    """The same for each position: unpacking, packing, writing."""
    host_seconds: float
    """The same for each host, whether it has answered or not, each time that the thread looks."""
    write_seconds: float
    """Making one file durable, however many answers are in it."""
    update_seconds: float
    """One update of the network, by a learner that has its cores to itself."""
    gate_seconds: float
    """The gate, the benchmark and the checkpoint of a generation."""
    weights_bytes: float


@dataclass(frozen=True)
class Setting:
    """A run and its cluster."""

    workers: int
    games_per_generation: int = 1024
    batch_size: int = 512
    sample_reuse: float = 1.6
    workers_per_machine: int = 16
    bytes_per_s: float = 125e6
    """Into the coach's machine: one gigabit a second."""
    life_seconds: float = math.inf
    """The mean life of a host, as of a spot instance."""
    seconds_to_replace: float = 60.0
    slow_share: float = 0.0
    """Hosts that are ten times slower."""
    spread: float = 0.1
    """The standard deviation of an order's time, as a share of it."""
    rest_while_learning: bool = False
    """All hosts are on the machine of a learner that takes all its cores: while it learns they stand still, since they
    have a lower priority."""
    generations: int = 24
    seed: int = 0


def setting_of(config: RunConfig, workers: int) -> Setting:
    """The simulated run of those settings."""
    return Setting(
        workers, config.self_play.games_per_generation, config.learner.batch_size, config.learner.sample_reuse
    )


@dataclass
class Outcome:
    """The figures of a simulated run, after its first quarter."""

    workers: int
    games_per_s: float
    positions_per_s: float
    seconds_per_generation: float
    workers_busy: float
    """The share of their time that hosts play, and so on for the other parts."""
    learner_busy: float
    ingest_busy: float
    network_busy: float
    age: float
    """Networks that took over since a game began, on average."""
    lost_games: float
    """Games that died with their host, for each game that counted."""
    bottleneck: str = ""

    def __post_init__(self) -> None:
        self.bottleneck = max(PARTS, key=lambda name: getattr(self, f"{name}_busy"))


@dataclass
class _Host:
    life: int = 0
    """Counts its deaths: events of an earlier life mean nothing."""
    alive: bool = True
    calls: int = 0
    """Orders whose answers the coach has not taken yet."""
    orders: int = 0
    """Orders that are still to be played."""
    playing: bool = False
    slow: float = 1.0
    """Its orders take so many times as long."""
    left: float = 0.0
    """Seconds of its order that were to be played at `mark`, when it began or went on."""
    mark: float = 0.0
    games: int = 0
    """Of its order."""
    version: int = 0
    plan: int = 0
    """Counts its plans to finish: earlier ones mean nothing."""


@dataclass
class _Tally:
    since: float = 0.0
    games: int = 0
    ages: int = 0
    lost: int = 0
    generations: int = 0
    busy: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))


class Simulation:
    """One run. Events are `(time, number, action)`; every action may plan others."""

    def __init__(self, costs: Costs, setting: Setting):
        self.costs, self.setting = costs, setting
        self.rng = np.random.default_rng(setting.seed)
        self.now, self._count = 0.0, 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self.order_games = games_of_order(setting.games_per_generation / setting.workers)
        slow = round(setting.slow_share * setting.workers)
        self.hosts = [_Host(slow=10.0 if i < slow else 1.0) for i in range(setting.workers)]
        self.waiting: deque[tuple[int, int]] = deque()
        """Games that have arrived, and the version of their weights."""
        self.num_waiting = self.version = self.generation = 0
        self._answers: list[tuple[int, int]] = []
        self._ingesting = self._learning = False
        self._network_free = 0.0
        self.tally = _Tally()

    def run(self) -> Outcome:
        """Plays all generations; returns the figures of the last three quarters."""
        self._give_orders()
        for host in self.hosts:
            self._plan_death(host)
        warm_up = self.setting.generations // 4
        counted_from_here = warm_up == 0
        while self.generation < self.setting.generations:
            self.now, _, action = heapq.heappop(self._events)
            action()
            if not counted_from_here and self.generation >= warm_up:
                counted_from_here, self.tally = True, _Tally(since=self.now)
        return self._outcome()

    def _outcome(self) -> Outcome:
        tally, seconds = self.tally, self.now - self.tally.since
        there = {"workers": self.setting.workers}
        busy = {name: min(1.0, value / seconds / there.get(name, 1)) for name, value in tally.busy.items()}
        games = tally.games / seconds
        return Outcome(
            self.setting.workers, games, games * self.costs.plies_per_game, seconds / max(1, tally.generations),
            busy["workers"], busy["learner"], busy["ingest"], busy["network"],
            tally.ages / max(1, tally.games), tally.lost / max(1, tally.games),
        )  # fmt: skip

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, action))

    # --- hosts -------------------------------------------------------------------------------------------------------

    def _give_orders(self) -> None:
        if self._learning and self.setting.rest_while_learning:
            return
        for host in self.hosts:
            while host.alive and host.calls < DEPTH and self.num_waiting < self.setting.games_per_generation:
                host.calls, host.orders = host.calls + 1, host.orders + 1
            self._begin(host)

    def _begin(self, host: _Host) -> None:
        """The next order, which lies there already."""
        if not host.alive or host.playing or not host.orders:
            return
        host.playing, host.orders = True, host.orders - 1
        seconds = self.order_games * self.costs.plies_per_game / self.costs.positions_per_s * host.slow
        games = self.order_games
        if seconds > SECONDS_OF_ORDER:  # tells what it has by then
            games = int(self.rng.poisson(games * SECONDS_OF_ORDER / seconds))
            seconds = SECONDS_OF_ORDER
        seconds *= max(0.1, 1 + self.setting.spread * self.rng.standard_normal())
        host.left, host.games, host.version = seconds, games, self.version
        self._plan_end(host)

    def _plan_end(self, host: _Host) -> None:
        host.mark, host.plan = self.now, host.plan + 1
        plan = host.plan
        self._after(host.left, lambda: self._finish(host, plan))

    def _stand_still(self) -> None:
        for host in self.hosts:
            if host.playing:
                played = self.now - host.mark
                self.tally.busy["workers"] += played
                host.left, host.plan = host.left - played, host.plan + 1

    def _go_on(self) -> None:
        for host in self.hosts:
            if host.playing:
                self._plan_end(host)
        self._give_orders()

    def _finish(self, host: _Host, plan: int) -> None:
        if plan != host.plan:
            return
        host.playing = False
        games, version, life = host.games, host.version, host.life
        self.tally.busy["workers"] += self.now - host.mark
        self._begin(host)
        size = games * self.costs.plies_per_game * self.costs.bytes_per_position / self.setting.bytes_per_s
        begin = max(self.now, self._network_free)
        self._network_free = begin + size
        self.tally.busy["network"] += size
        self._after(
            self._network_free - self.now + self.costs.message_seconds, lambda: self._arrive(host, life, games, version)
        )

    def _plan_death(self, host: _Host) -> None:
        if self.setting.life_seconds < math.inf:
            self._after(self.rng.exponential(self.setting.life_seconds), lambda: self._die(host))

    def _die(self, host: _Host) -> None:
        self.tally.lost += host.games * host.playing
        host.life, host.alive, host.playing, host.calls, host.orders = host.life + 1, False, False, 0, 0
        host.plan += 1
        self._after(self.setting.seconds_to_replace, lambda: self._come_back(host))

    def _come_back(self, host: _Host) -> None:
        host.alive = True
        self._plan_death(host)
        self._give_orders()  # nobody else may be there whose answer would remind the coach

    # --- the coach ---------------------------------------------------------------------------------------------------

    def _arrive(self, host: _Host, life: int, games: int, version: int) -> None:
        if life == host.life:
            host.calls -= 1
            self._answers.append((games, version))
        self._ingest()

    def _ingest(self) -> None:
        """The pool's thread takes all answers that are there at once."""
        if self._ingesting or not self._answers:
            return
        self._ingesting, taken, self._answers = True, self._answers, []
        positions = sum(games for games, _ in taken) * self.costs.plies_per_game
        seconds = len(taken) * self.costs.answer_seconds + positions * self.costs.position_seconds
        seconds += self.costs.write_seconds + self.costs.host_seconds * self.setting.workers
        self.tally.busy["ingest"] += seconds
        self._after(seconds, lambda: self._taken(taken))

    def _taken(self, answers: list[tuple[int, int]]) -> None:
        self._ingesting = False
        self.waiting += [answer for answer in answers if answer[0]]
        self.num_waiting += sum(games for games, _ in answers)
        self._learn()
        self._give_orders()
        self._ingest()

    def _learn(self) -> None:
        setting = self.setting
        if self._learning or self.num_waiting < setting.games_per_generation:
            return
        games = ages = 0
        while games < setting.games_per_generation:
            found, version = self.waiting.popleft()
            games += found
            ages += found * (self.version - version)
        self.num_waiting -= games
        self._learning = True
        if setting.rest_while_learning:
            self._stand_still()
        updates = math.ceil(games * self.costs.plies_per_game * setting.sample_reuse / setting.batch_size)
        seconds = updates * self.costs.update_seconds + self.costs.gate_seconds
        self.tally.busy["learner"] += seconds
        self._after(seconds, lambda: self._commit(games, ages))
        self._give_orders()

    def _commit(self, games: int, ages: int) -> None:
        """The new network takes over: every machine fetches it once."""
        self._learning = False
        self.tally.games, self.tally.ages = self.tally.games + games, self.tally.ages + ages
        machines = math.ceil(self.setting.workers / self.setting.workers_per_machine)
        size = machines * self.costs.weights_bytes / self.setting.bytes_per_s
        self._network_free = max(self.now, self._network_free) + size
        self.tally.busy["network"] += size
        self.version, self.generation = self.version + 1, self.generation + 1
        self.tally.generations += 1
        if self.setting.rest_while_learning:
            self._go_on()
        self._learn()


def simulate(costs: Costs, setting: Setting) -> Outcome:
    """The figures of a run with that cluster."""
    return Simulation(costs, setting).run()
