"""The search on a GPU: the same visits as on the processor, for every game; in numba's simulator, and on a device."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import games

CHECK = Path(__file__).parent / "device_search_check.py"
ROOT = CHECK.parents[1]


@pytest.mark.parametrize("name", sorted(games.NAMES))
def test_the_simulator_finds_what_the_processor_and_plain_python_find(name: str):
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore::RuntimeWarning", str(CHECK), name]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.strip() == f"{name}: all equal"


@pytest.mark.cuda
@pytest.mark.parametrize("name", sorted(games.NAMES))
def test_a_device_finds_what_the_processor_finds(name: str, monkeypatch: pytest.MonkeyPatch):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    import device_search_check

    from alphazero.device import Device

    monkeypatch.setattr(Device, "captured", lambda self, launch: launch)  # the planted answers are computed by numpy
    assert device_search_check.differences(name, simulator=False) == []
