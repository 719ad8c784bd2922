"""Which cluster is meant, who may join it, and what Ray's errors mean in one sentence.

Token authentication is always on: a cluster that lets strangers in is refused.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from alphazero.errors import InputError, InvalidSetting, quote, shorten
from alphazero.invocation import WINDOWS, option

logger = logging.getLogger(__name__)

LEAST_RAY = (2, 52)
"""Older versions know no tokens."""
AUTO, LOCAL = "auto", "local"
SECONDS_TO_ANSWER = 20.0
"""A head that says nothing for so long is taken for gone."""
SECONDS_OF_STRANGER = 60.0
"""A process that knocks without a token may take so long: it imports Ray before."""

_REFUSED = re.compile(r"^ray\.exceptions\.(AuthenticationError|\w+: .*(Unauthenticated|InvalidAuthToken))", re.M)
"""The last line of Ray's that a cluster with a token gives to a stranger."""


class ClusterError(InputError):
    """A cluster cannot be reached, refuses us, or is gone."""


def check_address(address: str, where: str) -> None:
    """Raises InvalidSetting, naming where the address is from."""
    if address.startswith("ray://"):
        raise InvalidSetting(
            f"{where}: {quote(address)} is an address for Ray's client, which passes no weights on directly: join this "
            "machine to the cluster by `ray start --address=HOST:PORT --num-cpus=0`, and give HOST:PORT"
        )
    if address not in (AUTO, LOCAL) and not re.fullmatch(r"[\w.\-]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}", address):
        raise InvalidSetting(f"{where} takes {AUTO}, {LOCAL} or HOST:PORT of a cluster's head, not {quote(address)}")


def check_ray() -> str:
    """The mode of authentication; raises InvalidSetting if Ray is not installed, or its authentication is off."""
    if importlib.util.find_spec("ray") is None:
        raise InvalidSetting(
            f'{option("cluster")} needs Ray, which is not installed: install it by `pip install "ray>=2.52"`, or leave '
            f"{option('cluster')} out"
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

    found = re.match(r"(\d+)\.(\d+)", version)
    if found and (int(found[1]), int(found[2])) < LEAST_RAY:
        raise InvalidSetting(f"Ray {version} knows no authentication: update it to 2.52 or newer")
    raylet: Any = _raylet
    if not raylet.get_authentication_mode():  # 0 = disabled
        raise InvalidSetting(
            "Ray was imported here before, with its authentication off, and does not look again: set "
            "RAY_AUTH_MODE=token before `import ray`, or restart this program (a notebook's kernel)"
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
        _connect(address, 2)  # else the file is an old one
        if not hasattr(os, "getuid") or owner in (0, os.getuid()):
            return address
        logger.warning(
            "the Ray cluster at %s was begun by another user of this machine, so %s does not use it: name its address "
            "if you trust that user", shorten(address), option("cluster", AUTO),
        )  # fmt: skip
    return None


def _connect(address: str, seconds: float) -> None:
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()


def knock(address: str) -> None:
    """Raises ClusterError if nobody listens there: Ray would try for minutes."""
    try:
        _connect(address, SECONDS_TO_ANSWER)
    except (OSError, ValueError, OverflowError) as error:
        raise ClusterError(say_why(str(error), address)) from error


def check_locked(address: str) -> None:
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
        raise ClusterError(say_why("it does not answer", address)) from None
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
