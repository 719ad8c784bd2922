"""The house rules that a machine can see: who imports whom, nothing unpickled or evaluated, no game named."""

import ast
import graphlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import alphazero.game
from alphazero.game import registry

ROOT = Path(__file__).resolve().parents[1]
RUN_AS_MODULES = [
    *sorted((ROOT / "alphazero" / "commands").glob("*.py")),
    *(ROOT / "alphazero" / f"{name}.py" for name in ("check_game", "gtp", "new_game", "publish", "report")),
]
LIBRARY = sorted(set((ROOT / "alphazero").rglob("*.py")) - set(RUN_AS_MODULES))
COMMANDS = [ROOT / "main.py", ROOT / "pit.py", *RUN_AS_MODULES]
PROGRAM = [*LIBRARY, *sorted((ROOT / "games").rglob("*.py")), *COMMANDS, *sorted((ROOT / "benchmarks").rglob("*.py"))]

each_file = pytest.mark.parametrize("path", PROGRAM, ids=lambda path: str(path.relative_to(ROOT)))
each_library_file = pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(ROOT)))


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def run_on_import(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those in functions and under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            yield from (node for part in child.orelse for node in (part, *run_on_import(part)))
            continue
        yield child
        yield from run_on_import(child)


def imported(nodes: Iterator[ast.AST], module: str = "") -> set[str]:
    """Every module that may be meant; `from a import b` gives a and a.b, of which one may be no module."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")[: -node.level] if node.level else []
            origin = ".".join([*parents, *([node.module] if node.module else [])])
            names |= {origin} | {f"{origin}.{alias.name}" for alias in node.names}
    return names


def imports_of(path: Path, only_on_import: bool = False) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return imported(run_on_import(tree) if only_on_import else ast.walk(tree), module_name(path))


def begins_with(names: set[str], loaded: str) -> set[str]:
    return {name for name in names if name == loaded or name.startswith(f"{loaded}.")}


# --- who imports whom ---


def graph() -> dict[str, set[str]]:
    """module -> modules of ours that it imports when it is imported itself."""
    ours = {module_name(path) for path in PROGRAM}
    # the packages alphazero and games.connect4 are empty, and games/__init__ is imported by commands only
    found = {
        module_name(path): (imports_of(path, only_on_import=True) & ours) - {"alphazero", "alphazero.game"}
        for path in PROGRAM
    }
    return {name: others - {name} for name, others in found.items()}  # `from games import x` in games itself


def test_imports_follow_one_order():
    order = list(graphlib.TopologicalSorter(graph()).static_order())  # raises CycleError with the circle
    assert order.index("alphazero.errors") < order.index("alphazero.game.game") < order.index("alphazero.game.kernels")
    assert order.index("alphazero.game.kernels") < order.index("alphazero.commands.train") < order.index("main")
    assert len(graph()["alphazero.commands.train"]) > 3, "the imports of the command were not seen"


def test_the_package_itself_imports_nothing():
    """Else every module would hang on it."""
    assert imports_of(ROOT / "alphazero" / "__init__.py") == set()


@each_library_file
def test_the_library_imports_no_game_and_no_command(path: Path):
    names = imports_of(path)
    for forbidden in ("games", "main", "pit", "tests", "benchmarks", *map(module_name, RUN_AS_MODULES)):
        assert not begins_with(names, forbidden)


@pytest.mark.parametrize("path", RUN_AS_MODULES, ids=lambda path: path.name)
def test_commands_know_games_by_their_registry_alone(path: Path):
    names = imports_of(path)
    assert begins_with(names, "games") <= {"games"} and not begins_with(names, "main")
    named = {string for string in strings_in_code(path.read_text()) if string in registry.NAMES}
    assert named <= {"connect4"}, "the default of --game alone"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in registry.FOLDER.glob("*/game.py")))
def test_the_rules_of_a_game_import_the_game_interface_alone(name: str):
    names = imports_of(ROOT / "games" / name / "game.py")
    used = begins_with(names, "alphazero")
    assert used <= {"alphazero.game"} | {f"alphazero.game.{name}" for name in alphazero.game.__all__}
    assert "alphazero.game" in used
    assert begins_with(names, "games") <= begins_with(names, f"games.{name}") | {"games"}
    assert not begins_with(names, "torch")


def test_game_interface_rules_and_search_do_not_import_torch():
    tree = graph()

    def reached(module: str) -> set[str]:
        return {module}.union(*(reached(other) for other in tree[module]))

    for module in ("alphazero.game.game", "alphazero.game.kernels", "alphazero.search.mcts"):
        for other in reached(module):
            path = ROOT.joinpath(*other.split(".")).with_suffix(".py")
            if path.exists():
                assert not begins_with(imports_of(path, only_on_import=True), "torch"), f"{module} -> {other} -> torch"


# --- what must be installed ---

SECOND_OPINIONS = {"games/connect4/book.py": {"bitbully"}}
"""Used where somebody has installed them, and listed nowhere, for their licenses are not ours."""
IMPORT_NAMES = {"open_spiel": "pyspiel"}  # where they differ from the distribution's


def requirements() -> dict[str, str]:
    """import name -> requirement, of everything that setup.py lists, optional or not."""
    setup = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))
    listed = [node.value for node in ast.walk(setup) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    found = {}
    for requirement in listed:
        if match := re.fullmatch(r"([A-Za-z_-]+)(?:\[\w+\])?>=[\d.]+", requirement):
            found[IMPORT_NAMES.get(match[1], match[1].replace("-", "_"))] = requirement
    return found


@each_file
def test_every_import_is_a_declared_dependency(path: Path):
    ours = {"alphazero", "games", "benchmarks", "main", "pit"}
    used = {name.partition(".")[0] for name in imports_of(path)} - ours - sys.stdlib_module_names
    used -= SECOND_OPINIONS.get(path.relative_to(ROOT).as_posix(), set())
    assert used <= set(requirements())


def test_the_tested_versions_of_all_dependencies_are_pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in requirements().values()}
    assert {"torch", "numpy", "numba", "pytest"} <= names
    assert names - set(pins) == {"numba-cuda"}, "pinned are the versions that the tests ran with"


# --- nothing that could run a file's contents ---

UNSAFE_MODULES = ("pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "jsonpickle")
UNSAFE_CALLS = ("eval", "exec", "compile", "__import__")


def unsafe(text: str) -> list[str]:
    """What in the source could run or unpickle what it reads."""
    found = []
    tree = ast.parse(text)
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


@each_file
def test_nothing_is_unpickled_or_evaluated(path: Path):
    assert unsafe(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "def f():\n    from pickle import loads",
        "import torch\ntorch.load('a')",
        "from torch import load\nload('a')",
        "torch.jit.load('a')",
        "eval('1')",
        "if x:\n    exec(text)",
        "builtins.eval(text)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=flag)",
        "subprocess.run(command, shell=True)",
    ],
)
def test_the_search_for_unsafe_code_finds(text: str):
    assert unsafe(text)


@pytest.mark.parametrize(
    "text", ["net.eval()", "re.compile('a')", "np.load(path, allow_pickle=False)", "exec_module()"]
)
def test_the_search_for_unsafe_code_does_not_cry_wolf(text: str):
    assert unsafe(text) == []


# --- the library knows no game ---


def strings_in_code(text: str) -> list[str]:
    """String constants, less docstrings and the documentation under a field."""
    tree = ast.parse(text)
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation
    ]


@each_library_file
def test_the_library_names_no_game(path: Path):
    for string in strings_in_code(path.read_text(encoding="utf-8")):
        for name in registry.NAMES:
            assert not re.search(rf"\b{name}\b", string, re.IGNORECASE), string
        assert not re.match(r"games\.\w", string), string


def test_the_search_for_strings_leaves_docstrings_out():
    assert strings_in_code('"""connect4"""\nclass A:\n    x: int = 1\n    """othello"""\n    y = "seen"') == ["seen"]
    assert strings_in_code('print(f"{x} connect4")') == [" connect4"]


def test_the_graph_leaves_out_functions_and_type_checking():
    text = """
import a
if TYPE_CHECKING:
    import b
else:
    import c
def f():
    import d
try:
    import e
finally:
    x = 1
"""
    assert imported(run_on_import(ast.parse(text))) == {"a", "c", "e"}
    relative = imported(ast.walk(ast.parse("from . import x\nfrom .y import z")), "games.go.game")
    assert relative == {"games.go", "games.go.x", "games.go.y", "games.go.y.z"}
