"""Rules without numba: `plain`, `fingerprint`, games that numba cannot compile, and compiled code kept on disk."""

import json
import logging
import os
import subprocess
import sys
import textwrap
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import njit

from alphazero.game import Game, Rules
from alphazero.game.functions import fingerprint, plain, rule_functions
from alphazero.game.kernels import Kernels, kernel
from alphazero.players.baselines import action_values
from alphazero.search.rollouts import playouts
from tests.game.perft import count_games

REPOSITORY = Path(__file__).resolve().parents[2]
TABLE = np.array([3, 1, 2])


@njit
def add_three(number):
    return number + 3


@njit
def add_four(number):
    return add_three(number) + 1


@njit
def factorial(number):
    return 1 if number <= 1 else number * factorial(number - 1)


@njit
def look_up(index):
    return TABLE[index]


def undecorated(number):
    return add_three(number) * 2


@njit
def by_an_undecorated_helper(number):
    return undecorated(number)


def make_adder(amount: int) -> Callable[..., Any]:
    @njit
    def inner(number):
        return number + amount

    @njit
    def outer(number):
        return inner(number) * 10

    return outer


def make_factorial() -> Callable[..., Any]:
    @njit
    def recursive(number):
        return 1 if number <= 1 else number * recursive(number - 1)

    return recursive


def make_chooser() -> Callable[..., Any]:
    functions = (add_three, add_four)

    @njit
    def choose(number):
        return functions[1](number)

    return choose


def make_default(*, amount: int) -> Callable[..., Any]:
    def add(number, *, more=amount):
        return number + more

    return add


def defined(source: str, name: str = "rule", **scope: Any) -> Callable[..., Any]:
    """The function `name` from source code of its own."""
    scope |= {"njit": njit, "np": np}
    exec(textwrap.dedent(source), scope)
    return scope[name]


def module(source: str) -> types.ModuleType:
    """A helper module, as an import would give it."""
    made = types.ModuleType("a_helper_module")
    exec(textwrap.dedent(source), vars(made))
    return made


# --- plain ---


def compiled_reached(function: Callable[..., Any], seen: set[int] | None = None) -> list[str]:
    """Names of the compiled functions that a function can still call."""
    seen = set() if seen is None else seen
    if isinstance(function, tuple):
        return [name for item in function for name in compiled_reached(item, seen)]
    if hasattr(function, "py_func"):
        return [function.__name__]
    if not isinstance(function, types.FunctionType) or id(function) in seen:
        return []
    seen.add(id(function))
    used = [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]
    used += [cell.cell_contents for cell in function.__closure__ or ()]
    return [name for value in used for name in compiled_reached(value, seen)]


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        (add_three, 4, 7),
        (add_four, 4, 8),
        (factorial, 5, 120),
        (look_up, 2, 2),
        (by_an_undecorated_helper, 1, 8),
        (make_adder(5), 1, 60),
        (make_factorial(), 5, 120),
        (make_chooser(), 1, 5),
        (make_default(amount=2), 1, 3),
    ],
    ids=[
        "one function",
        "a helper",
        "recursion",
        "a table",
        "a helper without decorator",
        "closures",
        "recursion in a closure",
        "a tuple of functions",
        "a keyword with a default",
    ],
)
def test_plain_runs_without_compiled_functions(function: Callable[..., Any], argument: int, expected: int):
    made = plain(function)
    assert made(argument) == expected
    assert not hasattr(made, "py_func")
    assert compiled_reached(made) == []


def test_plain_leaves_the_compiled_function_as_it_was():
    made = plain(add_four)
    assert hasattr(add_four.py_func.__globals__["add_three"], "py_func")
    assert made.__globals__ is not globals()
    assert add_four(1) == 5


def test_plain_functions_from_one_factory_keep_their_own_closures():
    first, second = plain(make_adder(1)), plain(make_adder(2))
    assert (first(0), second(0)) == (10, 20)


# --- fingerprint ---

HELPER = """
    @njit
    def helper(number):
        return number + {amount}

    @njit
    def rule(number):
        return helper(number) {sign} LIMIT
"""


def test_equal_functions_have_equal_fingerprints():
    first, second = (defined(HELPER.format(amount=1, sign="*"), LIMIT=5) for _ in range(2))
    assert first is not second
    assert fingerprint(first) == fingerprint(second)
    assert fingerprint(make_adder(3)) == fingerprint(make_adder(3))
    assert fingerprint(factorial) == fingerprint(factorial)


def array_rule(table: np.ndarray) -> Callable[..., Any]:
    return defined("@njit\ndef rule(number):\n    return TABLE[number]", TABLE=table)


def attribute_rule(source: str) -> Callable[..., Any]:
    return defined("@njit\ndef rule(number):\n    return helpers.change(number)", helpers=module(source))


def enumeration_rule(black: int) -> Callable[..., Any]:
    source = f"""
        import enum
        class Colour(enum.IntEnum):
            BLACK = {black}
        @njit
        def rule(number):
            return number + Colour.BLACK
    """
    return defined(source)


CHANGE = "from numba import njit\nAMOUNT = {0}\n@njit\ndef change(number):\n    return number + {1}"

DIFFERENT = {
    "a number in the code": (
        defined(HELPER.format(amount=1, sign="*"), LIMIT=5),
        defined(HELPER.format(amount=1, sign="+"), LIMIT=5),
    ),
    "the body of a helper": (
        defined(HELPER.format(amount=1, sign="*"), LIMIT=5),
        defined(HELPER.format(amount=2, sign="*"), LIMIT=5),
    ),
    "a constant": (
        defined(HELPER.format(amount=1, sign="*"), LIMIT=5),
        defined(HELPER.format(amount=1, sign="*"), LIMIT=6),
    ),
    "the type of a constant": (
        defined(HELPER.format(amount=1, sign="*"), LIMIT=5),
        defined(HELPER.format(amount=1, sign="*"), LIMIT=np.uint64(5)),
    ),
    "a closure": (make_adder(1), make_adder(2)),
    "an entry of an array": (array_rule(np.array([1, 2, 3])), array_rule(np.array([1, 2, 4]))),
    "a late entry of a large array": (
        array_rule(np.arange(5000)),
        array_rule(np.where(np.arange(5000) == 2500, 0, np.arange(5000))),
    ),
    "the type of an array": (array_rule(np.array([1, 2], np.int64)), array_rule(np.array([1, 2], np.uint64))),
    "the shape of an array": (array_rule(np.arange(4)), array_rule(np.arange(4).reshape(2, 2))),
    "a default": (make_default(amount=1), make_default(amount=2)),
    "a helper reached by its module": (
        attribute_rule(CHANGE.format(0, 1)),
        attribute_rule(CHANGE.format(0, 2)),
    ),
    "a constant reached by its module": (
        attribute_rule(CHANGE.format(1, "AMOUNT")),
        attribute_rule(CHANGE.format(2, "AMOUNT")),
    ),
    "a member of an enumeration": (enumeration_rule(1), enumeration_rule(2)),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_change_changes_the_fingerprint(one: Callable[..., Any], other: Callable[..., Any]):
    assert fingerprint(one) != fingerprint(other)


def test_the_order_of_functions_counts():
    assert fingerprint(add_three, add_four) != fingerprint(add_four, add_three)
    assert fingerprint(add_three, None) != fingerprint(add_three)


def run_python(code: str, folder: Path, **environment: str) -> Any:
    """What a fresh Python prints as JSON, with `folder` and the repository on its path."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{REPOSITORY}"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_fresh_process_finds_the_same_fingerprints(tmp_path: Path, game: Game):
    """Otherwise compiled code would never be found again."""
    code = f"""
        import json
        from alphazero.game import registry
        from alphazero.game.functions import fingerprint, rule_functions
        print(json.dumps(fingerprint(*rule_functions(registry.load("{game.name}").game.rules).values())))
    """
    ours = fingerprint(*rule_functions(game.rules).values())
    assert run_python(code, tmp_path, PYTHONHASHSEED="1") == ours


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
        np.zeros(3, np.float32),  # values
        np.zeros((3, 1), np.uint64),  # leaf states
        np.zeros((3, 2), bool),  # leaf masks
    )
    count = kernels.advance(*written)
    sequences = [count_games(kernels, depth) for depth in range(1, 6)]
    starts = np.array([[5], [4], [3], [2]], np.uint64)
    masks = kernels.describe_all(starts)[0]
    minimax = action_values(kernels, 6)(starts)
    return [*results, *written, np.array([count, *sequences]), minimax, *playouts(kernels, seed=1)(starts, masks)]


NOT_FOR_NUMBA: dict[str, dict[str, Callable[..., Any]]] = {
    "a format in an f-string": {"step": step_by_text},
    "exceptions by name": {"step": step_by_a_try},
    "a generator": {"step": step_by_a_generator},
    "a global dict": {"terminal_value": value_by_a_dict},
}


@pytest.mark.parametrize("kind", NOT_FOR_NUMBA)
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


def test_the_countdown_itself_compiles_without_a_word(caplog: pytest.LogCaptureFixture):
    """Else the test above compares plain Python with plain Python."""
    everything(COUNTDOWN)
    assert COUNTDOWN.play.compiled.signatures
    assert COUNTDOWN.describe.compiled.signatures
    assert not [record for record in caplog.records if record.name.startswith("alphazero")]


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

PLAY_ONCE = """
    import json
    import numpy as np
    from alphazero.game.kernels import Kernels
    from small_game import Small

    kernels = Kernels(Small())
    states = kernels.start_states(1)
    kernels.play(states, np.zeros(1, np.int8), np.zeros(1, np.int64))
    stats = [kernel.compiled.stats for kernel in (kernels.init_states, kernels.play)]
    print(json.dumps({
        "state": int(states[0, 0]),
        "hits": sum(sum(one.cache_hits.values()) for one in stats),
        "misses": sum(sum(one.cache_misses.values()) for one in stats),
    }))
"""


@pytest.mark.parametrize(
    ("import_line", "module_name"),
    [("from small_helper import LIMIT, taken", ""), ("import small_helper", "small_helper.")],
    ids=["by name", "by module"],
)
def test_compiled_code_is_found_by_the_next_process_and_never_stale(tmp_path: Path, import_line: str, module_name: str):
    """A helper or constant changed in another file than the rules' is the case that numba's own cache misses."""

    def play_once(limit: int, offset: int) -> dict[str, int]:
        helper = textwrap.dedent(HELPER_MODULE.format(limit=limit, offset=offset))
        (tmp_path / "small_helper.py").write_text(helper)
        return run_python(PLAY_ONCE, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"), PYTHONDONTWRITEBYTECODE="1")

    source = textwrap.dedent(GAME_MODULE.format(import_line=import_line, module=module_name))
    (tmp_path / "small_game.py").write_text(source)
    assert play_once(limit=7, offset=1) == {"state": 6, "hits": 0, "misses": 2}
    files = sorted((tmp_path / "cache").rglob("*"))
    assert play_once(limit=7, offset=1) == {"state": 6, "hits": 2, "misses": 0}
    assert sorted((tmp_path / "cache").rglob("*")) == files, "a run adds files each time"
    assert play_once(limit=9, offset=2) == {"state": 7, "hits": 0, "misses": 2}


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


def test_a_kernel_is_kept_on_disk_under_what_it_calls_not_only_its_own_text():
    """numba looks at the date of one file alone: a helper changed elsewhere would go on in its old form."""

    def make(amount):
        @njit
        def helper(x):
            return x + amount

        def twice(x):
            return helper(helper(x))

        return kernel(twice).py_func.__qualname__

    assert make(1) == make(1) != make(2)
