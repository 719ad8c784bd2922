"""D2: without Ray, and with a wrong token: one sentence, and no run is left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from alphazero.cluster import connection
from alphazero.cluster.connection import Cluster
from alphazero.errors import InputError, InvalidSetting
from alphazero.machine import variables_set
from tests.cluster.conftest import ENVIRONMENT, needs_ray
from tests.program import ROOT


def test_without_ray_one_sentence_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connection.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidSetting, match=r"cluster needs Ray, which is not installed: install it by `pip install"):
        Cluster("auto").open()


NO_ADDRESSES = ["", "here", "host", "host:", "host:port", "http://a:1", "a:1;b", "a b:1", "ray://head:10001"]


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_addresses_that_mean_nothing_are_refused(address: str, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(InvalidSetting, match="^--cluster takes|^cluster takes"):
        Cluster(address)
    monkeypatch.setenv("RAY_ADDRESS", address or "head")
    with pytest.raises(InvalidSetting, match="^RAY_ADDRESS takes auto, local or HOST:PORT"):
        connection.find_address()


@pytest.mark.parametrize("address", ["auto", "local", "127.0.0.1:6379", "head.lab:6379", "[::1]:6379"])
def test_addresses_are_taken(address: str):
    assert Cluster(address).address == address


@pytest.mark.parametrize("workers", [0, -1, 1 << 17, 1.5])
def test_numbers_of_workers_that_cannot_be_are_refused(workers):
    with pytest.raises(InvalidSetting, match="cluster_workers must"):
        Cluster("auto", workers)


@needs_ray
def test_a_cluster_without_authentication_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(InvalidSetting, match="whoever reaches the cluster's ports could run code"):
        Cluster("local").open()


@needs_ray
@pytest.mark.parametrize(("code", "expected"), [(0, "lets everybody in"), (1, "cannot be reached")])
def test_a_cluster_that_lets_a_stranger_in_is_refused_before_it_sees_our_token(monkeypatch, code, expected):
    asked = []

    def run(command, env, **_):
        asked.append((command[-2:], env))
        return subprocess.CompletedProcess(command, code, None, "ray.exceptions.AuthenticationError: no token\n" * code)

    def refuse(**settings):
        raise RuntimeError("nobody is there")

    monkeypatch.setenv("RAY_AUTH_TOKEN", "secret")
    monkeypatch.setattr(connection.subprocess, "run", run)
    monkeypatch.setattr(connection, "check_imported", lambda version: None)
    monkeypatch.setattr("ray.init", refuse)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(InputError, match=expected) as raised:
            Cluster(address).open()
    ((last, environment),) = asked
    assert expected == "lets everybody in" or "nobody is there" in str(raised.value)
    assert last == ["--address", address] and environment["RAY_AUTH_MODE"] == "disabled"
    assert "secret" not in environment.values()


@needs_ray
@pytest.mark.slow
def test_a_real_cluster_lets_strangers_in_only_without_authentication(ray_cluster, tmp_path: Path):
    connection.check_locked(ray_cluster.address)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    folder = Path(f"/tmp/az-open-{os.getpid()}")  # sockets need a short path
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", f"--port={port}",
               "--node-ip-address=127.0.0.1", "--num-cpus=1", "--include-dashboard=false", f"--temp-dir={folder}",
               f"--object-store-memory={80 << 20}"]  # fmt: skip
    head = subprocess.Popen(
        command, env=os.environ | ENVIRONMENT | {"RAY_AUTH_MODE": "disabled"}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # it is not there yet
                connection._knock(f"127.0.0.1:{port}", 20)
                break
            time.sleep(0.5)
        with pytest.raises(InvalidSetting, match="lets everybody in"):
            connection.check_locked(f"127.0.0.1:{port}")
    finally:
        head.terminate()
        head.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


@needs_ray
def test_ray_that_was_imported_without_authentication_is_refused():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    script = "import ray; from alphazero.cluster.connection import Cluster; Cluster('local').open()"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert "was imported here with its authentication off" in done.stderr, done.stderr


def test_the_address_file_of_ray_start_is_read_unless_it_is_old_or_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog
):
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    file, stranger = tmp_path / "ray" / "ray_current_cluster", SimpleNamespace(st_uid=os.getuid() + 1)
    file.parent.mkdir()
    file.write_text("127.0.0.1:1")
    assert connection.find_address() is None
    with socket.create_server(("127.0.0.1", 0)) as server:
        file.write_text(f"127.0.0.1:{server.getsockname()[1]}")
        assert connection.find_address() == file.read_text()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fstat", lambda descriptor: stranger)
            found = connection.find_address()
    assert found is None and "was begun by another user of this machine" in caplog.text
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert connection.find_address() == "head:6379"


def test_the_environment_is_as_before(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "k8s")
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    with variables_set({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "x"}):
        assert os.environ["RAY_AUTH_TOKEN"] == "x"
    assert os.environ["RAY_AUTH_MODE"] == "k8s" and "RAY_AUTH_TOKEN" not in os.environ


@needs_ray
@pytest.mark.slow  # Ray tries a token that is refused for a minute
@pytest.mark.filterwarnings("default")
def test_a_wrong_token_is_one_sentence_and_leaves_no_run(ray_cluster, tmp_path: Path):
    environment = os.environ | ENVIRONMENT | {"RAY_AUTH_TOKEN": "6" * 64, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(ROOT / "main.py"), "--game", "tictactoe", "--run", str(tmp_path / "run"), "--cluster",
         ray_cluster.address],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "does not take our token: set RAY_AUTH_TOKEN" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@needs_ray
def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path: Path):
    with pytest.raises(InputError, match="cannot be reached"):
        connection.Cluster("127.0.0.1:1").open()
