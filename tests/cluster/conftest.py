"""A small Ray cluster for the tests of a file: one machine with two cores, to which tests add others."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator

import pytest

TOKEN = "5" * 64
ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": TOKEN,
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # listens on the loopback interface
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
NODE = {"object_store_memory": 80 << 20, "include_dashboard": False, "no_monitor": True, "include_log_monitor": False}
STARTS = 3
needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")


@pytest.fixture(scope="module")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """A `ray.cluster_utils.Cluster`."""
    before = dict(os.environ)
    os.environ.update(ENVIRONMENT)
    from ray.cluster_utils import Cluster

    # sockets need a short path
    folder = f"/tmp/az-test-{os.getpid()}"
    found = Cluster(shutdown_at_exit=True)
    try:
        for start in range(1, STARTS + 1):
            try:
                found.add_node(num_cpus=2, temp_dir=folder, **NODE)
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
