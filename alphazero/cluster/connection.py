"""The connection to a Ray cluster: which one is meant, who may join it, its machines, its end.

Token authentication is always on: a cluster that lets strangers in is refused. A cluster of our own lives on this
machine for the time of a command: it listens on the loopback interface alone, and its token is in no file.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import logging
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from alphazero.errors import InputError, InvalidSetting, Terminated, count_of, quote, shorten
from alphazero.invocation import WINDOWS, option
from alphazero.machine import count_cores, held_back, variables_set
from alphazero.settings import check_range

logger = logging.getLogger(__name__)

AUTO, LOCAL = "auto", "local"
STORE_BYTES = 256 << 20
"""Shared memory of a cluster of our own, for the weights that play."""
SECONDS_TO_ANSWER = 20.0
"""A head that says nothing for so long is taken for gone."""
SECONDS_OF_STRANGER = 60.0
"""A process that knocks without a token may take so long: it imports Ray before."""
SECONDS_TO_LEAVE = 10.0
_ALWAYS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
}
_REFUSED = re.compile(r"^ray\.exceptions\.(AuthenticationError|\w+: .*(Unauthenticated|InvalidAuthToken))", re.M)
"""The last line of Ray's that a cluster with a token gives to a stranger."""


class ClusterError(InputError):
    """A cluster cannot be reached, refuses us, or is gone."""


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

    def __str__(self) -> str:
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
            check_range(option("cluster_workers"), workers, 1, 1 << 16)
        check_address(address, option("cluster"))

    def open(self) -> None:
        """Connects, or starts a cluster on this machine; raises ClusterError or InvalidSetting."""
        environment = _ALWAYS | {"RAY_AUTH_MODE": check_ray()}
        address = find_address() if self.address == AUTO else None if self.address == LOCAL else self.address
        settings: dict[str, Any] = {"address": address or LOCAL, "log_to_driver": False, "configure_logging": False}
        if address is not None:
            check_locked(address)
        else:
            settings |= {
                "num_cpus": self._threads, "include_dashboard": False, "object_store_memory": STORE_BYTES,
                "_node_ip_address": "127.0.0.1",
            }  # fmt: skip
            # the first makes it listen on the loopback interface, on Linux as well
            environment |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_TOKEN": _own_token()}
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
                ray.init(**settings)
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

        actor = self.ray.remote(body).options(
            num_cpus=1, num_gpus=1 if machine.gpus else 0, max_restarts=0, max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(machine.identity, soft=False),
        )  # fmt: skip
        return actor.remote()

    def describe(self) -> str:
        """The machines, their cores and GPUs, as a phrase."""
        machines = self.machines()
        cores, gpus = sum(machine.cpus for machine in machines), sum(machine.gpus for machine in machines)
        with_gpus = f" and {count_of(gpus, 'GPU')}" if gpus else ""
        return f"a Ray cluster of {count_of(len(machines), 'machine')} with {count_of(cores, 'core')}{with_gpus}"


# --- which cluster is meant, and who may join it ---------------------------------------------------------------------


def check_address(address: str, where: str) -> None:
    """Raises InvalidSetting, naming where the address is from."""
    if address not in (AUTO, LOCAL) and not re.fullmatch(r"[\w.\-]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}", address):
        raise InvalidSetting(
            f"{where} takes {AUTO}, {LOCAL} or HOST:PORT of the head of a cluster that this machine has joined by "
            f"`ray start --address=HOST:PORT`, not {quote(address)}"
        )


def check_ray() -> str:
    """The mode of authentication; raises InvalidSetting if Ray is not installed, or its authentication is off."""
    if importlib.util.find_spec("ray") is None:
        raise InvalidSetting(
            f'{option("cluster")} needs Ray, which is not installed: install it by `pip install "ray>=2.52"`'
        )
    mode = os.environ.get("RAY_AUTH_MODE", "token")
    if mode.lower() not in ("token", "k8s"):
        raise InvalidSetting(
            f"RAY_AUTH_MODE is {quote(mode)}, so whoever reaches the cluster's ports could run code on its "
            "machines: unset it, and give every machine the same RAY_AUTH_TOKEN"
        )
    return mode


def check_imported(version: str) -> None:
    """Raises InvalidSetting if Ray, which is imported now, authenticates nobody: it reads its mode once."""
    from ray import _raylet

    mode = getattr(_raylet, "get_authentication_mode", lambda: 0)  # before 2.52 there was none
    if not mode():  # 0 = disabled
        raise InvalidSetting(
            f"Ray {version} was imported here with its authentication off: set RAY_AUTH_MODE=token before `import ray` "
            "and start this program again, or update Ray to 2.52 or newer"
        )


def find_address() -> str | None:
    """The cluster that RAY_ADDRESS names, or that `ray start` has begun on this machine; None if there is none."""
    named = os.environ.get("RAY_ADDRESS", "")
    if named and named != AUTO:
        check_address(named, "RAY_ADDRESS")
        return None if named == LOCAL else named
    # as Ray chooses it
    own = tempfile.gettempdir() if WINDOWS else sys.platform == "linux" and os.environ.get("TMPDIR")
    file = Path(os.environ.get("RAY_TMPDIR") or own or "/tmp") / "ray" / "ray_current_cluster"
    with contextlib.suppress(OSError, ValueError), open(file, encoding="ascii") as opened:
        owner, address = os.fstat(opened.fileno()).st_uid, opened.read(200).strip()
        _knock(address, 2)  # else the file is an old one
        if not hasattr(os, "getuid") or owner in (0, os.getuid()):
            return address
        logger.warning(
            "the Ray cluster at %s was begun by another user of this machine, so %s does not use it: name its address "
            "if you trust that user", shorten(address), option("cluster", AUTO),
        )  # fmt: skip
    return None


def _knock(address: str, seconds: float) -> None:
    """Raises OSError, ValueError or OverflowError if nobody listens there: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()


def check_locked(address: str) -> None:
    """Raises InvalidSetting if the cluster lets a stranger in, who has no token, and ClusterError if it is not there.

    The stranger is a process of its own, since Ray reads its mode and its token once.
    """
    stranger = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH_")}
    command = [sys.executable, "-P", "-m", "ray.scripts.scripts", "health-check", "--skip-version-check"]
    try:
        _knock(address, SECONDS_TO_ANSWER)
        done = subprocess.run(
            [*command, "--address", address], env=stranger | {"RAY_AUTH_MODE": "disabled"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", timeout=SECONDS_OF_STRANGER,
        )  # fmt: skip
    except (OSError, ValueError, OverflowError, subprocess.TimeoutExpired) as error:
        raise ClusterError(say_why(str(error), address)) from error
    if done.returncode == 0:
        raise InvalidSetting(
            f"the Ray cluster at {shorten(address)} lets everybody in, so whoever reaches its ports could run code on "
            "its machines: stop it, and start Ray with RAY_AUTH_MODE=token on every machine"
        )
    if not _REFUSED.search(done.stderr):  # a stranger who failed for another reason says nothing about the cluster
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ClusterError(
            f"the Ray cluster at {shorten(address)} cannot be joined, since nothing shows that it refuses strangers "
            f"({shorten(last, 200)}): check that it runs, and that Ray works in this environment"
        )


def say_why(text: str, address: str | None) -> str:
    """Ray's words in one sentence of ours."""
    text = " ".join(text.split())
    if address is None:
        return f"a Ray cluster on this machine cannot be started: {shorten(text, 300)}"
    where = f"the Ray cluster at {shorten(address)}"
    if re.search("AuthenticationError|InvalidAuthToken|Unauthenticated|Unauthorized|authentication token", text, re.I):
        return (
            f"{where} does not take our token: set RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH, to the one that the cluster "
            "was started with"
        )
    return (
        f"{where} cannot be reached ({shorten(text, 200)}): check that it runs, and that this machine has joined it by "
        f"`ray start --address={shorten(address)}`"
    )


# --- Ray's ways ------------------------------------------------------------------------------------------------------


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
    worker: Any = importlib.import_module("ray._private.worker")
    before = getattr(worker, "print_to_stdstream", None)
    worker.print_to_stdstream = lambda *arguments, **options: None
    try:
        yield
    finally:
        worker.print_to_stdstream = before
