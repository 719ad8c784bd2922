"""Compiled kernels on disk, as several programs leave them there."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alphazero.game import registry
from alphazero.game.kernels import Kernels, _canonicalize, _to_canonical, _wins_by
from alphazero.search.evaluator import _look_up, find_entry
from alphazero.storage.kernel_cache import Cache
from tests.game.fresh_python import run_python

ROOT = Path(__file__).resolve().parents[2]
USE = """
import sys
import numpy as np
from alphazero.game import registry
from alphazero.game.kernels import Kernels
def use(name):
    kernels = Kernels(registry.load(name).game)
    position, rng = kernels.game.start(), np.random.default_rng(0)
    states, to_play = kernels.start_states(1), np.zeros(1, np.int8)
    while not position.terminal:
        action = int(rng.choice(position.legal_actions))
        position = position.play(action)
        kernels.play(states, to_play, np.array([action]))
        masks, terminal, values = kernels.describe_all(states)
        assert (states[0] == position.state).all() and terminal[0] == position.terminal, name
        assert (masks[0] == position.legal_mask).all(), name
for name in sys.argv[1:]:
    use(name)
"""


@pytest.mark.parametrize(
    "names", [pytest.param(("gomoku15", "gomoku"), marks=pytest.mark.slow), ("othello6", "othello")]
)
def test_games_of_one_factory_that_were_compiled_apart_can_be_loaded_together(names: tuple[str, str], tmp_path: Path):
    """Code on disk is linked by name when it is loaded: no two games' functions may have the same."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    for loaded in ([names[0]], [names[1]], list(names), list(names[::-1])):
        command = [sys.executable, "-W", "ignore::RuntimeWarning", "-c", USE, *loaded]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, f"{loaded}: {result.stderr}"


def test_a_function_that_several_kernels_call_is_compiled_once():
    kernels = Kernels(registry.load("tictactoe").game)
    callers = kernels.bind(_canonicalize, _to_canonical), kernels.bind(_look_up, _to_canonical, _wins_by, find_entry)
    called = [caller.compiled.py_func.__globals__["to_canonical"] for caller in callers]
    assert called[0] is called[1] and hasattr(called[0], "py_func")


def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def guess(state):
    return 0.5 if fibonacci(int(state[0]) & 7) > 3 else 0.0


def test_code_of_rules_that_call_themselves_is_not_kept_on_disk():
    """numba may keep code of them that ends the process when it is loaded."""
    tictactoe = registry.load("tictactoe").game

    class Recursive(type(tictactoe)):
        name = "recursive"
        rules = replace(tictactoe.rules, heuristic=guess)

    kernels = Kernels(Recursive())
    caches = [kernel.compiled._cache for kernel in (kernels.guess, kernels.describe)]
    assert [isinstance(cache, Cache) for cache in caches] == [False, True]
    guesses = np.zeros(1)
    kernels.guess(kernels.start_states(1), guesses)
    assert guesses == [0.0] and kernels.guess.is_compiled


def test_a_wrong_call_leaves_the_next_ones_compiled(caplog: pytest.LogCaptureFixture):
    kernels = Kernels(registry.load("tictactoe").game)
    states = kernels.start_states(1)
    with pytest.raises(IndexError):
        kernels.describe_all(states[0])
    assert kernels.describe_all(states)[0].all() and kernels.describe.is_compiled
    assert "numba" not in caplog.text


THREADS = """
import json, sys, threading, types
import numpy as np
from alphazero.game import kernels as templates, registry
from alphazero.game.kernels import Kernels
sys.setswitchinterval(1e-6)
kernels = Kernels(registry.load("othello6").game)
parts = [(templates._init_states,), (templates._describe,), (templates._play,), (templates._advance,),
         (templates._observe_states,), (templates._find_wins, templates._wins_by)]
def side_by_side(calls):
    begin, found = threading.Barrier(len(calls)), []
    def use(call):
        begin.wait()
        found.append(call())
    threads = [threading.Thread(target=use, args=(call,)) for call in calls]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    return found
found = side_by_side([lambda part=part: kernels.bind(*part) for part in parts * 2])
functions = [kernel.compiled.py_func for kernel in found]
plain = [name for function in functions for name in function.__code__.co_names
         if isinstance(function.__globals__.get(name), types.FunctionType)]
states, compile, compiled = np.zeros((2, kernels.game.state_words), np.uint64), kernels.init_states._compile, []
kernels.init_states._compile = lambda arguments: compiled.append(1) or compile(arguments)
side_by_side([lambda: kernels.init_states(states)] * 8)
print(json.dumps([len(set(map(id, found))), len(parts), plain, len(compiled), kernels.init_states.is_compiled]))
"""


def test_threads_that_make_the_kernels_of_a_game_at_the_same_time(tmp_path: Path):
    """Each is made and compiled once, and none gets a function that another thread has not compiled yet."""
    assert run_python(THREADS, tmp_path, NUMBA_CACHE_DIR=str(tmp_path)) == [6, 6, [], 1, True]
