"""Opening a cluster with a stand-in for Ray: strangers, interrupts, folders that are left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alphazero.cluster import connection
from alphazero.cluster.connection import Cluster, ClusterError
from alphazero.errors import InvalidSetting
from tests.cluster.conftest import needs_ray
from tests.program import ROOT

REFUSED = "ray.exceptions.AuthenticationError: RPC error: InvalidAuthToken: Authentication token is missing"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What a stand-in for Ray is asked to do; its temporary files lie in `tmp_path`."""
    found = list[str]()
    ray = types.ModuleType("ray")
    ray.__version__ = "2.60.0"  # type: ignore[attr-defined]
    ray.is_initialized = lambda: found[-1:] == ["init"]  # type: ignore[attr-defined]
    ray.shutdown = lambda: found.append("shutdown")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(connection, "check_ray", lambda: "token")
    monkeypatch.setattr(connection, "check_imported", lambda version: None)
    monkeypatch.setattr(connection, "_kept_quiet", connection.contextlib.nullcontext)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return found


def begin(calls: list[str], after: Callable[[], object]) -> Callable[..., None]:
    """A start of Ray's during which something happens."""

    def init(**settings: object) -> None:
        calls.append("init")
        after()

    return init


# --- a stranger ---


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("", "it said nothing"),
        ("  from ray.exceptions import AuthenticationError\nImportError: cannot import it\n", "cannot import it"),
        ("ray.exceptions.RpcError: Timed out while waiting for GCS to become available.\n", "Timed out while waiting"),
    ],
)
def test_a_stranger_that_fails_for_another_reason_proves_nothing(monkeypatch: pytest.MonkeyPatch, said, reason):
    monkeypatch.setattr(connection, "_knock", lambda *_: None)
    monkeypatch.setattr(connection.subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 1, None, said))
    with pytest.raises(ClusterError, match=f"nothing shows that it refuses strangers .*{reason}") as raised:
        connection.check_locked("head:6379")
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    "said", [f"Traceback\n{REFUSED}\n", "ray.exceptions.RpcError: Unauthenticated: who is this\n(a line of the log)\n"]
)
def test_a_stranger_that_is_refused_shows_a_lock(monkeypatch: pytest.MonkeyPatch, said: str):
    asked = []

    def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        asked.append((command[-1], "RAY_AUTH_TOKEN" in options["env"]))
        return subprocess.CompletedProcess(command, 1, None, said)

    monkeypatch.setattr(connection, "_knock", lambda *_: None)
    monkeypatch.setattr(connection.subprocess, "run", run)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    connection.check_locked("head:6379")
    assert asked == [("head:6379", False)], "once, without our token"


@needs_ray
def test_a_stranger_runs_no_file_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "click.py").write_text("open('mark', 'w')\nraise SystemExit(1)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connection, "_knock", lambda *_: None)
    run = subprocess.run  # to its end, which comes at once where it has to show its help alone
    monkeypatch.setattr(connection.subprocess, "run", lambda command, **options: run([*command, "--help"], **options))
    with pytest.raises(InvalidSetting, match="lets everybody in"):
        connection.check_locked("127.0.0.1:1")
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("text", "address", "expected"),
    [
        ("cannot create /home/token/tmp: No space left on device", None, "cannot be started"),
        ("cannot open /home/token/x: denied", "head:1", "cannot be reached"),
        (REFUSED, "head:1", "does not take our token"),
        ("Unauthenticated: who is this", "head:1", "does not take our token"),
        ("Token authentication is enabled but no authentication token was found", "head:1", "does not take our token"),
    ],
)
def test_only_rays_own_words_speak_of_a_token(text: str, address: str | None, expected: str):
    assert expected in connection.say_why(text, address)


# --- interrupts and mistakes ---


def test_ray_is_left_if_it_is_interrupted_while_it_starts(calls: list[str], monkeypatch, tmp_path: Path):
    sys.modules["ray"].init = begin(calls, lambda: os.kill(os.getpid(), signal.SIGINT))  # type: ignore[attr-defined]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background programs ignore it
    try:
        for _ in range(2):  # the second one is not refused as connected already
            with pytest.raises(KeyboardInterrupt):
                Cluster("local").open()
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == ["init", "shutdown"] * 2
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_sentence(calls: list[str], monkeypatch, tmp_path: Path):
    sys.modules["ray"].init = begin(calls, lambda: None)  # type: ignore[attr-defined]
    folder = tmp_path / "full"
    folder.mkdir()

    def refuse(**_):
        raise OSError(28, "No space left on device", str(folder))

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    with pytest.raises(ClusterError, match="on this machine cannot be started: .*No space left on device"):
        Cluster("local").open()
    monkeypatch.undo()
    assert calls == []


def test_a_mistake_makes_no_folder(calls: list[str], tmp_path: Path):
    calls.append("init")  # the user's own
    with pytest.raises(InvalidSetting, match="connected to a Ray cluster already"):
        Cluster("local").open()
    assert calls == ["init"] and list(tmp_path.iterdir()) == []


def test_the_folder_of_a_cluster_on_this_machine_goes_with_it(calls: list[str], monkeypatch, tmp_path: Path):
    sys.modules["ray"].init = begin(calls, lambda: None)  # type: ignore[attr-defined]
    with Cluster("local"):
        assert [folder.name.startswith("az-ray-") for folder in tmp_path.iterdir()] == [True]
    assert list(tmp_path.iterdir()) == [] and calls == ["init", "shutdown"]


LEAVING = """
import os
from alphazero import interruption
from alphazero.cluster import connection
interruption.install()
with connection._stderr_kept([]):
    os.write(2, b"words of Ray's")
    interruption._leave()
"""


def test_the_end_of_a_command_is_told_while_ray_starts():
    done = subprocess.run(
        [sys.executable, "-c", LEAVING], env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "\ninterrupted\n")
