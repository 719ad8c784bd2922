"""Everything is compiled before the clock of a run starts, and a search that has to be compiled first says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
TRAIN = """
import json, sys
from numba.core.dispatcher import Dispatcher
from alphazero.catalogue import registry
from alphazero.training import run
from alphazero.training.parts import pace
from alphazero.api.runs import override
pace.LAST_GATE_GAMES = 4
early, late = set(), []
compile_one = Dispatcher.compile
def compile_and_tell(self, signature):
    name = self.py_func.__qualname__  # it holds all that went into the function; loading its code again is quick
    if not started:
        early.add(name)
    elif name not in early and self._can_compile:
        late.append(name)
    return compile_one(self, signature)
Dispatcher.compile = compile_and_tell
started = []
loaded = registry.load("tictactoe")
config = override(loaded.presets()["quick"], json.loads(sys.argv[2]), "")
run.train(loaded, config, sys.argv[1], threads=1, on_start=lambda coach: started.append(coach))
print(json.dumps(late))
"""
SMALL = {
    "generations": 2, "net": {"blocks": 1, "channels": 8},
    "self_play": {"games_per_generation": 8, "num_slots": 4, "epsilon": 0.2, "random_plies": 2},
    "gate": {"games": 4, "simulations": 4}, "evaluation": {"opponents": []},
}  # fmt: skip
SEARCHES = {
    "gumbel": {"num_simulations": 4, "gumbel_actions": 4},
    "puct": {"num_simulations": 4, "gumbel_actions": 0, "leaves_per_step": 2},
}


@pytest.mark.parametrize(
    "search", [SEARCHES["puct"], pytest.param(SEARCHES["gumbel"], marks=pytest.mark.slow)], ids=["puct", "gumbel"]
)
def test_nothing_is_compiled_after_the_clock_has_started(search, tmp_path: Path):
    settings = json.dumps(SMALL | {"search": search})
    command = [sys.executable, "-c", TRAIN, str(tmp_path / "run"), settings]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


SEARCH = """
import sys
import numpy as np
import alphazero as az
from alphazero.progress import showing
from alphazero.search import cpu_kernels, mcts
from alphazero.storage import kernel_cache
def uniform(states, legal_masks):
    return legal_masks.astype(np.float32), np.zeros(len(states), np.float32)
if sys.argv[1] == "cold":
    kernel_cache.Cache.is_kept = False
position = az.load_game("tictactoe").start()
with showing(sys.argv[2] == "yes"):
    for _ in range(2):
        az.search(position, uniform, simulations=4)
# what another process compiles ahead is for the arguments that the search has
mcts.compile_roots()
for kernel in cpu_kernels.move_roots, cpu_kernels.begin_roots, cpu_kernels.read_roots:
    assert len(kernel.signatures) == 1, kernel
"""


@pytest.mark.parametrize(
    ("cache", "shows", "lines"),
    [
        ("cold", "yes", 1),
        *(pytest.param(*case, 0, marks=pytest.mark.slow) for case in (("cold", "no"), ("warm", "yes"))),
    ],
)
def test_a_search_that_is_compiled_first_says_so_once(cache: str, shows: str, lines: int):
    """`cold` says that there is no code on disk, though there is from the first test on."""
    command = [sys.executable, "-c", SEARCH, cache, shows]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout == ""
    sentence = "compiling the search for this machine, once: about 20 seconds\n"
    assert done.stderr == sentence * lines
