"""The rules of the house that a reader of the source can see: sizes, plain words, nothing unsafe, no game named."""

import ast
import builtins
import re
import symtable
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from tests.program import (
    BENCHMARKS,
    FRAMEWORK,
    PROGRAM,
    ROOT,
    begins_with,
    for_each,
    imported,
    name_of,
    parse,
    parse_text,
)

LIBRARY = [path for path in FRAMEWORK if "commands" not in path.parts]
each_file = for_each(PROGRAM)
each_library_file = for_each(LIBRARY)

# --- sizes ---

MOST_MODULES, MOST_LINES, MOST_LINES_OF_A_CLASS, MOST_LINES_OF_A_FUNCTION = 15, 400, 200, 70
MOST_LINES_OF_TESTS = 550
TEMPLATES = {"alphazero/game/kernels.py"}
"""Longer files: the kernels over one board, side by side."""
KERNELS = {
    "games/chess/rules.py:make_rules", "games/go/game.py:make_rules", "games/go/points.py:make_points",
    "games/gomoku/game.py:make_rules", "games/othello/game.py:make_rules",
    "games/othello/solver.py:negamax",
}  # fmt: skip
"""Longer ones: the rules of boards of several sizes, each a short function in one that knows the size; and a search
that would be slower in parts."""


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    """The name of every function, as Class.method or outer.inner, and its lines."""
    for node in ast.iter_child_nodes(tree):
        name = prefix
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{node.name}."
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield name.removesuffix("."), (node.end_lineno or 0) - node.lineno + 1
        yield from functions(node, name)


@for_each(sorted({path.parent for path in FRAMEWORK}))
def test_no_folder_has_too_many_modules(folder: Path):
    assert len(list(folder.glob("*.py"))) <= MOST_MODULES


@each_file
def test_no_file_and_no_function_is_too_long(path: Path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES or name_of(path) in TEMPLATES
    long = {f"{name_of(path)}:{name}" for name, lines in functions(parse(path)) if lines > MOST_LINES_OF_A_FUNCTION}
    assert long <= KERNELS


@each_file
def test_no_class_is_too_long(path: Path):
    classes = (node for node in ast.walk(parse(path)) if isinstance(node, ast.ClassDef))
    assert [each.name for each in classes if (each.end_lineno or 0) - each.lineno >= MOST_LINES_OF_A_CLASS] == []


def test_no_file_of_tests_is_too_long():
    tests = ROOT.joinpath("tests").rglob("*.py")
    assert [
        name_of(path) for path in tests if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES_OF_TESTS
    ] == []


# --- plain words ---

ODD_OPENINGS = re.compile(r"\s*(What|Those|Of|How)\b")


def documentation(tree: ast.AST) -> Iterator[str]:
    """Docstrings, and the texts under the fields of a dataclass, which its help shows."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


@for_each(sorted(set(PROGRAM) - set(BENCHMARKS)))
def test_no_documentation_opens_with_what_those_of_or_how(path: Path):
    """A noun or a verb says it sooner."""
    assert [text for text in documentation(parse(path)) if ODD_OPENINGS.match(text)] == []


# --- nothing that `python -O` leaves out ---

READS = {"take", "number", "name", "pop", "popleft", "popitem", "read", "readline", "add", "append", "acquire"}
"""Methods that change what they are called on; an `assert` that calls one does so only without -O."""


def asserted_reads(tree: ast.AST) -> list[str]:
    """The calls of such methods in `assert` statements."""
    asserts = [node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    calls = [node.func for test in asserts for node in ast.walk(test) if isinstance(node, ast.Call)]
    return [ast.unparse(called) for called in calls if isinstance(called, ast.Attribute) and called.attr in READS]


def test_no_assert_does_work():
    assert [(name_of(path), found) for path in PROGRAM if (found := asserted_reads(parse(path)))] == []


# --- what all threads share ---


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("warnings.catch_warnings(", ["alphazero/machine.py"]),
        # a whole training, which no other thread may wait for, has its own
        ("torch.random.fork_rng(", ["alphazero/machine.py", "alphazero/training/run.py"]),
    ],
)
def test_what_threads_share_is_changed_by_one_of_them_at_a_time(name: str, places: list[str]):
    """The blocks of two threads would overlap, and leave the process as one of them has made it."""
    texts = {name_of(path): path.read_text(encoding="utf-8") for path in FRAMEWORK}
    assert sorted(path for path, text in texts.items() for _ in range(text.count(name))) == places


# --- nothing that could run a file's contents ---

UNSAFE_MODULES = ("pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "jsonpickle")
UNSAFE_CALLS = ("eval", "exec", "compile", "__import__")


def unsafe(text: str) -> list[str]:
    """What in the source could run or unpickle what it reads."""
    found = []
    tree = parse_text(text)
    names = imported(ast.walk(tree))
    found += [name for module in UNSAFE_MODULES for name in begins_with(names, module)]
    found += sorted(names & {"torch.load", "torch.jit.load", "numpy.load", "builtins.eval", "builtins.exec"})
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called.removeprefix("builtins.") in UNSAFE_CALLS or re.fullmatch(r"torch(\..+)?\.load", called):
            found.append(called)
        for keyword in node.keywords:
            safe = {"allow_pickle": False, "weights_only": True, "shell": False}
            if keyword.arg in safe and not (
                isinstance(keyword.value, ast.Constant) and keyword.value.value is safe[keyword.arg]
            ):
                found.append(f"{keyword.arg}={ast.unparse(keyword.value)}")
    return found


UNPICKLES = {"alphazero/storage/kernel_cache.py": ["pickle"]}
"""numba's compiled code, which is code anyhow: its files are the user's own, and are checked before."""


@each_file
def test_nothing_is_unpickled_or_evaluated(path: Path):
    allowed = UNPICKLES.get(path.relative_to(ROOT).as_posix(), [])
    assert unsafe(path.read_text(encoding="utf-8")) == allowed


@pytest.mark.parametrize(
    ("is_unsafe", "text"),
    [
        (True, "import pickle"),
        (True, "def f():\n    from pickle import loads"),
        (True, "import torch\ntorch.load('a')"),
        (True, "if x:\n    exec(text)"),
        (True, "builtins.eval(text)"),
        (True, "np.load(path, allow_pickle=True)"),
        (True, "subprocess.run(command, shell=True)"),
        (False, "net.eval(), re.compile('a'), np.load(path, allow_pickle=False), exec_module()"),
    ],
)
def test_the_search_for_unsafe_code_finds_it_and_nothing_else(is_unsafe: bool, text: str):
    assert bool(unsafe(text)) == is_unsafe


# --- the library knows no game ---


def strings_in_code(text: str) -> list[str]:
    """String constants, less docstrings and the documentation under a field."""
    tree = parse_text(text)
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
    ]


FORMATS_OF_GAMES = [f"alphazero/game/reading/{name}.py" for name in ("sgf", "wthor")]
"""Files of other programs are of certain games, and tell them by numbers or not at all."""


@each_library_file
def test_the_library_names_no_game(path: Path):
    if name_of(path) in FORMATS_OF_GAMES:
        return
    names = rf"\b({'|'.join({*registry.NAMES} - {'chess'})})\b"  # the usual variant of PGN and UCI has that name
    for string in strings_in_code(path.read_text(encoding="utf-8")):
        assert not re.search(names, string, re.IGNORECASE), string
        assert not re.match(r"games\.\w", string), string


# --- templates of kernels, in which linters let all unknown names pass ---


def names_from_elsewhere(table: symtable.SymbolTable) -> set[str]:
    """The names that functions use and their module lacks."""
    found = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return found.union(*map(names_from_elsewhere, table.get_children()))


def given_names() -> set[str]:
    """The words by which the framework can give names to templates: rules, arguments, keys, functions after a `_`."""
    found = set[str]()
    for node in (node for path in (*FRAMEWORK, *BENCHMARKS) for node in ast.walk(parse(path))):
        match node:
            case ast.keyword(arg=str(name)) | ast.Constant(value=str(name)) | ast.FunctionDef(name=name):
                found.add(name.removeprefix("_"))
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return found


def test_templates_use_no_name_that_nobody_gives_them():
    ignored = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text())["tool"]["ruff"]["lint"]["per-file-ignores"]
    paths = [path for path in PROGRAM if ignored.get(name_of(path)) == ["F821"]]
    given = given_names()
    assert len(paths) > 10
    for path in paths:
        table = symtable.symtable(path.read_text(encoding="utf-8"), name_of(path), "exec")
        own = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
        unknown = names_from_elsewhere(table) - own - set(dir(builtins)) - {"__file__", "__name__"}
        assert unknown and unknown <= given, name_of(path)
