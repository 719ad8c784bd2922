"""The connection to a Ray cluster: opening it, its machines, its end.

A cluster of our own lives on this machine for the time of a command: it listens on
the loopback interface alone, and its token is in no file.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from alphazero.cluster.access import (
    AUTO,
    LOCAL,
    SECONDS_TO_ANSWER,
    ClusterError,
    check_address,
    check_imported,
    check_locked,
    check_ray,
    find_address,
    knock,
    say_why,
)
from alphazero.errors import InputError, InvalidSetting, Terminated, count_of
from alphazero.interruption import held_back
from alphazero.invocation import option
from alphazero.machine import count_cores, variables_set
from alphazero.settings import check_range

STORE_BYTES = 256 << 20
"""Shared memory of a cluster of our own, for the weights that play."""
SECONDS_TO_LEAVE = 10.0
MOST_STARTS = 3
MOST_WORKERS = 1 << 16
_ALWAYS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
}
_OURS = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Makes a new cluster listen on the loopback interface, on Linux as well."""


@dataclass(frozen=True)
class Machine:
    """A machine of the cluster: one of Ray's nodes."""

    identity: str
    """Ray's name for it."""
    host: str
    address: str
    cpus: int
    gpus: int

    @property
    def room(self) -> int:
        """The workers that fit: one for each core, or where there are GPUs, one for each that has a core beside it."""
        return min(self.cpus, self.gpus) if self.gpus else self.cpus

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.host} ({self.address})"


class Cluster:
    """A Ray cluster; a command opens it before it begins anything, and closes it at its end."""

    def __init__(self, address: str, workers: int | None = None, threads: int | None = None):
        """`address`: `auto`, `local`, or HOST:PORT of a cluster's head. `workers`: at most so many; None = one for each
        core or GPU. `threads`: the cores of a new cluster on this machine; None = all."""
        self.address, self.workers = address, workers
        self._threads = count_cores() if threads is None else threads
        self.ray: Any = None
        """The module, once the cluster is open."""
        self._at_end = contextlib.ExitStack()
        if workers is not None:
            check_range(option("cluster_workers"), workers, 1, MOST_WORKERS)
        check_address(address, option("cluster"))

    def open(self) -> None:
        """Connects, or starts a cluster on this machine; raises ClusterError or InvalidSetting."""
        environment = _ALWAYS | {"RAY_AUTH_MODE": check_ray()}
        address = find_address() if self.address == AUTO else None if self.address == LOCAL else self.address
        settings: dict[str, Any] = {"address": address or LOCAL, "log_to_driver": False, "configure_logging": False}
        if address is not None:
            knock(address)
            check_locked(address)
        else:
            settings |= {
                "num_cpus": self._threads, "include_dashboard": False, "object_store_memory": STORE_BYTES,
                "_node_ip_address": "127.0.0.1",
            }  # fmt: skip
            environment |= _OURS | {"RAY_AUTH_TOKEN": _own_token()}
        said: list[str] = []
        try:
            with variables_set(environment), _signals_kept(), held_back(), _stderr_kept(said):
                import ray

                check_imported(ray.__version__)
                if ray.is_initialized():
                    raise InvalidSetting(
                        "this program is connected to a Ray cluster already, and Ray has one connection at a time: "
                        "call ray.shutdown() first"
                    )
                logging.getLogger("ray").setLevel(logging.CRITICAL)
                if address is None:
                    settings["_temp_dir"] = folder = tempfile.mkdtemp(prefix="az-ray-")
                    self._at_end.callback(shutil.rmtree, folder, ignore_errors=True)
                self._at_end.enter_context(_kept_quiet())
                # a head that is gone would be waited for
                self._at_end.callback(_within, SECONDS_TO_LEAVE, ray.shutdown)
                self.ray = ray
                _init(ray, settings)
        except BaseException as error:
            self.close()
            if isinstance(error, InputError | KeyboardInterrupt | Terminated):
                raise
            raise ClusterError(say_why(f"{error} {''.join(said)}", address)) from error

    def close(self) -> None:
        """Leaves the cluster; one of our own ends. A second call does nothing."""
        self.ray = None
        self._at_end.close()

    def __enter__(self) -> Cluster:
        self.open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def machines(self) -> list[Machine]:
        """The machines that are there now; raises ClusterError if the head does not answer."""
        answer = _within(SECONDS_TO_ANSWER, self.ray.nodes)
        if answer is None:
            raise ClusterError(
                "the head of the Ray cluster does not answer: bring it back, or leave "
                f"{option('cluster')} out, and run the same again (a training with {option('resume', True)})"
            )
        return [
            Machine(
                node["NodeID"], node["NodeManagerHostname"], node["NodeManagerAddress"],
                int(node["Resources"].get("CPU", 0)), int(node["Resources"].get("GPU", 0)),
            )
            for node in answer
            if node["Alive"]
        ]  # fmt: skip

    def here(self) -> str:
        """The identity of the machine that this process is on."""
        return str(self.ray.get_runtime_context().get_node_id())

    def place(self, body: type, machine: Machine) -> Any:
        """A new actor with that body on a machine, which gets a core of it, and a GPU if it has some.

        It waits until they are free. Ray does not restart it, nor repeat a call.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return (
            self.ray.remote(body)
            .options(
                num_cpus=1, num_gpus=1 if machine.gpus else 0, max_restarts=0, max_task_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(machine.identity, soft=False),
            )
            .remote()
        )  # fmt: skip

    def describe(self) -> str:
        """The machines, their cores and GPUs, as a phrase."""
        machines = self.machines()
        cores, gpus = sum(machine.cpus for machine in machines), sum(machine.gpus for machine in machines)
        with_gpus = f" and {count_of(gpus, 'GPU')}" if gpus else ""
        return f"a Ray cluster of {count_of(len(machines), 'machine')} with {count_of(cores, 'core')}{with_gpus}"


def _init(ray: Any, settings: dict[str, Any]) -> None:
    """Tries again where a busy machine needs longer to start Ray than Ray itself waits."""
    for attempt in range(1, MOST_STARTS + 1):
        try:
            ray.init(**settings)
            return
        except Exception as error:
            _within(SECONDS_TO_LEAVE, ray.shutdown)
            if settings["address"] != LOCAL or "timed out" not in str(error) or attempt == MOST_STARTS:
                raise


def _within(seconds: float, ask: Callable[[], Any]) -> Any:
    """The answer to a call of Ray's; None if it fails, or takes longer."""
    answers: list[Any] = []

    def work() -> None:
        with contextlib.suppress(Exception):
            answers.append(ask())

    asking = threading.Thread(target=work, daemon=True)
    asking.start()
    asking.join(seconds)
    return answers[0] if answers else None


@functools.cache
def _own_token() -> str:
    """The token of this process's own clusters: Ray reads it once."""
    return os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32)


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself; afterwards it is ours again."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _stderr_kept(said: list[str]) -> Iterator[None]:
    """Ray's own code writes to this process's stderr while it connects; the text goes into `said` instead."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            said.append(file.read(1 << 20).decode(errors="replace"))


@contextlib.contextmanager
def _kept_quiet() -> Iterator[None]:
    """Ray prints a thousand characters about every worker that dies; the pool says it in a sentence."""
    from ray._private import worker as module

    worker: Any = module
    before = getattr(worker, "print_to_stdstream", None)
    worker.print_to_stdstream = lambda *arguments, **options: None
    try:
        yield
    finally:
        worker.print_to_stdstream = before
