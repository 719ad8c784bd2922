"""The connection to a Ray cluster: opening it, its nodes, and what Ray's errors mean in one sentence.

Token authentication is always on. A cluster of our own lives on this machine for the time of a command: it listens on
the loopback interface alone, and its token is in no file.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import logging
import os
import re
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from alphazero.errors import InputError, InvalidSetting, Terminated, quote, shorten
from alphazero.interruption import held_back, speaking_on, variables_set
from alphazero.invocation import WINDOWS, option
from alphazero.machine import count_cores
from alphazero.settings import check_range
from alphazero.storage.systems import process_is_alive

logger = logging.getLogger(__name__)

LEAST_RAY = (2, 52)
"""Older versions know no tokens."""
AUTO, LOCAL = "auto", "local"
STORE_BYTES = 256 << 20
"""Shared memory of a cluster of our own, for the weights that play."""
SECONDS_TO_ANSWER = 20.0
"""A head that says nothing for so long is taken for gone."""
SECONDS_OF_STRANGER = 60.0
"""A process that knocks without a token may take so long: it imports Ray before."""
SECONDS_TO_LEAVE = 10.0
MOST_STARTS = 3
MOST_WORKERS = 1 << 16
SECURE_MODES = "token", "k8s"
"""Values of RAY_AUTH_MODE that authenticate."""

_ALWAYS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
}
_OURS = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Makes a new cluster listen on the loopback interface, on Linux as well."""


_REFUSED = re.compile(r"^ray\.exceptions\.(AuthenticationError|\w+: .*(Unauthenticated|InvalidAuthToken))", re.M)
"""The last line of Ray's that a cluster with a token gives to a stranger."""


class ClusterError(InputError):
    """A cluster cannot be reached, refuses us, or is gone."""


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
        _check_address(address, option("cluster"))

    def open(self) -> None:
        """Connects, or starts a cluster on this machine; raises ClusterError or InvalidSetting."""
        check_ray()
        address = _find_address() if self.address == AUTO else None if self.address == LOCAL else self.address
        mode = os.environ.get("RAY_AUTH_MODE", SECURE_MODES[0])
        if mode.lower() not in SECURE_MODES:
            raise InvalidSetting(
                f"RAY_AUTH_MODE is {quote(mode)}, so whoever reaches the cluster's ports could run code on its "
                "machines: unset it, and give every machine the same RAY_AUTH_TOKEN"
            )
        if address is not None:
            _knock(address)
            _check_locked(address)
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

                _check_version(ray.__version__)
                _check_mode()
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
            raise ClusterError(_say_why(f"{error} {''.join(said)}", address)) from error

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
        gpus = sum(node.gpus for node in nodes)
        return (
            f"a Ray cluster of {len(nodes)} machine{'s' * (len(nodes) != 1)} with {sum(node.cpus for node in nodes)} "
            "cores" + (f" and {gpus} GPU{'s' * (gpus != 1)}" if gpus else "")
        )

    def _remove_folder(self) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def check_ray() -> None:
    """Raises InvalidSetting if Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise InvalidSetting(
            f'{option("cluster")} needs Ray, which is not installed: install it by `pip install "ray>=2.52"`, or leave '
            f"{option('cluster')} out"
        )


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


def _check_address(address: str, where: str) -> None:
    """Raises InvalidSetting, naming where the address is from."""
    if address.startswith("ray://"):
        raise InvalidSetting(
            f"{where}: {quote(address)} is an address for Ray's client, which passes no weights on directly: join this "
            "machine to the cluster by `ray start --address=HOST:PORT --num-cpus=0`, and give HOST:PORT"
        )
    if address not in (AUTO, LOCAL) and not re.fullmatch(r"[\w.\-]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}", address):
        raise InvalidSetting(f"{where} takes {AUTO}, {LOCAL} or HOST:PORT of a cluster's head, not {quote(address)}")


def _check_version(version: str) -> None:
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < LEAST_RAY:
        raise InvalidSetting(f"Ray {version} knows no authentication: update it to 2.52 or newer")


def _check_mode() -> None:
    """Raises InvalidSetting if this process loaded Ray while its authentication was off: Ray reads that once."""
    from ray import _raylet

    ask_mode = getattr(_raylet, "get_authentication_mode", None)
    if ask_mode is not None and not ask_mode():  # 0 = disabled
        raise InvalidSetting(
            "Ray was imported here before, with its authentication off, and does not look again: set "
            "RAY_AUTH_MODE=token before `import ray`, or restart this program (a notebook's kernel)"
        )


def _find_address() -> str | None:
    """The cluster that RAY_ADDRESS names, or that `ray start` has begun on this machine; None if there is none."""
    named = os.environ.get("RAY_ADDRESS", "")
    if named and named != AUTO:
        _check_address(named, "RAY_ADDRESS")
        return None if named == LOCAL else named
    # as Ray chooses it
    own = tempfile.gettempdir() if WINDOWS else sys.platform == "linux" and os.environ.get("TMPDIR")
    folder = os.environ.get("RAY_TMPDIR") or own or "/tmp"
    file = Path(folder) / "ray" / "ray_current_cluster"
    with contextlib.suppress(OSError, ValueError), open(file, encoding="ascii") as opened:
        owner, address = os.fstat(opened.fileno()).st_uid, opened.read(200).strip()
        host, _, port = address.rpartition(":")
        with socket.create_connection((host.strip("[]"), int(port)), timeout=2):  # else the file is an old one
            if not hasattr(os, "getuid") or owner in (0, os.getuid()):
                return address
        logger.warning(
            "the Ray cluster at %s was begun by another user of this machine, so %s does not use it: name its address "
            "if you trust that user", shorten(address), option("cluster", AUTO),
        )  # fmt: skip
    return None


def _knock(address: str) -> None:
    """Raises ClusterError if nobody listens there: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS_TO_ANSWER).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(_say_why(str(error), address)) from error


def _check_locked(address: str) -> None:
    """Raises InvalidSetting if the cluster lets a stranger in, who has no token.

    The stranger is a process of its own, since Ray reads its mode and its token once.
    """
    stranger = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH_")}
    command = [sys.executable, "-P", "-m", "ray.scripts.scripts", "health-check", "--skip-version-check"]
    try:
        done = subprocess.run(
            [*command, "--address", address], env=stranger | {"RAY_AUTH_MODE": "disabled"}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", timeout=SECONDS_OF_STRANGER,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ClusterError(_say_why("it does not answer", address)) from None
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


def cluster_at(address: str, workers: int | None, threads: int | None) -> Cluster | None:
    """The cluster at that address, not connected yet; None without an address."""
    if workers is not None and not address:
        raise InvalidSetting(
            f"{option('cluster_workers')} needs {option('cluster')}, as in {option('cluster', 'auto')}"
        )
    return Cluster(address, workers, threads) if address else None


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


def _say_why(text: str, address: str | None) -> str:
    """Ray's words in one sentence of ours."""
    text = " ".join(text.split())
    where = f"the Ray cluster at {shorten(address)}" if address else "a Ray cluster on this machine"
    if address is None:
        return f"{where} cannot be started: {shorten(text, 300)}"
    if re.search("AuthenticationError|InvalidAuthToken|Unauthenticated|Unauthorized|authentication token", text, re.I):
        return (
            f"{where} does not take our token: set RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH, to the one that the cluster "
            "was started with"
        )
    return (
        f"{where} cannot be reached ({shorten(text, 200)}): check that it runs, and that this machine has joined it by "
        f"`ray start --address={shorten(address)}`"
    )
