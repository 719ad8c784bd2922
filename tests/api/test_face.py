"""`import alphazero as az`: its names, their examples, their types, and what importing it costs."""

import ast
import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

import alphazero as az

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "alphazero" / "__init__.py"


def run_python(*arguments: str, cwd: Path) -> str:
    """The output of a Python process that can import the framework."""
    command = [sys.executable, *arguments]
    found = subprocess.run(command, cwd=cwd, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr + found.stdout
    return found.stdout


def test_importing_the_package_loads_nothing_heavy(own_folder):
    code = "import sys, alphazero; print(alphazero.__version__); print(*sys.modules)"
    version, modules = run_python("-c", code, cwd=own_folder).splitlines()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert {name.partition(".")[0] for name in modules.split()} & {"torch", "numba", "numpy", "scipy", "tqdm"} == set()
    assert [name for name in modules.split() if name.startswith("alphazero")] == ["alphazero._version", "alphazero"]


def test_all_is_sorted_and_complete():
    assert list(az.__all__) == sorted(set(az.__all__))
    assert set(az.__all__) <= set(dir(az))
    (block,) = (node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.If))
    typed = {"search"}
    for node in block.body:
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if alias.asname and alias.name != "errors":
                assert getattr(az, alias.asname) is getattr(sys.modules[node.module], alias.name)
            typed |= {alias.asname} - {None}
    assert typed == set(az.__all__), "type checkers see other names than the ones that there are"


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'alphazero' has no attribute 'serach'"):
        az.serach  # noqa: B018


def test_search_is_a_function_and_a_package_whatever_was_imported_first(own_folder):
    code = """
import alphazero as az
first = az.search
import alphazero.search.mcts
assert az.search is first and callable(az.search) and alphazero.search.mcts.SearchConfig is az.SearchConfig
from alphazero import search
assert search is first
def uniform(states, legal_masks):
    return legal_masks.astype("float32"), legal_masks[:, 0] * 0.0
position = az.load_game("tictactoe").position("a1 b2 a2 c3")
print(position.format(az.search(position, uniform, simulations=50).best))
"""
    assert run_python("-c", code, cwd=own_folder) == "a3\n"


@pytest.fixture(scope="module")
def folder_with_a_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds `runs/tictactoe-1`, a run of one small generation, which examples read."""
    folder = tmp_path_factory.mktemp("examples")
    az.train(
        "tictactoe", folder=folder / "runs" / "tictactoe-1", generations=1, net={"blocks": 1, "channels": 8},
        search={"num_simulations": 4}, self_play={"games_per_generation": 16, "num_slots": 8},
        gate={"enabled": False}, evaluation={"opponents": ()}, progress=False,
    )  # fmt: skip
    return folder


@pytest.mark.parametrize("name", [name for name in az.__all__ if name != "errors"])
def test_the_example_of_every_name_runs(name: str, folder_with_a_run: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder_with_a_run)
    found = getattr(az, name)
    if name == "search":
        found = sys.modules["alphazero.search.analysis"].search_position
    assert found.__doc__ and len(found.__doc__.partition("\n")[0]) < 120
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    example = parser.get_doctest(found.__doc__, {}, name, None, None)
    assert example.examples, f"az.{name} shows no example"
    said: list[str] = []
    runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)


SCRIPT = """
import numpy as np
import alphazero as az

game: az.Game = az.load_game("connect4")
position: az.Position = game.position("4453")
net: az.NeuralNet = az.load_net("best", game)
found: az.Found = az.search(position, net, simulations=400)
best: int = found.best
shares: np.ndarray = found.policy
opinion: az.Evaluation = az.evaluate(position, net)


def last(position: az.Position) -> int:
    return position.legal_actions[-1]


def most_visited(position: az.Position) -> np.intp:
    return az.search(position, net, simulations=4).visits.argmax()


after: az.Position = position.play(opinion.policy.argmax())
text: str = position.format(found.visits.argmax())
same: az.Position = game.position([found.visits.argmax(), "5", 3])
az.match(most_visited, last, game)
result: az.Match = az.match(last, "mcts:400", game, games=100)
low, high = result.interval
score: float = result.score + low + high
run: az.TrainedRun = az.train(game, preset="quick", minutes=3)
losses = [row["policy_loss"] for row in run.metrics]
best_net: az.NeuralNet = run.net
config = az.SearchConfig(num_simulations=10)
try:
    position.play(7)
except az.errors.IllegalAction as error:
    print(error)
"""


def test_a_script_passes_strict_type_checks(own_folder):
    (own_folder / "sample.py").write_text(SCRIPT)
    # most of the time would go into other libraries' types, which the script does not see
    others = ("torch", "numba", "scipy", "openvino", "ray", "wandb", "IPython", "fastapi", "starlette", "uvicorn")
    skipped = ",".join(f"{name}.*" for name in (*others, "websockets", "matplotlib"))
    (own_folder / "mypy.ini").write_text(f"[mypy]\n[mypy-{skipped}]\nfollow_imports = skip\n")
    options = ["--strict", "--follow-imports=silent", "--ignore-missing-imports", f"--cache-dir={own_folder}/cache"]
    (own_folder / "wrong.py").write_text(SCRIPT.replace("simulations=400)", "simulations='many')"))
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "sample.py", "wrong.py"], cwd=own_folder,
        env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    error, summary = found.stdout.splitlines()
    assert error.startswith("wrong.py:") and 'incompatible type "str"' in error
    assert summary == "Found 1 error in 1 file (checked 2 source files)"
