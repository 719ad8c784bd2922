"""A small Ray cluster for the tests of a file: one machine with two cores, to which tests add others."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.fake import FakeRay

ENVIRONMENT = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # listens on the loopback interface
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
NODE = {"object_store_memory": 80 << 20, "include_dashboard": False, "no_monitor": True, "include_log_monitor": False}
STARTS = 3
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator:
    """A `ray.cluster_utils.Cluster`."""
    before = dict(os.environ)
    # sockets need a short path
    folder = Path(f"/tmp/az-test-{os.getpid()}")
    (folder / "ray").mkdir(parents=True, exist_ok=True)
    os.environ.update(ENVIRONMENT | {"RAY_TMPDIR": str(folder)})
    from ray.cluster_utils import Cluster

    found = Cluster(shutdown_at_exit=True)
    try:
        for start in range(1, STARTS + 1):
            try:
                found.add_node(num_cpus=2, temp_dir=str(folder), **NODE)
                break
            except Exception as error:  # Ray waits half a minute, whatever else the machine does
                if "timed out" not in str(error) or start == STARTS:
                    raise
                found = Cluster(shutdown_at_exit=True)
        yield found
    finally:
        found.shutdown()
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host of a cluster in this process fetches its weights where they were put, though Ray may be installed."""
    monkeypatch.setitem(sys.modules, "ray", FakeRay())
