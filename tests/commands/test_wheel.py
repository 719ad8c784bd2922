"""The wheel holds all that the tree holds, and works where there is no tree."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from alphazero._version import __version__

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("alphazero", "games", "pretrained")
BUILD = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"


def files_of(folder: str) -> set[str]:
    """The files of a folder of the tree, less what Python writes there."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
        and path.suffix not in (".pyc", ".nbi", ".nbc")
        and not {"__pycache__", "compiled"} & {*path.parts}
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy of the tree, since setuptools leaves folders behind; without a network."""
    copy, built = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheels")
    for folder in SOURCES:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "compiled"))
    for file in ("setup.py", "pyproject.toml", "LICENSE", "README.md"):
        shutil.copy(ROOT / file, copy)
    ahead = copy / "alphazero" / "compiled" / "generic"
    ahead.mkdir(parents=True, exist_ok=True)
    (ahead / "ahead.nbc").write_bytes(b"as `alphazero compile` makes it")
    done = subprocess.run([sys.executable, "-c", BUILD, built], cwd=copy, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return next(built.iterdir())


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The unpacked wheel."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def test_the_wheel_holds_what_the_tree_holds(wheel):
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
        script = archive.read(f"alphazero_framework-{__version__}.dist-info/entry_points.txt").decode()
    nets = {f"alphazero/{name}" for name in files_of("pretrained")}
    ahead = {name for name in found if name.startswith("alphazero/compiled/")}
    assert "alphazero/compiled/generic/ahead.nbc" in ahead and "none-any" not in wheel.name, "it is for one system"
    assert found - ahead == files_of("alphazero") | files_of("games") | nets
    assert {"alphazero/pretrained/connect4/best.safetensors", "games/connect4/data/book.npz"} <= found
    assert "alphazero = alphazero.commands.program:main" in script


def run(installed: Path, folder: Path, *arguments: str) -> str:
    """What `alphazero ARGUMENTS` prints in `folder`, with the unpacked wheel in front of all else on the path."""
    start = "import sys; from alphazero.commands.program import main; sys.argv[0] = 'alphazero'; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", start, *arguments], cwd=folder, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": str(installed)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(ROOT) not in done.stdout + done.stderr
    return done.stdout


def test_its_games_and_nets_are_its_own(installed, tmp_path):
    program = (
        "import alphazero._version, games\nfrom alphazero.catalogue import registry\n"
        "print(*(registry.load(name).nets.get('best') for name in registry.NAMES), games.__file__, sep='\\n')"
    )
    env = {**os.environ, "PYTHONPATH": str(installed)}
    shown = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True)
    paths = [line for line in shown.stdout.splitlines() if line != "None"]
    shipped = len(list((ROOT / "pretrained").glob("*/best.safetensors")))
    assert len(paths) == shipped + 1 and all(path.startswith(str(installed)) for path in paths), shown


def test_a_game_is_begun_and_checked_and_commands_are_named_as_they_were_typed(installed, tmp_path):
    assert "alphazero train --game my_game.py --minutes 3" in run(installed, tmp_path, "new", "my_game")
    shown = run(installed, tmp_path, "check", "my_game.py", "--games", "5")
    assert "keeps all laws" in shown and "alphazero train --game my_game.py --minutes 3" in shown
    assert "python" not in shown.replace("plain Python", "")
