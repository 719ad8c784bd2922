"""Who may import whom: the table of docs/architecture.md, wing by wing; and what must be installed for it."""

import ast
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import alphazero.game
from tests.program import (
    BENCHMARKS,
    FRAMEWORK,
    GAMES,
    PROGRAM,
    ROOT,
    SCRIPTS,
    begins_with,
    circle,
    code_that_runs,
    files_named_by,
    for_each,
    imported,
    imports_of,
    module_name,
    name_of,
)

# --- the table ---

FLOORS = (
    {"_version", "errors", "machine"},
    {"interruption"},
    {"invocation", "progress"},
    {"storage"},
    {"settings", "pages"},
    {"game"},
    {"fingerprint"},
    {"nets"},
    {"catalogue"},
    {"search"},
    {"players"},
    {"wasm"},
    {"matches"},
    {"training", "tournaments"},
    {"cluster"},
    {"web"},
    {"api", "doctor"},
    {"commands"},
    {"__main__", "check_game", "gtp", "new_game", "publish", "report"},
)
"""Wings and modules of alphazero/, the lowest first. A file imports from its own wing and from lower floors."""
ONLY_FOR = {"wasm": {"commands", "web"}, "cluster": {"api"}}
"""A wing that these alone may import."""
FACE = "alphazero/__init__.py"
"""It imports nothing when it is imported, and gives what the library offers when that is asked for."""

each_framework_file = for_each(FRAMEWORK)
each_file = for_each(PROGRAM)


def floor_of(wing: str) -> int:
    (floor,) = (number for number, wings in enumerate(FLOORS) if wing in wings)
    return floor


def wing_of(module: str) -> str:
    """`game` of `alphazero.game.kernels`, `errors` of `alphazero.errors.InputError`."""
    return [*module.split("."), ""][1]


def forbidden_imports(wing: str, names: set[str]) -> list[str]:
    """The imports that a file of this wing must not have."""
    wings = {found: wing_of(found) for found in begins_with(names, "alphazero") if wing_of(found)}
    known = set().union(*FLOORS)  # else it is a name of the face, as in `from alphazero import Game`
    wrong = [
        found
        for found, other in wings.items()
        if other != wing
        and (other not in known or floor_of(other) >= floor_of(wing) or wing not in ONLY_FOR.get(other, {wing}))
    ]
    outside = [found for top in ("games", "main", "pit", "tests", "benchmarks") for found in begins_with(names, top)]
    return sorted(wrong + outside)


def test_every_wing_has_its_floor():
    entries = {path.stem for path in (ROOT / "alphazero").glob("*.py")} - {"__init__"}
    entries |= {path.parent.name for path in (ROOT / "alphazero").glob("*/__init__.py")}
    assert sorted(wing for wing in entries if sum(wing in wings for wings in FLOORS) != 1) == []


@each_framework_file
def test_wings_import_lower_ones_alone(path: Path):
    if name_of(path) != FACE:
        wing = path.relative_to(ROOT / "alphazero").parts[0].removesuffix(".py")
        assert forbidden_imports(wing, imports_of(path)) == []


@pytest.mark.parametrize(
    ("allowed", "wing", "text"),
    [
        (False, "game", "from alphazero.nets import resnet"),
        (False, "game", "from alphazero import Position"),
        (False, "game", "import games.connect4"),
        (False, "training", "from alphazero.tournaments.ladder import Ladder"),
        (False, "players", "import alphazero.wasm"),
        (False, "commands", "from alphazero.cluster.ray_cluster import RayCluster"),
        (False, "commands", "from tests.program import ROOT"),
        (True, "game", "from alphazero.game.kernels import Kernels"),
        (True, "training", "from alphazero.matches import arena\nimport torch"),
        (True, "commands", "from alphazero.wasm import build\nfrom alphazero.web import server"),
        (
            True,
            "nets",
            "import typing as t\nif t.TYPE_CHECKING:\n    from alphazero.training import config",
        ),
    ],
)
def test_the_table_allows_lower_wings_and_refuses_others(allowed: bool, wing: str, text: str):
    assert allowed == (forbidden_imports(wing, imported(code_that_runs(ast.parse(text)))) == [])


@for_each(SCRIPTS)
def test_scripts_import_commands_alone(path: Path):
    used = begins_with(imports_of(path), "alphazero")
    assert used == begins_with(used, "alphazero.commands") and used


@for_each(sorted((ROOT / "games").glob("*/game.py")))
def test_the_rules_of_a_game_import_the_game_interface_alone(path: Path):
    names = imports_of(path)
    assert "alphazero.game" in names
    assert begins_with(names, "alphazero") <= {
        "alphazero.game",
        *(f"alphazero.game.{x}" for x in alphazero.game.__all__),
    }
    others = {name.partition(".")[0] for name in names} - {"alphazero", *sys.stdlib_module_names}
    assert others <= {"numpy", "numba", "games"}  # another file of its own folder


@for_each(GAMES)
def test_games_are_blind_to_each_other_and_to_scripts(path: Path):
    names = imports_of(path)
    game = ".".join(path.relative_to(ROOT).parts[:2])
    assert begins_with(names, "games") - {"games"} <= begins_with(names, game)
    assert not [top for top in ("main", "pit", "tests", "benchmarks") if begins_with(names, top)]


@for_each([*FRAMEWORK, *GAMES])
def test_command_lines_are_read_in_commands_alone(path: Path):
    if begins_with(imports_of(path), "tyro") and ROOT / "alphazero" / "commands" not in path.parents:
        own_commands = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
        assert path in GAMES and "main" in own_commands, "tyro belongs into commands/, or into a game's own command"


def test_benchmarks_are_imported_by_nobody_else():
    assert BENCHMARKS
    for path in set(PROGRAM) - set(BENCHMARKS):
        assert not begins_with(imports_of(path), "benchmarks"), path


def test_imports_under_type_checking_and_relative_ones_are_understood():
    text = """
import a
if TYPE_CHECKING:
    import b
else:
    import c
def f():
    import d
"""
    assert imported(code_that_runs(ast.parse(text))) == {"a", "c", "d"}
    relative = ast.parse("from . import x\nfrom .y import z")
    assert imported(ast.walk(relative), "games.go.game") == {"games.go", "games.go.x", "games.go.y", "games.go.y.z"}
    assert imported(ast.walk(relative), "games.go", True) == {"games.go", "games.go.x", "games.go.y", "games.go.y.z"}


# --- no circles ---


def test_no_files_import_each_other_in_a_circle():
    """Not even for types, or in functions: of two files in a circle, neither can be read alone."""
    files = {module_name(path): path for path in [*FRAMEWORK, *GAMES]}
    assert circle({path: files_named_by(path, files) for path in files.values()}) == []


# --- what an import costs ---


def run_and_list(code: str) -> str:
    """The names of all modules that are loaded after the code has run in a process of its own."""
    code += "\nimport sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def modules_of(wing: str) -> list[str]:
    return [
        name_of(path)[:-3].replace("/", ".").removesuffix(".__init__")
        for path in FRAMEWORK
        if wing in path.relative_to(ROOT).parts
    ]


def test_the_rules_and_the_search_load_no_torch():
    names = [
        name
        for wing in ("game", "catalogue", "search")
        for name in modules_of(wing)
        if "cuda" not in name  # these need a GPU's compiler, and no torch either
    ]
    loaded = set(run_and_list(f"import {', '.join(names)}").split())
    assert {"alphazero.game", "numba"} <= loaded and "torch" not in loaded


@pytest.mark.slow
def test_without_the_folder_of_the_cluster_everything_else_works(tmp_path: Path):
    """A copy of the library without that wing: all its modules load, and a command names what is missing."""
    for folder in ("alphazero", "games"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("cluster", "__pycache__"))
    names = [name_of(path)[:-3].replace("/", ".").removesuffix(".__init__") for path in FRAMEWORK]
    others = [name for name in names if ".cluster" not in name and not name.endswith("__main__") and "cuda" not in name]
    assert len(names) - len(others) > 5 and not (tmp_path / "alphazero/cluster").exists()
    code = f"""
import sys
from importlib import import_module
# an editable installation would find the folder elsewhere
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in repr(finder).lower()]
import alphazero
assert alphazero.__file__.startswith({str(tmp_path)!r})
for name in {others!r}:
    import_module(name)
import_module("alphazero.commands.program").main(["train", "--game", "nim", "--cluster", "local"])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "error: --cluster needs the folder alphazero/cluster, which is not here" in done.stderr


def test_learning_loads_neither_torchs_compiler_nor_ray():
    """Each takes a second at the start of each run, of each worker, and of each net that is loaded."""
    learn = """
import numpy as np
import alphazero.commands.train, alphazero.cluster.ray_cluster, alphazero.api.runs
from alphazero.api.loading import load_net
from alphazero.catalogue import registry
from alphazero.nets.neural_net import Batch
loaded = registry.load("tictactoe")
net = loaded.make_net(loaded.game, {"blocks": 1, "channels": 8})
net.use_determinism(False)
net.use_inference("auto")
position, one = loaded.game.start(), np.ones((4, 9), np.float32)
observations = np.stack([position.observation] * 4)
trainer = net.trainer()
trainer.train_step(Batch(observations, one > 0, one / 9, one[:, 0]), 1e-3)
trainer.finish()
net.evaluate(observations, one > 0)
load_net("club", "connect4")
"""
    loaded = set(run_and_list(learn).split())
    assert "torch.optim.adamw" in loaded and not {"torch._dynamo", "torch._inductor", "sympy", "ray"} & loaded


# --- what must be installed ---

SECOND_OPINIONS = {
    "benchmarks/frozen/connect4_book.py": {"bitbully"},
    # these two run in an environment that the benchmark makes
    "benchmarks/peers/pgx_mctx.py": {"jax", "mctx", "pgx", "turns"},
    "benchmarks/peers/openspiel_tree.py": {"jax", "open_spiel", "pgx_mctx", "turns"},
}
"""Used where somebody has installed them, and listed nowhere, for their licenses are not ours."""
IMPORT_NAMES = {"open_spiel": "pyspiel", "griffelib": "griffe"}  # where they differ from the distribution's


@cache
def requirements() -> dict[str, str]:
    """import name -> requirement, of everything that setup.py lists, optional or not."""
    setup = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))
    listed = [node.value for node in ast.walk(setup) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    found = {}
    for requirement in listed:
        if match := re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=[\d.]+", requirement):
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
