"""The search on a GPU: the same visits as on the processor, for every game; in numba's simulator, and on one."""

import gc
import importlib.util
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from alphazero.catalogue import registry
from alphazero.game.kernels import Kernels
from alphazero.players.net_players import make_net_player
from alphazero.search import placement
from alphazero.search.mcts import SearchConfig

CHECK = Path(__file__).parent / "cuda_search_check.py"
ROOT = CHECK.parents[2]


DICE = [
    f"tests.search.{name}"
    for name in ("dice_games:PointsRace", "dice_games:SaysOne", "test_dice:Race", "test_alone:Steep")
]
QUICK = ["tictactoe", *DICE[:2]]
"""In CI: games so short that their self-play is compared as well; games with passes and a swap are slow ones."""
GAMES = [*sorted(registry.NAMES), *DICE]


@pytest.mark.parametrize(
    "names",
    [QUICK, *(pytest.param([name], marks=pytest.mark.slow) for name in GAMES if name not in QUICK)],
    ids=" ".join,
)
def test_the_simulator_finds_what_the_processor_finds(names: list[str]):
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore::RuntimeWarning", str(CHECK), *names]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines() == [f"{name}: all equal" for name in names]


COMPILE = """
import sys
from types import SimpleNamespace
import numpy as np
import numba.cuda.dispatcher
from numba import cuda
from numba.cuda.typing.typeof import Purpose, typeof
from alphazero.catalogue import registry
from alphazero.search.cuda_kernels import CudaKernels, make_buffers, make_dice_buffers
from alphazero.game.kernels import Kernels
from alphazero.search.mcts import SearchConfig
from alphazero.search.tree import HOST, make_tree, room_of

numba.cuda.dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=(9, 0))
kernels = Kernels(registry.load(sys.argv[1]).game)
of_game = CudaKernels(kernels.rules)
tree = make_tree(6, 15, room_of(kernels.game)[1], kernels.game.state_words)
buffers, settings = make_buffers(kernels, 6, 15, 3, HOST), SearchConfig(leaves_per_step=3).kernel_settings
arguments = {
    "select": (settings,), "advance": make_dice_buffers(kernels, tree, HOST),
    "expand_and_backup": (settings,), "move_roots": (5, 10),
    "begin_roots": (5, 7, settings), "read_roots": (5, settings), "take_leaves": (True,), "take_roots": (5, True),
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
@pytest.mark.parametrize("name", GAMES)
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
@pytest.mark.parametrize("name", GAMES)
def test_a_gpu_finds_what_the_processor_finds(name: str, monkeypatch: pytest.MonkeyPatch):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    from alphazero.search.cuda_memory import CudaMemory
    from tests.search import cuda_search_check

    # the planted answers are computed by numpy
    monkeypatch.setattr(CudaMemory, "captured", lambda self, launch: launch)
    assert cuda_search_check.differences(name) == []


class NetOnAnyDevice:
    """A network with the evaluator of its device."""

    def __init__(self, device: str):
        self.device = device

    def cuda_evaluator(self):
        return SimpleNamespace() if self.device == "cuda" else None


@pytest.mark.parametrize("name", ["tictactoe", "pig"])
def test_a_net_that_has_left_the_gpu_is_searched_on_the_processor(name: str, monkeypatch: pytest.MonkeyPatch):
    made = []
    monkeypatch.setattr(placement, "make_search", lambda *arguments: made.append(arguments))
    kernels, net = Kernels(registry.load(name).game), NetOnAnyDevice("cuda")
    for device in ("cuda", "cpu", "cuda"):
        net.device = device
        assert placement.runs_on_cuda(kernels, net) == (device == "cuda")
        assert len(placement.make_evaluators(kernels, net, 3, 16)) == {"cuda": 2, "cpu": 3}[device]
    assert len(made) == 1, "a search is tried once"


def test_a_net_that_has_played_is_freed_with_its_players():
    loaded = registry.load("tictactoe")
    kernels, net = Kernels(loaded.game), loaded.make_net(loaded.game, {"blocks": 1, "channels": 8})
    freed, others = weakref.ref(net), threading.enumerate()
    for config in (None, SearchConfig(num_simulations=2)):
        player = make_net_player("net", kernels, net, config, seed=0, threads=2)
        player.select_actions(kernels.start_states(1), np.zeros(1, np.int64), np.zeros(1, np.int64))
        del player
    del net
    gc.collect()
    for thread in set(threading.enumerate()) - set(others):  # the players' threads end when nobody holds their pool
        thread.join(10)
    assert freed() is None
