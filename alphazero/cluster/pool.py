"""Hosts on the machines of a cluster, kept at work: placed, asked, replaced when they are lost, refused if they differ.

A pool runs on a thread of its own. It has one host for each core, or for each GPU of a machine that has some. Every
host has DEPTH calls at most, so that it never waits for the next. A host that dies, cannot do its work, or says nothing
for longer than the work allows, loses its calls, and another one takes its place; whatever it answers later is heard by
nobody. A machine whose hosts fail again and again is left out, and so is one with another version of the code.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import math
import os
import re
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from alphazero.cluster.connection import Cluster, ClusterError, Machine
from alphazero.errors import InputError, shorten
from alphazero.fingerprint import framework_fingerprint

logger = logging.getLogger(__name__)

DEPTH = 2
"""Calls that a host has at once: one that it works on, and the next."""
PATIENCE_AT_FIRST = 600.0
"""Seconds without an answer after which a host that begins is taken for lost; it may compile its code."""
SECONDS_OF_WAITING = 60.0
"""Without a host that is ready, after which the pool says so."""
SECONDS_BETWEEN_LOOKS = 1.0
"""Between two looks at the machines that are there."""
SECONDS_TO_WAIT = 0.2
"""The longest wait for an answer before the pool looks for other work."""
MOST_FAILURES = 3
"""Hosts that fail in a row, on one machine, before one has played."""
Parcel = tuple[int, list[Any]]
"""A generation, and in a list, so that nobody fetches it sooner, Ray's reference to its files `{name: bytes}`."""
DONE, LOST, UNFIT, BUG = "done", "lost", "unfit", "bug"

# --- on the machines -------------------------------------------------------------------------------------------------


def answering(method: Callable[..., Any]) -> Callable[..., tuple[str, Any]]:
    """The method with its answer behind DONE, why this machine cannot do it behind LOST, a traceback behind BUG."""

    @functools.wraps(method)
    def answer(*arguments: Any) -> tuple[str, Any]:
        try:
            return DONE, method(*arguments)
        except InputError as error:
            return LOST, str(error)
        except (OSError, ImportError, MemoryError) as error:  # its disk is full, a package is missing
            return LOST, f"{type(error).__name__}: {error}"
        except Exception:
            return BUG, traceback.format_exc()

    return answer


class Host:
    """The body of an actor of Ray's: it says which version it has, makes a guest, and passes calls on to it.

    A guest plays games: it has the `fingerprint` of its game, takes weights by `take(generation, files)`, and does what
    an order says by `play(order)`, which returns the games as bytes that can be checked.
    """

    @answering
    def hello(self) -> tuple[str, int]:
        """The version of the framework, and the process."""
        return framework_fingerprint(), os.getpid()

    @answering
    def begin(self, maker: str, settings: Any) -> str:
        """Makes the guest by the function `maker`, as `module:function`; answers with its fingerprint."""
        module, _, name = maker.partition(":")
        self._guest = getattr(importlib.import_module(module), name)(settings)
        self._generation = -1
        return str(self._guest.fingerprint)

    @answering
    def play(self, order: Any, parcel: Parcel | None) -> bytes:
        """Lets the guest play, by the weights of the parcel."""
        if parcel is not None and parcel[0] != self._generation:
            import ray

            try:
                files = ray.get(parcel[1][0])
            except ray.exceptions.RayError as error:  # the disk or the store is full, or who has them is gone
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise InputError(f"it cannot fetch the network that plays ({shorten(reason, 200)})") from error
            self._guest.take(parcel[0], files)
            self._generation = parcel[0]
        content: bytes = self._guest.play(order)
        return content


# --- here ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class RemoteHost:
    """A host, seen from here."""

    number: int
    """Counts hosts since the pool began."""
    machine: Machine
    actor: Any
    pid: int = 0
    stage: str = "hello"
    """`hello` until it has a core and has answered, then `begin`, then `ready`."""
    calls: dict[Any, Any] = field(default_factory=dict)
    """The order behind each reference to an answer."""
    since: float = field(default_factory=time.monotonic)
    """The time of its last answer, or of its first call since it had none."""
    played: bool = False
    """It has done an order."""

    @property
    def device(self) -> str:
        """`cpu` or `cuda`."""
        return "cuda" if self.machine.gpus else "cpu"

    @property
    def name(self) -> str:
        """For people."""
        return f"worker {self.number} on {self.machine}"


class Work(Protocol):
    """The work of a pool. All of it is called on the pool's thread.

    `maker` makes the guest of a host, as `module:function`; `fingerprint` is the version of the game that it must have.
    A host that works is taken for lost after `patience` seconds without an answer.
    """

    maker: str
    fingerprint: str
    patience: float

    def settings(self, host: RemoteHost) -> Any:
        """The argument of the maker."""

    def files(self) -> tuple[int, dict[str, bytes]] | None:
        """New files for all hosts, with a generation that counts up; None as long as nothing is new."""

    def next_order(self, host: RemoteHost) -> Any:
        """An order for a host that has time; None if there is nothing to do now."""

    def take(self, host: RemoteHost, order: Any, content: bytes) -> None:
        """Takes the answer to an order in; raises InputError if it does not fit."""

    def taken(self) -> None:
        """All answers that came together are taken in."""

    def lose(self, host: RemoteHost, orders: Sequence[Any]) -> None:
        """A host is gone, and so are the answers to its orders."""


class Pool:
    """The hosts of one piece of work; `start` it, look at `raise_error` now and then, and `close` it."""

    def __init__(self, cluster: Cluster, work: Work):
        self._cluster, self._work = cluster, work
        self.hosts: list[RemoteHost] = []
        self.num_replaced = 0
        """Hosts that were lost so far."""
        self.refused: dict[str, str] = {}
        """Machines that are not asked any more, by Ray's name for them, each with the reason."""
        self._failures: Counter[str] = Counter()
        self._known: set[str] = set()
        """Machines with room for hosts that have been there, by Ray's name for them."""
        self._parcel: Parcel | None = None
        self._numbers = 0
        self._next_look = 0.0
        self._said_waiting = math.inf
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="cluster", daemon=True)

    def start(self) -> None:
        """Places hosts, and lets them work; a second call does nothing."""
        if self._thread.ident is None and not self._over.is_set():  # a thread that has ended has its error to tell
            self._said_waiting = time.monotonic() + SECONDS_OF_WAITING
            self._thread.start()

    def raise_error(self) -> None:
        """Raises what ended the pool's thread, if anything did."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Ends all hosts; a second call does nothing."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def num_ready(self) -> int:
        """Hosts that play."""
        return sum(host.stage == "ready" for host in self.hosts)

    # --- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                if time.monotonic() >= self._next_look:
                    self._look_around()
                if found := self._work.files():
                    self._parcel = found[0], [self._cluster.ray.put(found[1])]
                for host in self.hosts:
                    self._give_orders(host)
                self._collect()
                self._end_silent_ones()
        except BaseException as error:
            self._error = error
        finally:
            for host in self.hosts:
                self._kill(host)
            self.hosts = []

    def _look_around(self) -> None:
        """Loses the hosts of machines that are gone, and places hosts where there is room."""
        self._next_look = time.monotonic() + SECONDS_BETWEEN_LOOKS
        machines = self._cluster.machines()
        there = {machine.identity for machine in machines}
        for host in [host for host in self.hosts if host.machine.identity not in there]:
            self._lose(host, "its machine is gone")
        self._known |= {machine.identity for machine in machines if machine.room}
        if self.refused and self._known <= self.refused.keys():  # else one that is gone may come back
            raise ClusterError(f"no machine of the cluster can play: {'; '.join(self.refused.values())}")
        usable = [machine for machine in machines if machine.identity not in self.refused]
        counts, most = Counter(host.machine.identity for host in self.hosts), self._cluster.workers or math.inf
        while len(self.hosts) < most and (free := [each for each in usable if counts[each.identity] < each.room]):
            machine = min(free, key=lambda each: counts[each.identity])  # few hosts are spread over many machines
            counts[machine.identity], self._numbers = counts[machine.identity] + 1, self._numbers + 1
            host = RemoteHost(self._numbers, machine, self._cluster.place(Host, machine))
            host.calls[host.actor.hello.remote()] = None
            self.hosts.append(host)
        if not self.num_ready and time.monotonic() > self._said_waiting:
            self._said_waiting = time.monotonic() + SECONDS_OF_WAITING
            logger.warning("no worker of the cluster is ready yet: they wait for free cores, or for machines to come")

    def _give_orders(self, host: RemoteHost) -> None:
        while host.stage == "ready" and len(host.calls) < DEPTH:
            if (order := self._work.next_order(host)) is None:
                return
            if not host.calls:
                host.since = time.monotonic()
            host.calls[host.actor.play.remote(order, self._parcel)] = order

    def _collect(self) -> None:
        """Waits for answers a moment, and takes in all that have come."""
        ray = self._cluster.ray
        if not (hosts := {reference: host for host in self.hosts for reference in host.calls}):
            self._over.wait(SECONDS_TO_WAIT)
            return
        ray.wait(list(hosts), num_returns=1, timeout=SECONDS_TO_WAIT, fetch_local=True)
        done, _ = ray.wait(list(hosts), num_returns=len(hosts), timeout=0, fetch_local=True)
        heard = list[tuple[RemoteHost, Any, str, Any]]()
        for reference in done:
            host = hosts[reference]
            order = host.calls.pop(reference)
            try:
                kind, answer = ray.get(reference)
                host.since = time.monotonic()
            except ray.exceptions.RayError as error:
                kind, answer = LOST, _reason(error)
            if kind != DONE or host.stage != "ready":
                heard.append((host, order, kind, answer))
                continue
            host.played, self._failures[host.machine.identity] = True, 0
            try:
                self._work.take(host, order, answer)
            except InputError as error:
                heard.append((host, order, UNFIT, f"what it sent does not fit: {error}"))
        self._work.taken()
        for host, order, kind, answer in heard:  # only now: what a host has played before it was lost counts
            if kind == UNFIT:
                self._refuse(host.machine, answer)
            if kind == BUG:
                raise RuntimeError(f"in {host.name}:\n{answer}")
            if kind == DONE:
                self._promote(host, answer)
            else:
                self._lose(host, answer, order)

    def _promote(self, host: RemoteHost, answer: Any) -> None:
        """Takes a host that has the right version from one stage to the next."""
        what, theirs, ours = "the game", answer, self._work.fingerprint
        if host.stage == "hello":
            what, (theirs, host.pid), ours = "alphazero", answer, framework_fingerprint()
        if theirs != ours:
            self._refuse(host.machine, f"it has another version of {what} ({theirs}, and here it is {ours})")
        elif host.stage == "hello":
            host.stage = "begin"
            host.calls[host.actor.begin.remote(self._work.maker, self._work.settings(host))] = None
        else:
            host.stage = "ready"

    def _end_silent_ones(self) -> None:
        now = time.monotonic()
        for host in list(self.hosts):
            # one that has not said hello waits for a free core
            patience = {"hello": math.inf, "ready": self._work.patience}.get(host.stage, PATIENCE_AT_FIRST)
            if host.calls and now - host.since > patience:
                self._lose(host, f"it has said nothing for {patience:.0f} s")

    # --- losing hosts ------------------------------------------------------------------------------------------------

    def _lose(self, host: RemoteHost, reason: str, order: Any = None) -> None:
        """A host is gone, and its answer to that order; the next look around places another one."""
        there = host in self.hosts  # else another of its answers has said so, or its machine was left out
        self._remove(host, order)
        if not there:
            return
        logger.warning("%s is lost: %s; another one takes its place", host.name, reason)
        self.num_replaced += 1
        if not host.played:
            self._failures[host.machine.identity] += 1
            if self._failures[host.machine.identity] >= MOST_FAILURES:
                self._refuse(host.machine, f"{MOST_FAILURES} workers in a row could not play, the last one: {reason}")

    def _refuse(self, machine: Machine, reason: str) -> None:
        """The machine is not asked again."""
        if machine.identity not in self.refused:
            self.refused[machine.identity] = f"{machine}: {shorten(reason, 300)}"
            logger.warning("the cluster's machine %s is left out: %s", machine, shorten(reason, 300))
        for host in [host for host in self.hosts if host.machine.identity == machine.identity]:
            self._remove(host)

    def _remove(self, host: RemoteHost, order: Any = None) -> None:
        self._work.lose(host, [each for each in (order, *host.calls.values()) if each is not None])
        host.calls = {}
        if host in self.hosts:
            self.hosts.remove(host)
            self._kill(host)

    def _kill(self, host: RemoteHost) -> None:
        with contextlib.suppress(Exception):  # it is gone already, or the head is
            self._cluster.ray.kill(host.actor, no_restart=True)


def _reason(error: Exception) -> str:
    """Ray's words for the loss of an actor, less its advice."""
    if lacks := re.findall(r"^\s*((?:ModuleNotFound|Import)Error.*)", str(error), re.M):
        return f"a module cannot be imported there ({shorten(lacks[-1], 200)})"
    if type(error).__name__ in ("ActorDiedError", "ActorUnavailableError"):
        told = re.search(r"^.*(?:exit|died).*", str(error), re.M | re.I)
        return f"its process has died ({shorten(told[0].strip() if told else 'no reason is known', 160)})"
    return shorten(" ".join(str(error).split()), 200) or type(error).__name__
