"""The search on a GPU: the same visits as on the processor, for every game; in numba's simulator, and on one."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from alphazero.game import registry

CHECK = Path(__file__).parent / "cuda_search_check.py"
ROOT = CHECK.parents[2]


QUICK = {"connect4", "hex_swap", "othello6"}
"""In CI: among them are games with passes and a swap; the simulator is slow."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in sorted(registry.NAMES)]
)
def test_the_simulator_finds_what_the_processor_and_plain_python_find(name: str):
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore::RuntimeWarning", str(CHECK), name]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.strip() == f"{name}: all equal"


COMPILE = """
import sys
from types import SimpleNamespace
import numpy as np
import numba.cuda.dispatcher
from numba import cuda
from numba.cuda.typing.typeof import Purpose, typeof
from alphazero.game import registry
from alphazero.search.cuda_kernels import CudaKernels, make_buffers
from alphazero.game.kernels import Kernels
from alphazero.search.mcts import SearchConfig
from alphazero.search.tree import HOST, make_tree

numba.cuda.dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
kernels = Kernels(registry.load(sys.argv[1]).game)
of_game = CudaKernels(kernels)
tree = make_tree(6, 15, kernels.game.num_actions, kernels.game.state_words)
buffers, settings = make_buffers(kernels, 6, 15, 3, HOST), SearchConfig(leaves_per_step=3).kernel_settings
arguments = {
    "select": (settings,), "advance": (), "expand_and_backup": (settings,), "move_roots": (5, 10),
    "prepare_roots": (5, 14, 7, settings), "read_roots": (5, settings), "take_leaves": (True,), "take_roots": (5, True),
}
for name, others in arguments.items():
    (dispatcher,) = (cell.cell_contents for cell in getattr(of_game, name).__closure__)
    code, _ = cuda.compile_ptx(
        dispatcher.py_func, tuple(typeof(each, Purpose.argument) for each in (tree, buffers, *others)), cc=(9, 0)
    )
    assert ".visible .entry" in code
    print(name)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(registry.NAMES))
def test_every_kernel_compiles_for_a_gpu_without_one(name: str):
    """Needs numba-cuda and a compiler: `pip install "numba-cuda[cu13]"`."""
    if importlib.util.find_spec("numba_cuda") is None:
        pytest.skip("numba-cuda is not installed")
    command = [sys.executable, "-W", "error", "-c", COMPILE, name]
    result = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.split()) == 8


@pytest.mark.cuda
@pytest.mark.parametrize("name", sorted(registry.NAMES))
def test_a_gpu_finds_what_the_processor_finds(name: str, monkeypatch: pytest.MonkeyPatch):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    from alphazero.search.cuda_memory import CudaMemory
    from tests.search import cuda_search_check

    monkeypatch.setattr(
        CudaMemory, "captured", lambda self, launch: launch
    )  # the planted answers are computed by numpy
    assert cuda_search_check.differences(name, simulator=False) == []
