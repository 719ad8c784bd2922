"""A cluster in this process, whose hosts are threads: they can be slow, silent, of another version, or die."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from alphazero.cluster.connection import Machine
from alphazero.cluster.pool import Pool
from alphazero.cluster.ray_cluster import RayCluster


class RayError(Exception):
    """As in ray.exceptions."""


class ActorDiedError(RayError):
    """As in ray.exceptions."""


class FakeActor:
    """The methods of a body, one call after another on a thread."""

    def __init__(self, body: Any, number: int, before: Callable[[str, int], None] = lambda name, call: None):
        """`before(name, call)` is called before each call of a method; what it raises ends the actor."""
        self._body, self._number, self._before = body, number, before
        self._calls: queue.Queue[tuple[Future, str, tuple]] = queue.Queue()
        self._dead = threading.Event()
        self._count = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def __getattr__(self, name: str) -> Any:
        def remote(*arguments: Any) -> Future:
            future: Future = Future()
            future.actor = self._number  # type: ignore[attr-defined]
            self._calls.put((future, name, arguments))
            if self._dead.is_set():
                self._fail_all()
            return future

        return SimpleNamespace(remote=remote)

    def die(self) -> None:
        self._dead.set()
        self._fail_all()

    def _fail_all(self) -> None:
        while not self._calls.empty():
            future = self._calls.get_nowait()[0]
            if not future.done():
                future.set_exception(ActorDiedError("The actor died unexpectedly"))

    def _serve(self) -> None:
        while not self._dead.is_set():
            try:
                future, name, arguments = self._calls.get(timeout=0.01)
            except queue.Empty:
                continue
            try:
                self._before(name, self._count)
                self._count += 1
                if self._dead.is_set():
                    raise ActorDiedError("The actor died unexpectedly")
                answer = getattr(self._body, name)(*arguments)
                if self._dead.is_set():
                    raise ActorDiedError("The actor died unexpectedly")
                future.set_result(answer)
            except RayError as error:
                self._dead.set()
                future.set_exception(error)
                self._fail_all()
            except Exception as error:  # a body's own
                future.set_exception(RayError(repr(error)))


class FakeRay:
    """The functions of Ray's that a pool calls."""

    exceptions = SimpleNamespace(RayError=RayError)

    def __init__(self) -> None:
        self.heard: list[tuple[int, Any]] = []
        """Each answer that a pool has got, behind the number of its actor."""

    def put(self, value: Any) -> Future:
        future: Future = Future()
        future.set_result(value)
        return future

    def get(self, future: Future) -> Any:
        answer = future.result(timeout=0)
        if hasattr(future, "actor"):  # else it was put
            self.heard.append((future.actor, answer))
        return answer

    def kill(self, actor: FakeActor, no_restart: bool) -> None:
        assert no_restart
        actor.die()

    def wait(
        self, futures: Sequence[Future], num_returns: int, timeout: float, fetch_local: bool
    ) -> tuple[list[Future], list[Future]]:
        end = time.monotonic() + timeout
        while True:
            done = [future for future in futures if future.done()]
            if len(done) >= num_returns or time.monotonic() >= end:
                return done[:num_returns], [future for future in futures if future not in done[:num_returns]]
            time.sleep(0.002)


def run_out_of_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first host, once ready, has been silent for too long whenever the pool looks."""
    end_silent_ones = Pool._end_silent_ones

    def later(pool: Pool) -> None:
        for host in pool.hosts:
            if host.number == 1 and host.stage == "ready":
                host.since -= pool._work.patience
        end_silent_ones(pool)

    monkeypatch.setattr(Pool, "_end_silent_ones", later)


class FakeCluster(RayCluster):
    """Machines that come and go, and hosts on them."""

    def __init__(self, machines: Sequence[Machine], workers: int | None = None):
        super().__init__("local", workers, threads=1)
        self.there = list(machines)
        self.ray = FakeRay()
        self.actors: list[tuple[Machine, FakeActor]] = []
        self.behave: Callable[[int, str, int], None] = lambda actor, name, call: None
        """Called with the number of an actor, a method and the number of the call, before each call."""
        self.bodies: Callable[[type, int], Any] = lambda body, number: body()
        self.placing: Machine
        """The machine of the actor that is placed now."""

    def open(self) -> None: ...

    def close(self) -> None: ...

    def machines(self) -> list[Machine]:
        return list(self.there)

    def place(self, body: type, machine: Machine) -> Any:
        number, self.placing = len(self.actors), machine
        actor = FakeActor(self.bodies(body, number), number, lambda name, call: self.behave(number, name, call))
        self.actors.append((machine, actor))
        return actor


def machine(name: str, cpus: int = 1, gpus: int = 0) -> Machine:
    return Machine(name, name, "127.0.0.1", cpus, gpus)
