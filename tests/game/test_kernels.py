"""Compiled kernels: shared by the game objects of a process, and on disk, as several programs leave them there."""

import copy
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.storage.kernel_cache import Cache
from tests.game.fresh_python import run_python

ROOT = Path(__file__).resolve().parents[2]
USE = """
import sys
import numpy as np
from alphazero.catalogue import registry
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


@pytest.mark.parametrize("name", registry.NAMES)
def test_a_game_that_is_loaded_again_shares_its_kernels(name: str):
    """Else each call that names a game compiles it anew, for seconds, and numba keeps the code for ever."""
    position = registry.load(name).game.start()
    copies = registry.load(name).game, pickle.loads(pickle.dumps(position)).game, copy.deepcopy(position).game
    kernels, others = Kernels(position.game), [Kernels(game) for game in copies]
    assert all(other.game is game for other, game in zip(others, copies, strict=True))
    assert all(other.play is kernels.play and other.scope is kernels.scope for other in others)


RACE = """
import numpy as np
from numba import njit
from alphazero.game import Game, Rules

GOAL = 10

@njit
def init(state):
    state[0] = 0

@njit
def legal(state, legal_mask):
    legal_mask[:] = True

@njit
def step(state, action):
    state[0] += np.uint64(action + 1)

@njit
def is_terminal(state):
    return state[0] >= GOAL

@njit
def terminal_value(state):
    return -1.0

@njit
def observe(state, planes):
    planes[0, 0, 0] = state[0]

class Race(Game):
    name, num_actions, state_words, max_plies, observation_shape = "race", 2, 1, 20, (1, 1, 2)
    rules = Rules(init, legal, step, is_terminal, terminal_value, observe)
"""


def defined(source: str) -> dict[str, Any]:
    """The names of a notebook's cell that was run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(source, names)
    return names


def is_over(game: Game, word: int) -> bool:
    """By the game's kernels."""
    return bool(Kernels(game).describe_all(np.array([[word]], np.uint64))[1][0])


def test_a_class_that_is_defined_anew_shares_no_code_with_the_old_one():
    old, same, new = (defined(source)["Race"]() for source in (RACE, RACE, RACE.replace("GOAL = 10", "GOAL = 5")))
    assert is_over(old, 7) is False and is_over(new, 7) is True and is_over(old, 7) is False
    assert Kernels(same).describe is not Kernels(old).describe


def test_rules_whose_constants_have_changed_are_compiled_anew():
    names = defined(RACE)
    assert not is_over(names["Race"](), 7)
    names["GOAL"] = 5
    assert is_over(names["Race"](), 7)


def test_games_of_the_same_functions_that_differ_otherwise_share_no_kernels():
    """The name is in the code's name on disk; the number of symmetries is in the code."""
    names = defined(RACE)
    race = names["Race"]()
    other_name, other_rule, mirrored = (type("Race", (names["Race"],), {})() for _ in range(3))
    other_name.name = "another"
    other_rule.rules = replace(race.rules, heuristic=names["terminal_value"])
    mirrored.symmetries = np.array([[0, 1], [1, 0]]), np.array([[0, 1], [1, 0]])
    kernels = [Kernels(game).describe for game in (race, other_name, other_rule, mirrored)]
    assert len(set(kernels)) == 4 and Kernels(names["Race"]()).describe is kernels[0]


def test_a_list_of_states_is_as_good_as_an_array():
    """As the first call it once made the kernel plain Python, and later ones failed."""
    kernels = Kernels(defined(RACE)["Race"]())
    states = [np.array([word], np.uint64) for word in (3, 10)]
    masks, terminal, _ = kernels.describe_all(states)
    assert masks.tolist() == [[True, True], [False, False]] and terminal.tolist() == [False, True]
    assert kernels.observations(states)[:, 0, 0, 0].tolist() == [3, 10]
    assert all(kernel.is_compiled for kernel in (kernels.describe, kernels.observe))
    assert kernels.canonical(states)[0].tolist() == [[3], [10]]


@pytest.mark.parametrize("states", [np.zeros(1, np.uint64), np.zeros((2, 3), np.uint64), 5])
def test_states_of_another_shape_are_refused(states: Any):
    """Kernels check no index."""
    kernels = Kernels(defined(RACE)["Race"]())
    for ask in (kernels.describe_all, kernels.observations, kernels.canonical):
        with pytest.raises(ValueError, match=r"states must have the shape \(n, 1\)"):
            ask(states)


def test_old_rules_give_way_to_new_ones(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("alphazero.game.kernels.MOST_RULES", 2)
    monkeypatch.setattr("alphazero.game.kernels._kept_rules", kept := {})
    first, *others = (defined(RACE)["Race"]() for _ in range(3))
    describe = Kernels(first).describe
    assert Kernels(first).describe is describe
    for other in others:
        Kernels(other)
    assert len(kept) == 2 and Kernels(first).describe is not describe


def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def value(state):
    return -1.0 if fibonacci(int(state[1]) & 7) > 3 else 0.0


def test_code_of_rules_that_call_themselves_is_not_kept_on_disk():
    """numba may keep code of them that ends the process when it is loaded."""
    tictactoe = registry.load("tictactoe").game

    class Recursive(type(tictactoe)):
        name = "recursive"
        rules = replace(tictactoe.rules, terminal_value=value)

    kernels = Kernels(Recursive())
    caches = [kernel.compiled._cache for kernel in (kernels.describe, kernels.observe)]
    assert [isinstance(cache, Cache) for cache in caches] == [False, True]
    states = np.array([[0, 0b111], [0, 0b001001001], [0, 0]], np.uint64)
    assert kernels.describe_all(states)[2].tolist() == [-1.0, 0.0, 0.0] and kernels.describe.is_compiled


def test_a_wrong_call_leaves_the_next_ones_compiled(caplog: pytest.LogCaptureFixture):
    kernels = Kernels(defined(RACE)["Race"]())
    states = kernels.start_states(1)
    with pytest.raises(IndexError):
        kernels.describe(states[0], np.ones((1, 2), bool), np.ones(1, bool), np.ones((1, 1), np.float32))
    assert kernels.describe_all(states)[0].all() and kernels.describe.is_compiled
    assert "numba" not in caplog.text


THREADS = """
import json, sys, threading, types
import numpy as np
from alphazero.catalogue import registry
from alphazero.game import kernels as templates
from alphazero.game.kernels import Kernels
sys.setswitchinterval(1e-6)
kernels = Kernels(registry.load("tictactoe").game)
parts = [(templates._init_states,), (templates._describe,), (templates._play,), (templates._advance,),
         (templates._observe_states,), (templates._canonicalize, templates._to_canonical)]
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
