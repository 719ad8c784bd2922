"""Games that numba cannot compile, and compiled code kept on disk."""

import logging
import re
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

from alphazero.game import Game, Rules
from alphazero.game.kernels import Kernels, kernel, of_fixed_types
from alphazero.search.rollouts import Playouts
from tests.game.fresh_python import run_python

# --- games that numba cannot compile ---

WORDS = {"lost": -1.0}


def countdown_init(state):
    state[0] = np.uint64(5)


def countdown_legal(state, legal_mask):
    for action in range(2):
        legal_mask[action] = state[0] > np.uint64(action)


def countdown_step(state, action):
    state[0] = state[0] - np.uint64(action + 1)


def countdown_is_terminal(state):
    return state[0] == np.uint64(0)


def countdown_terminal_value(state):
    return -1.0


def countdown_observe(state, planes):
    planes[0, 0, 0] = float(state[0])


def step_by_text(state, action):
    state[0] = np.uint64(int(f"{int(state[0]) - action - 1:d}"))


def step_by_a_try(state, action):
    try:
        state[0] = np.uint64(int(state[0]) - [1, 2][action])
    except (IndexError, KeyError) as error:
        raise ValueError(f"no such action: {error}") from error


def step_by_a_generator(state, action):
    state[0] = np.uint64(int(state[0]) - sum(one for one in [1] * (action + 1)))


def value_by_a_dict(state):
    return WORDS["lost"]


class Countdown(Game):
    """Who takes the last of five stones wins; one or two are taken."""

    name = "countdown"
    num_actions, state_words, max_plies = 2, 1, 5
    observation_shape = (1, 1, 1)
    rules = Rules(
        countdown_init,
        countdown_legal,
        countdown_step,
        countdown_is_terminal,
        countdown_terminal_value,
        countdown_observe,
    )


COUNTDOWN = Kernels(Countdown())


def make_countdown(name: str, **rules: Callable[..., Any]) -> Game:
    """A countdown with other rules, under a name of its own: the reason is said once for every game."""
    game = type("Renamed", (Countdown,), {"name": name})()
    game.rules = replace(Countdown.rules, **rules)
    return game


def everything(kernels: Kernels) -> list[np.ndarray]:
    """The results of all kernels along two games of three actions."""
    states, to_play = kernels.start_states(2), np.zeros(2, np.int8)
    kernels.find_movers(states, to_play)
    results = [states.copy()]
    for actions in ([0, 1], [1, 1], [1, 0]):
        kernels.play(states, to_play, np.array(actions))
        results += [states.copy(), to_play.copy(), *kernels.describe_all(states), kernels.observations(states)]
    rows = np.array([[5], [2], [0], [0], [0]], np.uint64)
    written = (
        rows,
        np.zeros(5, np.int8),  # to play
        np.array([0, 1, -1]),
        np.array([1, 1, 0]),
        np.array([2, 3, 4]),
        np.zeros(3, bool),  # terminal
        np.zeros((3, 1), np.float32),  # values
        np.zeros((3, 1), np.uint64),  # leaf states
        np.zeros((3, 2), bool),  # leaf masks
    )
    count = kernels.advance(*written)
    starts = np.array([[5], [4], [3], [2]], np.uint64)
    masks = kernels.describe_all(starts)[0]
    return [*results, *written, np.array(count), *Playouts(kernels, seed=1)(starts, masks)]


NOT_FOR_NUMBA: dict[str, dict[str, Callable[..., Any]]] = {
    "a format in an f-string": {"step": step_by_text},
    "exceptions by name": {"step": step_by_a_try},
    "a generator": {"step": step_by_a_generator},
    "a global dict": {"terminal_value": value_by_a_dict},
}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind == "a generator" else pytest.mark.slow) for kind in NOT_FOR_NUMBA]
)
def test_rules_that_numba_cannot_compile_run_as_plain_python_said_once(kind: str, caplog: pytest.LogCaptureFixture):
    game = make_countdown(f"countdown with {kind}", **NOT_FOR_NUMBA[kind])
    with caplog.at_level(logging.WARNING):
        results = everything(Kernels(game))
    for ours, compiled in zip(results, everything(COUNTDOWN), strict=True):
        np.testing.assert_array_equal(ours, compiled)
    said = [record.getMessage() for record in caplog.records if record.name.startswith("alphazero")]
    assert len(said) == 1, said
    assert game.name in said[0]
    assert "slower" in said[0]


def test_planes_come_all_zero_to_the_rules():
    def observe(state, planes):
        planes[0, 0, 0] += 2.0

    kernels = Kernels(make_countdown("countdown that adds", observe=observe))
    planes = np.full((2, 1, 1, 1), np.nan, np.float32)
    kernels.observe(kernels.start_states(2), planes)
    assert planes.ravel().tolist() == [2.0, 2.0]
    assert kernels.game.start().observation.tolist() == [[[2.0]]]


def test_an_error_of_a_rule_is_not_taken_for_one_of_numba():
    def step(state, action):
        raise ValueError("the rules are broken")

    kernels = Kernels(make_countdown("broken countdown", step=step))
    with pytest.raises(ValueError, match="the rules are broken"):
        kernels.play(kernels.start_states(1), np.zeros(1, np.int8), np.array([0]))


# --- rules that make arrays ---

MANY_STEPS = 20_000
ARRAY_BYTES = 80_000


@njit
def step_by_an_array(state, action):
    copy = np.zeros(ARRAY_BYTES // 8, np.uint64)
    copy[0] = state[0]
    state[0] = copy[0] - np.uint64(action + 1)


def test_references_are_counted_only_where_rules_make_arrays(caplog: pytest.LogCaptureFixture):
    """Counting makes a kernel several times slower: finding wins in gomoku took ten times as long."""
    plays = []
    for step in (countdown_step, step_by_an_array):
        kernels = Kernels(make_countdown("countdown of arrays", step=step))
        states = kernels.start_states(2)
        kernels.play(states, np.zeros(2, np.int8), np.array([0, 1]))
        assert states.tolist() == [[4], [3]]
        plays.append(kernels.play.compiled.targetoptions["_nrt"])
    assert plays == [False, True]
    assert caplog.text == ""


def test_arrays_that_rules_make_are_freed():
    resource = pytest.importorskip("resource")
    kernels = Kernels(make_countdown("countdown of arrays", step=step_by_an_array))
    states, actions = kernels.start_states(MANY_STEPS), np.zeros(MANY_STEPS, np.int64)
    to_play = np.zeros(MANY_STEPS, np.int8)
    kernels.play(states[:1], to_play[:1], actions[:1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kernels.play(states, to_play, actions)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < MANY_STEPS * ARRAY_BYTES / 10


# --- compiled code on disk ---

HELPER_MODULE = """
    import numpy as np
    from numba import njit

    LIMIT = np.uint64({limit})

    @njit
    def taken(action):
        return np.uint64(action + {offset})
"""

GAME_MODULE = """
    import numpy as np
    {import_line}
    from numba import njit
    from alphazero.game import Game, Rules

    @njit
    def init(state):
        state[0] = {module}LIMIT

    @njit
    def legal(state, legal_mask):
        legal_mask[0] = True

    @njit
    def step(state, action):
        state[0] = state[0] - {module}taken(action)

    @njit
    def is_terminal(state):
        return state[0] == np.uint64(0)

    @njit
    def terminal_value(state):
        return -1.0

    @njit
    def observe(state, planes):
        planes[0, 0, 0] = 1.0

    class Small(Game):
        name = "small"
        num_actions, state_words, max_plies = 1, 1, 9
        observation_shape = (1, 1, 1)
        rules = Rules(init, legal, step, is_terminal, terminal_value, observe)
"""

IN_VARIABLES = """
def one(stones):
    return stones - np.uint64(1)

def two(stones):
    return stones - np.uint64(2)

@njit
def step(state, action):
    mine, theirs = two, one
    for turn in range(action + 1):
        state[0] = mine(state[0])
        mine, theirs = theirs, mine
"""

PLAY_ONCE = """
    import importlib, json
    import numpy as np
    from alphazero.game.kernels import Kernels

    def play_once(module):
        kernels = Kernels(importlib.import_module(module).Small())
        first = kernels.play.compiled
        states = kernels.start_states(1)
        kernels.play(states, np.zeros(1, np.int8), np.zeros(1, np.int64))
        stats = [kernel.compiled.stats for kernel in (kernels.init_states, kernels.play)]
        stats += [first.stats] * (first is not kernels.play.compiled)
        assert kernels.play.is_compiled
        hits = sum(sum(one.cache_hits.values()) for one in stats)
        return int(states[0, 0]), hits, sum(sum(one.cache_misses.values()) for one in stats)

    print(json.dumps([play_once(module) for module in {modules}]))
"""


@pytest.mark.parametrize(
    ("import_line", "module_name"),
    [
        pytest.param("from small_helper import LIMIT, taken", "", id="by name"),
        pytest.param("import small_helper", "small_helper.", id="by module", marks=pytest.mark.slow),
    ],
)
def test_compiled_code_is_found_by_the_next_process_and_never_stale(tmp_path: Path, import_line: str, module_name: str):
    """A helper or constant changed in another file than the rules' is the case that numba's own cache misses.

    Code of rules that make arrays is found, too. Rules may hold functions in variables: without the functions' code
    LLVM would end the process.
    """

    def play_once(*modules: str, limit: int = 7, offset: int = 1) -> list[list[int]]:
        helper = textwrap.dedent(HELPER_MODULE.format(limit=limit, offset=offset))
        (tmp_path / "small_helper.py").write_text(helper)
        code = PLAY_ONCE.replace("{modules}", str(list(modules)))
        return run_python(code, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"), PYTHONDONTWRITEBYTECODE="1")

    source = textwrap.dedent(GAME_MODULE.format(import_line=import_line, module=module_name))
    (tmp_path / "small_game.py").write_text(source)
    alone = textwrap.dedent(GAME_MODULE.format(import_line="", module="")).replace("LIMIT", "np.uint64(7)")
    alone = alone.replace('"small"', '"another"')
    arrays = alone.replace("- taken(action)", "- np.ones(2, np.uint64)[action]")
    (tmp_path / "array_game.py").write_text(arrays)
    variables = re.sub(r"@njit\ndef step.*?\n\n", lambda _: IN_VARIABLES.lstrip() + "\n", alone, flags=re.DOTALL)
    (tmp_path / "variables_game.py").write_text(variables)
    # of rules that make arrays the code without counts of references is tried, too, but in the first process alone
    assert play_once("small_game", "array_game") == [[6, 0, 2], [6, 0, 3]]
    files = sorted((tmp_path / "cache").rglob("*"))
    assert play_once("small_game", "array_game") == [[6, 2, 0], [6, 2, 0]]
    assert sorted((tmp_path / "cache").rglob("*")) == files, "a run adds files each time"
    assert play_once("small_game", "variables_game", limit=9, offset=2) == [[7, 0, 2], [5, 0, 2]]


def test_two_games_of_one_factory_do_not_share_compiled_code():
    """Their functions have one name, one file and one line."""

    def make(amount: int) -> Game:
        @njit
        def step(state, action):
            state[0] = state[0] - np.uint64(amount)

        return make_countdown("one of two", step=step)

    left = []
    for amount in (1, 2):
        kernels = Kernels(make(amount))
        states = kernels.start_states(1)
        kernels.play(states, np.zeros(1, np.int8), np.array([0]))
        left.append(int(states[0, 0]))
    assert left == [4, 3]


def test_a_kernel_of_fixed_types_takes_arrays_of_any_length():
    @kernel
    def add_all(numbers, total, times):
        for number in numbers:
            total[0] += times * number

    add = of_fixed_types(add_all)
    for numbers in ([1.0, 2.0], [0.5], []):
        total = np.zeros(1)
        add(np.array(numbers), total, 3)
        assert total[0] == 3 * sum(numbers)
