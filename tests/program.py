"""The source of the program as the tests of the house see it: its files, and what each imports."""

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FRAMEWORK = sorted((ROOT / "alphazero").rglob("*.py"))
GAMES = sorted((ROOT / "games").rglob("*.py"))
SCRIPTS = [ROOT / "main.py", ROOT / "pit.py"]
BENCHMARKS = sorted((ROOT / "benchmarks").rglob("*.py"))
PROGRAM = [*FRAMEWORK, *GAMES, *SCRIPTS, *BENCHMARKS]


def name_of(path: Path) -> str:
    """`alphazero/game/game.py`, for the names of tests and for messages."""
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


parse_text = cache(ast.parse)
"""Each file is parsed once, for many tests."""


def parse(path: Path) -> ast.Module:
    return parse_text(path.read_text(encoding="utf-8"))


def code_that_runs(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those under `if TYPE_CHECKING`, which are never run."""
    nodes = [node]
    while nodes:
        for child in ast.iter_child_nodes(nodes.pop()):
            if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
                yield from child.orelse
                nodes += child.orelse
            else:
                yield child
                nodes.append(child)


def imported(nodes: Iterator[ast.AST], module: str = "", is_package: bool = False) -> set[str]:
    """Every module that may be meant; `from a import b` gives a and a.b, of which one may be no module."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")
            parents = parts[: len(parts) - node.level + is_package] if node.level else []
            origin = ".".join([*parents, *([node.module] if node.module else [])])
            names |= {origin} | {f"{origin}.{alias.name}" for alias in node.names}
    return names


@cache
def imports_of(path: Path) -> set[str]:
    """All imports of a file that can run, those in functions included."""
    return imported(code_that_runs(parse(path)), module_name(path), path.name == "__init__.py")


def files_named_by(path: Path, files: dict[str, Path]) -> set[Path]:
    """The files that a file names in any import, those for types alone included; `files`: all there are, by module."""
    found = set[Path]()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                one = ast.copy_location(type(node)(**{**dict(ast.iter_fields(node)), "names": [alias]}), node)
                names = imported(iter([one]), module_name(path), path.name == "__init__.py")
                if known := sorted(names & files.keys(), key=len):  # of a and a.b, the module that b is
                    found.add(files[known[-1]])
    return found


def circle(imports: dict[Path, set[Path]]) -> list[str]:
    """Files of which each names the next, back to the first; empty if there are none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return [name_of(path) for path in error.args[1]]
    return []


def begins_with(names: set[str], loaded: str) -> set[str]:
    return {name for name in names if name == loaded or name.startswith(f"{loaded}.")}


def for_each(paths: Iterable[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """A test of one path becomes one test of them all, which names those that fail: two thousand take twice as long."""

    def of_all(test: Callable[[Path], None]) -> Callable[[], None]:
        def look_at_all() -> None:
            wrong = []
            for path in paths:
                try:
                    test(path)
                except AssertionError as error:
                    wrong.append(f"{name_of(path)}: {error}")
            if wrong:  # pytest would not show them for an assert in this file
                raise AssertionError("\n".join(wrong))

        look_at_all.__name__, look_at_all.__doc__ = test.__name__, test.__doc__
        return look_at_all

    return of_all
