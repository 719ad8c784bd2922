"""OpenVINO is loaded by several threads at once, as in a server."""

from __future__ import annotations

import subprocess
import sys

import pytest

from alphazero.nets.kernels.library import CannotConvert
from alphazero.nets.kernels.openvino import _openvino

try:
    _openvino()
except CannotConvert:
    pytest.skip("OpenVINO is not installed", allow_module_level=True)

LOAD = """
import threading, warnings
from alphazero.nets.kernels.openvino import _openvino

barrier, found, before = threading.Barrier(4), [], list(warnings.filters)

def load():
    barrier.wait()
    found.append(_openvino())

threads = [threading.Thread(target=load) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(found), len({id(core) for _, core in found}), warnings.filters == before)
"""


def test_threads_may_load_the_library_at_the_same_time():
    """All but the first once raised KeyError, and the program's warnings were silenced for good."""
    shown = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, timeout=120)
    assert shown.stdout.split() == ["4", "1", "True"], shown.stderr
