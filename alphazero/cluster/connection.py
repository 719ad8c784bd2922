"""The connection to a Ray cluster: opening it, its nodes, its end.

A cluster of our own lives on this machine for the time of a command: it listens on
the loopback interface alone, and its token is in no file.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import secrets
import shutil
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from alphazero.cluster.access import (
    AUTO,
    LOCAL,
    SECONDS_TO_ANSWER,
    SECURE_MODES,
    ClusterError,
    check_address,
    check_locked,
    check_mode,
    check_ray,
    check_version,
    find_address,
    knock,
    say_why,
)
from alphazero.errors import InputError, InvalidSetting, Terminated, count_of, quote
from alphazero.interruption import held_back, speaking_on, variables_set
from alphazero.invocation import option
from alphazero.machine import count_cores
from alphazero.settings import check_range
from alphazero.storage.systems import process_is_alive

logger = logging.getLogger(__name__)

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
class Node:
    """A machine of the cluster."""

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
        self._folder: str | None = None
        self._quieted = contextlib.ExitStack()
        if workers is not None:
            check_range(option("cluster_workers"), workers, 1, MOST_WORKERS)
        check_address(address, option("cluster"))

    def open(self) -> None:
        """Connects, or starts a cluster on this machine; raises ClusterError or InvalidSetting."""
        check_ray()
        address = find_address() if self.address == AUTO else None if self.address == LOCAL else self.address
        mode = os.environ.get("RAY_AUTH_MODE", SECURE_MODES[0])
        if mode.lower() not in SECURE_MODES:
            raise InvalidSetting(
                f"RAY_AUTH_MODE is {quote(mode)}, so whoever reaches the cluster's ports could run code on its "
                "machines: unset it, and give every machine the same RAY_AUTH_TOKEN"
            )
        if address is not None:
            knock(address)
            check_locked(address)
        settings: dict[str, Any] = {"address": address or LOCAL, "log_to_driver": False, "configure_logging": False}
        environment = _ALWAYS | {"RAY_AUTH_MODE": mode}
        if address is None:
            settings |= {
                "num_cpus": self._threads, "include_dashboard": False, "object_store_memory": STORE_BYTES,
                "_node_ip_address": "127.0.0.1",
            }  # fmt: skip
            environment |= _OURS | {"RAY_AUTH_TOKEN": _own_token()}
        said: list[str] = []
        try:
            with variables_set(environment), _signals_kept(), held_back(), _stderr_kept(said):
                import ray

                check_version(ray.__version__)
                check_mode()
                if ray.is_initialized():
                    raise InvalidSetting(
                        "this program is connected to a Ray cluster already, and Ray has one connection at a time: "
                        "call ray.shutdown() first"
                    )
                logging.getLogger("ray").setLevel(logging.CRITICAL)
                if address is None:
                    settings["_temp_dir"] = self._folder = make_folder("az-ray", alone=True)
                self.ray = ray  # from here on `close` leaves it, however far it came
                _init(ray, settings)
            self._quieted.enter_context(_kept_quiet())
        except (InputError, KeyboardInterrupt, Terminated):
            self.close()
            raise
        except (Exception, SystemExit) as error:
            self.close()
            raise ClusterError(say_why(f"{error} {''.join(said)}", address)) from error

    def close(self) -> None:
        """Leaves the cluster; one of our own ends. A second call does nothing."""
        ray, self.ray = self.ray, None
        if ray is not None:
            # a head that is gone would be waited for
            leaving = threading.Thread(target=_leave, args=(ray,), daemon=True)
            leaving.start()
            leaving.join(SECONDS_TO_LEAVE)
        self._quieted.close()
        self._remove_folder()

    def __enter__(self) -> Cluster:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def nodes(self) -> list[Node]:
        """The machines that are there now; raises ClusterError if the head does not answer."""
        answer: list[Any] = []
        asking = threading.Thread(target=_ask, args=(self.ray, answer), daemon=True)
        asking.start()
        asking.join(SECONDS_TO_ANSWER)
        if not answer or isinstance(answer[0], Exception):
            raise ClusterError(
                "the head of the Ray cluster does not answer: bring it back, or leave "
                f"{option('cluster')} out, and run the same again (a training with {option('resume', True)})"
            )
        return [
            Node(
                node["NodeID"], node["NodeManagerHostname"], node["NodeManagerAddress"],
                int(node["Resources"].get("CPU", 0)), int(node["Resources"].get("GPU", 0)),
            )
            for node in answer[0]
            if node["Alive"]
        ]  # fmt: skip

    def here(self) -> str:
        """The identity of the machine that this process is on."""
        return str(self.ray.get_runtime_context().get_node_id())

    def place(self, body: type, node: Node) -> Any:
        """A new actor with that body on a machine, which gets a core of it, and a GPU if it has some.

        It waits until they are free. Ray does not restart it, nor repeat a call.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return (
            self.ray.remote(body)
            .options(
                num_cpus=1, num_gpus=1 if node.gpus else 0, max_restarts=0, max_task_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node.identity, soft=False),
            )
            .remote()
        )  # fmt: skip

    def describe(self) -> str:
        """The machines, their cores and GPUs, as a phrase."""
        nodes = self.nodes()
        cores, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
        with_gpus = f" and {count_of(gpus, 'GPU')}" if gpus else ""
        return f"a Ray cluster of {count_of(len(nodes), 'machine')} with {count_of(cores, 'core')}{with_gpus}"

    def _remove_folder(self) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def make_folder(kind: str, alone: bool = False) -> str:
    """A temporary folder named after its kind and this process; removes those of dead processes.

    `alone`: the process has one at a time, so that another with its number is left behind as well.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{kind}-*-*"):
        match = re.fullmatch(rf"{kind}-(\d{{1,9}})-\w+", path.name, re.ASCII)
        number = int(match[1]) if match else 0
        ended = (alone and number == os.getpid()) or not process_is_alive(number)
        if match and ended and _is_ours(path):
            shutil.rmtree(path, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"{kind}-{os.getpid()}-")


def _is_ours(path: Path) -> bool:
    """A folder, no link, that belongs to this user."""
    with contextlib.suppress(OSError):
        found = path.lstat()
        return stat.S_ISDIR(found.st_mode) and (not hasattr(os, "getuid") or found.st_uid == os.getuid())
    return False


def _init(ray: Any, settings: dict[str, Any]) -> None:
    """Tries again where a busy machine needs longer to start Ray than Ray itself waits."""
    for attempt in range(1, MOST_STARTS + 1):
        try:
            ray.init(**settings)
            return
        except Exception as error:
            _leave(ray)
            if settings["address"] != LOCAL or "timed out" not in str(error) or attempt == MOST_STARTS:
                raise


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
            with speaking_on(before):
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


def _leave(ray: Any) -> None:
    with contextlib.suppress(Exception):
        ray.shutdown()


def _ask(ray: Any, answer: list[Any]) -> None:
    try:
        answer.append(ray.nodes())
    except Exception as error:
        answer.append(error)
