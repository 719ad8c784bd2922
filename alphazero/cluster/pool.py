"""Hosts on the machines of a cluster, kept at work: placed, asked, replaced when they are lost, refused if they differ.

A pool runs on a thread of its own. It has one host for each core, or for each GPU of a machine that has some. Every
host has DEPTH calls at most, so that it never waits for the next. A host that dies, cannot do its work, or says nothing
for longer than the work allows, loses its calls, and another one takes its place; whatever it answers later is heard by
nobody. A machine whose hosts fail again and again is left out, and so is one with another version of the code.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from alphazero.cluster.access import ClusterError
from alphazero.cluster.connection import Cluster, Node
from alphazero.cluster.host import BUG, DONE, Host, Parcel
from alphazero.errors import shorten
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
"""The longest wait for an answer before the pool looks whether there is other work."""
MOST_FAILURES = 3
"""Hosts that fail in a row, on one machine, before one has played."""


@dataclass(eq=False)
class Seat:
    """A host, seen from here."""

    number: int
    """Counts hosts since the pool began."""
    node: Node
    device: str
    """`cpu` or `cuda`."""
    actor: Any
    pid: int = 0
    """The number of its process there, once it has answered."""
    stage: str = "hello"
    """`hello`, `load`, `there`, `begin`, then `ready`."""
    calls: dict[Any, Any] = field(default_factory=dict)
    """The order behind each reference to an answer."""
    since: float = field(default_factory=time.monotonic)
    """The time of its last answer, or of its first call since it had none."""
    heard: bool = False
    """It has answered once, so it does not wait for a free core any more."""
    played: bool = False
    """It has done an order."""

    @property
    def name(self) -> str:
        """For people."""
        return f"worker {self.number} on {self.node.name}"


class Work(Protocol):
    """The work of a pool. All of it is called on the pool's thread."""

    maker: str
    """Makes the guest of a host, as `module:function`."""
    fingerprint: str
    """The version of the game that a guest must have."""
    patience: float
    """Seconds without an answer after which a host that works is taken for lost."""

    def settings(self, seat: Seat) -> Any:
        """The argument of the maker."""

    def files(self) -> tuple[int, dict[str, bytes]] | None:
        """New files for all hosts, with a generation that counts up; None as long as nothing is new."""

    def next_order(self, seat: Seat) -> Any:
        """An order for a host that has time; None if there is nothing to do now."""

    def take(self, answers: Sequence[tuple[Seat, Any, bytes]]) -> list[Seat]:
        """Takes answers in, each with the order behind it; returns the hosts whose answers do not fit."""

    def lose(self, seat: Seat, orders: Sequence[Any]) -> None:
        """A host is gone, and so are the answers to its orders."""


class Pool:
    """The hosts of one piece of work; `start` it, look at `raise_error` now and then, and `close` it.

    Where the work itself has yet to get ready, `place` the hosts before: they load their code meanwhile.
    """

    def __init__(self, cluster: Cluster, work: Work):
        self._cluster, self._work = cluster, work
        self.seats: list[Seat] = []
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
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cluster", daemon=True)

    def place(self) -> None:
        """Begins to place hosts, which load their code and wait; a second call does nothing."""
        if self._thread.ident is None and not self._over.is_set():  # a thread that has ended has its error to tell
            self._thread.start()

    def start(self) -> None:
        """Lets hosts begin their work, and places them before if that has not begun; a second call does nothing."""
        if not self._started.is_set():
            self._said_waiting = time.monotonic() + SECONDS_OF_WAITING
            self._started.set()
        self.place()

    def raise_error(self) -> None:
        """Raises what ended the pool's thread, if anything did."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Ends all hosts; a second call does nothing."""
        self._over.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    @property
    def num_ready(self) -> int:
        """Hosts that play."""
        return sum(seat.stage == "ready" for seat in self.seats)

    # --- the thread --------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                if time.monotonic() >= self._next_look:
                    self._look_around()
                if self._started.is_set():
                    self._send_files()
                    for seat in self.seats:
                        self._begin(seat)
                        self._give_orders(seat)
                self._collect()
                self._end_silent_ones()
        except BaseException as error:
            self._error = error
        finally:
            for seat in self.seats:
                self._kill(seat)
            self.seats = []

    def _look_around(self) -> None:
        """Loses the hosts of machines that are gone, and places hosts where there is room."""
        self._next_look = time.monotonic() + SECONDS_BETWEEN_LOOKS
        nodes = self._cluster.nodes()
        there = {node.identity for node in nodes}
        for seat in [seat for seat in self.seats if seat.node.identity not in there]:
            self._lose(seat, "its machine is gone")
        self._known |= {node.identity for node in nodes if node.room}
        if self.refused and self._known <= self.refused.keys():  # else one that is gone may come back
            raise ClusterError(f"no machine of the cluster can play: {'; '.join(self.refused.values())}")
        usable = [node for node in nodes if node.identity not in self.refused]
        counts = Counter(seat.node.identity for seat in self.seats)
        most = self._cluster.workers or math.inf
        while len(self.seats) < most and (free := [node for node in usable if counts[node.identity] < node.room]):
            node = min(free, key=lambda node: counts[node.identity])  # few hosts are spread over many machines
            counts[node.identity] += 1
            self._place(node)
        if not self.num_ready and time.monotonic() > self._said_waiting:
            self._said_waiting = time.monotonic() + SECONDS_OF_WAITING
            logger.warning("no worker of the cluster is ready yet: they wait for free cores, or for machines to come")

    def _place(self, node: Node) -> None:
        self._numbers += 1
        actor = self._cluster.place(Host, node)
        seat = Seat(self._numbers, node, "cuda" if node.gpus else "cpu", actor)
        seat.calls[actor.hello.remote()] = None
        self.seats.append(seat)

    def _send_files(self) -> None:
        if found := self._work.files():
            generation, files = found
            self._parcel = Parcel(generation, [self._cluster.ray.put(files)])

    def _begin(self, seat: Seat) -> None:
        if seat.stage == "there":
            seat.stage, seat.since = "begin", time.monotonic()
            seat.calls[seat.actor.begin.remote(self._work.maker, self._work.settings(seat))] = None

    def _give_orders(self, seat: Seat) -> None:
        while seat.stage == "ready" and len(seat.calls) < DEPTH:
            order = self._work.next_order(seat)
            if order is None:
                return
            if not seat.calls:
                seat.since = time.monotonic()
            seat.calls[seat.actor.play.remote(order, self._parcel)] = order

    def _collect(self) -> None:
        """Waits for answers a moment, and takes in all that have come."""
        ray = self._cluster.ray
        seats = {reference: seat for seat in self.seats for reference in seat.calls}
        if not seats:
            self._over.wait(SECONDS_TO_WAIT)
            return
        references = list(seats)
        lost, refused = list[tuple[Seat, str, list[Any]]](), list[tuple[Seat, str]]()
        done, _ = ray.wait(references, num_returns=1, timeout=SECONDS_TO_WAIT, fetch_local=True)
        if done and len(references) > 1:
            done, _ = ray.wait(references, num_returns=len(references), timeout=0, fetch_local=True)
        answers = []
        for reference in done:
            seat = seats[reference]
            order = seat.calls.pop(reference)
            try:
                kind, answer = ray.get(reference)
            except ray.exceptions.RayError as error:
                lost.append((seat, _reason(error), [order]))
                continue
            seat.since, seat.heard = time.monotonic(), True
            if kind == BUG:
                raise RuntimeError(f"in {seat.name}:\n{answer}")
            if kind != DONE:
                lost.append((seat, str(answer), [order]))
            elif seat.stage == "ready" and not isinstance(answer, bytes):
                lost.append((seat, f"it has answered with {type(answer).__name__} instead of bytes", [order]))
            elif seat.stage == "ready":
                seat.played, self._failures[seat.node.identity] = True, 0
                answers.append((seat, order, answer))
            elif reason := self._promote(seat, answer):
                refused.append((seat, reason))
        # only now: what a host has answered before it was lost counts
        refused += [(seat, "what it sent does not fit") for seat in (self._work.take(answers) if answers else ())]
        for seat, reason in refused:
            self._refuse(seat, reason)
        for seat, reason, orders in lost:
            self._lose(seat, reason, orders)

    def _promote(self, seat: Seat, answer: Any) -> str:
        """Takes a host from one stage to the next; returns why not, or nothing."""
        if seat.stage == "hello":
            theirs, ours = answer["framework"], framework_fingerprint()
            if theirs != ours:
                return f"it has another version of alphazero ({theirs}, and here it is {ours})"
            seat.stage, seat.pid = "load", answer["pid"]
            seat.calls[seat.actor.load.remote(self._work.maker)] = None
        elif seat.stage == "load":
            seat.stage = "there"
        elif answer != self._work.fingerprint:
            return f"it has another version of the game ({answer}, and here it is {self._work.fingerprint})"
        else:
            seat.stage = "ready"
        return ""

    def _end_silent_ones(self) -> None:
        now = time.monotonic()
        for seat in list(self.seats):
            patience = self._work.patience
            if seat.stage != "ready":
                patience = PATIENCE_AT_FIRST if seat.heard else math.inf
            if seat.calls and now - seat.since > patience:
                self._lose(seat, f"it has said nothing for {patience:.0f} s")

    # --- losing hosts ------------------------------------------------------------------------------------------------

    def _lose(self, seat: Seat, reason: str, orders: Sequence[Any] = ()) -> None:
        """A host is gone; the next look around places another one."""
        if seat not in self.seats:  # another of its answers has said so, or its machine was left out
            self._work.lose(seat, [order for order in orders if order is not None])
            return
        logger.warning("%s is lost: %s; another one takes its place", seat.name, reason)
        self.num_replaced += 1
        self._remove(seat, orders)
        if not seat.played:
            self._failures[seat.node.identity] += 1
            if self._failures[seat.node.identity] >= MOST_FAILURES:
                self._refuse_node(seat.node, f"{MOST_FAILURES} workers in a row could not play, the last one: {reason}")

    def _refuse(self, seat: Seat, reason: str) -> None:
        """The host's machine is not asked again."""
        self._remove(seat)
        self._refuse_node(seat.node, reason)

    def _refuse_node(self, node: Node, reason: str) -> None:
        if node.identity not in self.refused:
            self.refused[node.identity] = f"{node.name}: {shorten(reason, 300)}"
            logger.warning("the cluster's machine %s is left out: %s", node.name, shorten(reason, 300))
        for seat in [seat for seat in self.seats if seat.node.identity == node.identity]:
            self._remove(seat)

    def _remove(self, seat: Seat, orders: Sequence[Any] = ()) -> None:
        if seat in self.seats:
            self.seats.remove(seat)
            lost = [*orders, *(order for order in seat.calls.values() if order is not None)]
            seat.calls = {}
            self._work.lose(seat, [order for order in lost if order is not None])
            self._kill(seat)

    def _kill(self, seat: Seat) -> None:
        try:
            self._cluster.ray.kill(seat.actor, no_restart=True)
        except Exception as error:  # it is gone already, or the head is
            logger.debug("%s: %s", seat.name, error)


def _reason(error: Exception) -> str:
    """Ray's words for the loss of an actor, less its advice."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = type(error).__name__
    for line in reversed(lines):
        if line.startswith(("ModuleNotFoundError", "ImportError")):
            what = "alphazero is not installed" if "'alphazero'" in line else "a module cannot be imported"
            return f"{what} there ({shorten(line, 200)})"
    if kind in ("ActorDiedError", "ActorUnavailableError", "RayActorError", "NodeDiedError"):
        told = next((line for line in lines if "exit" in line.lower() or "died" in line.lower()), "")
        return f"its process has died ({shorten(told, 160)})" if told else "its process has died"
    return shorten(" ".join(lines), 200) or kind
