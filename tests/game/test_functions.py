"""Functions made anew: `plain`, `rebuilt`, `recursive` and `fingerprint`."""

import textwrap
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import float64, int64, njit, vectorize

from alphazero.catalogue import registry
from alphazero.game.functions import fingerprint, plain, rebuilt, recursive, rule_functions
from tests.game.fresh_python import run_python

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


def test_plain_functions_from_one_factory_keep_their_own_closures():
    first, second = plain(make_adder(1)), plain(make_adder(2))
    assert (first(0), second(0)) == (10, 20)


HELPERS = """
from numba import njit
def undecorated(number):
    return number + 1
@njit
def change(number):
    return undecorated(number) * 2
"""


def make_by_modules() -> Callable[..., Any]:
    package = types.ModuleType("a_package")
    package.helpers = module(HELPERS)  # type: ignore[attr-defined]
    source = """
        @njit
        def rule(number):
            return helpers.undecorated(number) + package.helpers.change(number) + np.abs(number)
    """
    return defined(source, helpers=package.helpers, package=package)


def test_plain_follows_functions_that_are_reached_by_their_module():
    """A compiled one would not see an index out of range, and one without decorator would stay uncompiled."""
    rule, compiled = make_by_modules(), []
    made = rebuilt(rule, lambda function: compiled.append(function.__name__) or function, {})
    assert made(3) == plain(rule)(3) == 15
    assert compiled_reached(vars(made.__globals__["helpers"])["change"]) == []
    assert compiled == ["undecorated", "change", "rule"]
    assert made.__globals__["np"] is np
    assert hasattr(rule.py_func.__globals__["helpers"].change, "py_func"), "the module itself has changed"


def by_its_name(amount: int = 1) -> Callable[..., Any]:
    """A rule that calls a function by its module, which has the same name, in a package."""
    package = types.ModuleType("a_package")
    package.change = module(  # type: ignore[attr-defined]
        f"""
        from numba import njit
        @njit
        def change(number):
            return number + {amount} if number else change(1)
        """
    )
    return defined("@njit\ndef rule(number):\n    return package.change.change(number)", package=package)


def test_a_module_may_have_the_name_of_its_function():
    made = plain(by_its_name())
    assert made(1) == 2 and compiled_reached(made) == []
    assert not hasattr(made.__globals__["package"].change.change, "py_func")
    assert recursive(by_its_name())
    assert fingerprint(by_its_name(1)) != fingerprint(by_its_name(2))


# --- recursive ---

ODD_AND_EVEN = """
    def even(number):
        return number == 0 or odd(number - 1)

    def odd(number):
        return number > 0 and even(number - 1)

    def rule(number):
        return odd(number)
"""


def test_functions_that_call_themselves_are_found():
    by_module = defined("def rule(number):\n    return helpers.factorial(number)", helpers=module(RECURSIVE_HELPER))
    found = [factorial, make_factorial(), defined(ODD_AND_EVEN), by_module]
    assert [recursive(function) for function in found] == [True] * 4
    others = [add_four, make_adder(1), make_chooser(), by_an_undecorated_helper, make_by_modules()]
    assert [recursive(function) for function in others] == [False] * 5


def test_functions_with_many_ways_to_each_other_are_looked_at_once():
    """Each of 60 functions calls the two before it: that makes 10^12 ways."""
    calls = "def f0(x): return x\ndef f1(x): return x\n"
    calls += "\n".join(f"def f{i}(x): return f{i - 1}(x) + f{i - 2}(x)" for i in range(2, 60))
    scope: dict[str, Any] = {}
    exec(calls, scope)
    assert not recursive(scope["f59"])


RECURSIVE_HELPER = """
from numba import njit
@njit
def factorial(number):
    return 1 if number <= 1 else number * factorial(number - 1)
"""


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


def vectorized_rule(amount: int) -> Callable[..., Any]:
    helper = vectorize(defined(f"def helper(number):\n    return number + {amount}", "helper"))
    return defined("@njit\ndef rule(number):\n    return helper(number)", helper=helper)


def config_rule(value: Any) -> Callable[..., Any]:
    config = types.ModuleType("a_config_module")
    config.SETTING = value  # type: ignore[attr-defined]
    return defined("@njit\ndef rule(number):\n    return config.SETTING", config=config)


def global_rule(value: Any) -> Callable[..., Any]:
    return defined("@njit\ndef rule(number):\n    return SETTING", SETTING=value)


class RowsFirst(NamedTuple):
    rows: int
    columns: int


class ColumnsFirst(NamedTuple):
    columns: int
    rows: int


ColumnsFirst.__name__ = RowsFirst.__name__
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
    "a number type reached by its module": (config_rule(np.uint8), config_rule(np.uint16)),
    "the body of a vectorized helper": (vectorized_rule(1), vectorized_rule(2)),
    "the fields of a named tuple": (global_rule(RowsFirst(1, 2)), global_rule(ColumnsFirst(1, 2))),
    "the fields of a class of named tuples": (global_rule(RowsFirst), global_rule(ColumnsFirst)),
    "the fields of an array": (
        array_rule(np.zeros(2, [("row", np.int8), ("column", np.int8)])),
        array_rule(np.zeros(2, [("column", np.int8), ("row", np.int8)])),
    ),
    "a type of numba": (global_rule(int64), global_rule(float64)),
    "a member of an enumeration": (enumeration_rule(1), enumeration_rule(2)),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_change_changes_the_fingerprint(one: Callable[..., Any], other: Callable[..., Any]):
    assert fingerprint(one) != fingerprint(other)


def test_places_in_memory_do_not_count():
    """Otherwise compiled code would never be found again."""
    assert fingerprint(config_rule([object()])) == fingerprint(config_rule([object()]))


def test_a_fresh_process_finds_the_same_fingerprints(tmp_path: Path):
    """Otherwise compiled code would never be found again."""
    code = """
        import json
        from alphazero.catalogue import registry
        from alphazero.game.functions import fingerprint, rule_functions
        rules = {name: registry.load(name).game.rules for name in registry.NAMES}
        print(json.dumps({name: fingerprint(*rule_functions(each).values()) for name, each in rules.items()}))
    """
    ours = {name: fingerprint(*rule_functions(registry.load(name).game.rules).values()) for name in registry.NAMES}
    assert run_python(code, tmp_path, PYTHONHASHSEED="1") == ours
