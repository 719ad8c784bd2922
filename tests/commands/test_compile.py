"""What is compiled when a command starts: nothing that was compiled before, be it by `alphazero compile`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from alphazero.commands import compile as command
from alphazero.commands.shared import run_command

ROOT = Path(__file__).resolve().parents[2]
COUNT = """
import sys
from pathlib import Path
from numba.core import event
from alphazero.storage import kernel_cache
kernel_cache.READY = Path(sys.argv.pop(1))
class Listener(event.Listener):
    def on_start(self, begun): compiled.append(begun.data["dispatcher"].py_func.__name__)
    def on_end(self, begun): pass
compiled = []
event.register("numba:compile", Listener())
from alphazero.commands.program import main
assert main(sys.argv[1:]) == 0
print("compiled:", *compiled, "torch" * ("torch" in sys.modules))
"""
MATCH = "pit mcts:8 greedy --game tictactoe --games 2"
TRAIN = (
    "train --game tictactoe --run run --generations 1 --minutes 0 --net.blocks 2 --self-play.games-per-generation 16 "
    "--search.num-simulations 4 --gate.games 4 --evaluation.opponents greedy --evaluation.games 4"
)


def compiled_by(words: str, ready: Path, folder: Path, **environment: str) -> list[str]:
    """What a fresh process compiles for that command, with code that was compiled ahead in `ready`."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT, str(ready), *words.split()], cwd=folder, capture_output=True, text=True,
        timeout=300, env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()[1:]


def test_nothing_is_compiled_twice_and_a_match_without_nets_loads_no_torch(tmp_path: Path):
    compiled_by(MATCH, tmp_path, tmp_path)
    assert compiled_by(MATCH, tmp_path, tmp_path) == []


def test_a_check_keeps_all_that_it_compiles_in_either_process(tmp_path: Path):
    assert compiled_by("new my_game", tmp_path, tmp_path) == []
    here = compiled_by("check my_game.py", tmp_path, tmp_path)
    assert "_find_movers" not in here, "players alternate, so nobody asks who moves"
    assert compiled_by("check my_game.py", tmp_path, tmp_path) == []


def test_a_second_game_of_ones_own_compiles_its_rules_and_what_calls_them_but_no_search(tmp_path: Path):
    search = {"simulate", "expand", "backup", "choose_by_puct", "choose_by_gumbel"}
    for name in ("first", "second"):
        compiled_by(f"new {name}", tmp_path, tmp_path)
        found = set(compiled_by(f"pit mcts:8 random --game {name}.py --games 2", tmp_path, tmp_path))
    assert {"step", "legal", "is_terminal"} <= found, "the rules stand in another file"
    assert not found & search


@pytest.mark.slow
@pytest.mark.parametrize("game", ["tictactoe", "pig"])
def test_nothing_is_compiled_where_a_game_was_compiled_ahead(game: str, tmp_path: Path):
    make = f"""if True:
        from pathlib import Path
        from alphazero.storage import kernel_cache
        kernel_cache.READY = Path({str(tmp_path / "ready")!r})
        kernel_cache.make_ready("generic")
        from alphazero.commands import compile
        compile.play({game!r})
    """
    environment = {"PYTHONPATH": str(ROOT), "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    subprocess.run([sys.executable, "-c", make], cwd=tmp_path, env=os.environ | environment, check=True)
    for words in (MATCH, TRAIN):
        found = compiled_by(
            words.replace("tictactoe", game),
            tmp_path / "ready",
            tmp_path,
            NUMBA_CACHE_DIR=str(tmp_path / words.split()[0]),
        )
        assert found in ([], ["torch"])


@pytest.mark.parametrize(
    ("words", "named"),
    [(["my_game.py"], "my_game.py"), (["--level", "x87"], "x87")],
)
def test_what_cannot_be_compiled_ahead_is_refused(words: list[str], named: str, capsys: pytest.CaptureFixture[str]):
    assert run_command(command.main, words) == 2
    assert named in capsys.readouterr().err
