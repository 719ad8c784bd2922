"""The folder of games: each declares its parts in a SPEC, and a broken one breaks no other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from alphazero.errors import GameError
from tests.catalogue.two_plies import ROOT, SPEC, source, write, write_game

RUN_IN_A_COPY = """
import sys
from alphazero.errors import InputError
from alphazero.catalogue import registry
for name in sys.argv[1:]:
    try:
        loaded = registry.load(name)
        print(name, loaded.name, loaded.game.position([0, 0]).outcome if name != "tictactoe" else len(loaded.presets()))
    except InputError as error:
        print(name, error)
"""


def some(cases: dict[str, tuple], *names: str) -> list:
    """Those cases, each of which takes a program of its own; the others in the slow tests."""
    return [
        pytest.param(*case, id=name, marks=() if name in names else pytest.mark.slow) for name, case in cases.items()
    ]


@pytest.fixture
def copied_tree(tmp_path: Path) -> Path:
    """The library and one game, elsewhere."""
    shutil.copytree(ROOT / "alphazero", tmp_path / "alphazero", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "games").mkdir()
    shutil.copy(ROOT / "games" / "__init__.py", tmp_path / "games")
    shutil.copytree(ROOT / "games" / "tictactoe", tmp_path / "games" / "tictactoe")
    return tmp_path


def load_in(tree: Path, *names: str, before: Path | None = None) -> list[str]:
    """What a process that runs elsewhere prints for each name; the folder `before` comes first on its path."""
    path = os.pathsep.join(map(str, [before, tree] if before else [tree]))
    result = subprocess.run(
        [sys.executable, "-c", RUN_IN_A_COPY, *names], cwd="/", env=os.environ | {"PYTHONPATH": path},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return result.stdout.splitlines()


def test_a_new_folder_of_games_needs_no_reinstall(copied_tree: Path):
    write_game(copied_tree / "games" / "mine")
    assert load_in(copied_tree, "TwoPlies", "tictactoe") == ["TwoPlies TwoPlies -1", "tictactoe tictactoe 3"]


# what is wrong with the folder `broken`: its __init__.py, and what is said of it
BROKEN_FOLDERS = {
    "no SPEC": ("x = 1\n", "must declare its games, as SPEC = GameSpec("),
    "syntax": ("def\n", "SyntaxError"),
    "error": ("1 / 0\n", "ZeroDivisionError"),
    "twice": (SPEC.format(games='"tictactoe": ".game:TwoPlies"', more=""), "declares 'tictactoe', which"),
    "no reference": (SPEC.format(games='"TwoPlies": "game.TwoPlies"', more=""), 'text such as ".net:make_net"'),
    "no mapping": ("from alphazero.game.spec import GameSpec\nSPEC = GameSpec(['a'])\n", "must map names to functions"),
}


@pytest.mark.parametrize(("text", "words"), some(BROKEN_FOLDERS, "no SPEC", "error", "twice"))
def test_a_broken_folder_gets_one_sentence_and_breaks_no_other_game(copied_tree: Path, text: str, words: str):
    folder = copied_tree / "games" / ("broken" if "tictactoe" not in text else "ultimate")  # "twice" must come second
    write_game(folder)
    write(folder / "__init__.py", text)
    tictactoe, broken, other = load_in(copied_tree, "tictactoe", folder.name, "TwoPlies")
    assert tictactoe == "tictactoe tictactoe 3"
    for line in (broken, other):
        assert words in line and str(folder) in line
    assert other.startswith("TwoPlies unknown game")


# what is wrong with a part of a SPEC: the rest of it, what is asked for, what is said
BROKEN_PARTS = {
    "no module": ('"TwoPlies": ".rules:TwoPlies"', "", "games['TwoPlies']=\".rules:TwoPlies\" in the SPEC of"),
    "no class": ('"TwoPlies": ".game:Nothing"', "", "game.py has no function or class 'Nothing'"),
    "no game": ('"TwoPlies": ".game:init"', "", "must be a Game class"),
    "another name": ('"two": ".game:TwoPlies"', "", 'name = "two", not "TwoPlies"'),
}


@pytest.mark.parametrize(("games", "more", "words"), some(BROKEN_PARTS, "no class"))
def test_a_wrong_reference_names_the_spec_and_the_part(copied_tree: Path, games: str, more: str, words: str):
    write_game(copied_tree / "games" / "mine", games, more)
    name = games.split('"')[1]
    (line,) = load_in(copied_tree, name)
    assert words in line and str(copied_tree / "games" / "mine") in line


def test_a_part_that_is_not_there_is_named_when_it_is_wanted(importable: Path):
    write_game(importable / "a_package", more=', presets=".preset:presets"')
    loaded = registry.load("a_package.game")
    words = r'presets=".preset:presets" in the SPEC of .*a_package/__init__.py cannot be used .*a_package.preset'
    with pytest.raises(GameError, match=words):
        loaded.presets()


# another package or module called games: its files
OTHERS = {
    "package": {"games/__init__.py": "mine = 1\n", "games/chess.py": "mine = 2\n"},
    "folder": {"games/chess.py": "mine = 2\n"},
    "module": {"games.py": "mine = 1\n"},
}


@pytest.mark.parametrize("first", [True, False], ids=["theirs first", "ours first"])
@pytest.mark.parametrize("files", some({name: (files,) for name, files in OTHERS.items()}, "package"))
def test_another_package_called_games_hides_nothing(copied_tree: Path, tmp_path: Path, files: dict, first: bool):
    other = tmp_path / "other"
    for name, text in files.items():
        write(other / name, text)
    write(other / "theirs.py", source() + ("import games.chess\n" if "games/chess.py" in files else ""))
    trees = (copied_tree, other) if first else (other, copied_tree)
    assert load_in(trees[0], "tictactoe", str(other / "theirs.py"), before=trees[1]) == [
        "tictactoe tictactoe 3",
        f"{other / 'theirs.py'} TwoPlies -1",
    ]


def test_a_game_that_is_hidden_says_by_what(copied_tree: Path, tmp_path: Path):
    write(tmp_path / "other" / "games" / "__init__.py", "")
    hiding = write(tmp_path / "other" / "games" / "tictactoe" / "__init__.py", "")
    (line,) = load_in(copied_tree, "tictactoe", before=tmp_path / "other")
    assert f"is hidden by {hiding}: rename one of the two" in line
