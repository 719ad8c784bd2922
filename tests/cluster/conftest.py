"""A small Ray cluster for the tests of a file: one machine with two cores, to which tests add others."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def add_node(cluster: Any, **options: Any) -> Any:
    """Adds a machine to the cluster, again where Ray gave up after half a minute: a busy machine may need longer."""
    before = cluster.list_all_nodes()
    for start in range(1, STARTS + 1):
        try:
            return cluster.add_node(**NODE, **options)
        except Exception as error:
            if start == STARTS or "timed out" not in str(error).lower():
                raise
            for late in [node for node in cluster.list_all_nodes() if node not in before]:
                cluster.remove_node(late, allow_graceful=False)
            if not before:
                cluster.global_state.disconnect()  # the next head has another address


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
        add_node(found, num_cpus=2, temp_dir=str(folder))
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
