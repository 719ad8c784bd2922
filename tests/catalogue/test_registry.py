"""The registry: a game by its name, path, dotted name or entry point, and what a wrong one is answered."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from alphazero.catalogue import registry, shipped
from alphazero.errors import GameError, IllegalAction, InputError, UnknownName
from alphazero.game import Game
from alphazero.training.presets import presets
from tests.catalogue.two_plies import ROOT, assert_refused, source, write, write_game


def assert_plays(game: Game, name: str = "TwoPlies") -> None:
    assert game.name == name
    assert game.position([0, 0]).outcome == -1


# --- found ---


@pytest.mark.parametrize("name", registry.NAMES)
def test_shipped_games_by_name(name: str):
    loaded = registry.load(name)
    assert loaded.game.name == name
    assert {"quick", "standard", "strong"} <= set(loaded.presets())


def test_the_shipped_games_are_those_of_the_folder():
    assert {"connect4", "othello", "othello6"} <= set(registry.NAMES)
    folders = {type(registry.load(name).game).__module__.split(".")[1] for name in registry.NAMES}
    assert folders == {path.name for path in shipped.FOLDER.iterdir() if (path / "game.py").exists()}


def test_a_file_by_path(tmp_path: Path):
    path = write(tmp_path / "my_game.py", source())
    assert_plays(registry.load(path).game)
    assert_plays(registry.load(f"{path}:TwoPlies").game)


def test_a_changed_file_is_read_again(tmp_path: Path):
    path = write(tmp_path / "my_game.py", source())
    registry.load(path)
    write(tmp_path / "my_game.py", source("Changed"))
    assert_plays(registry.load(path).game, "Changed")


def test_a_path_with_a_colon(tmp_path: Path):
    path = write(tmp_path / "a:b.py:c" / "my_game.py", source("One"))
    assert_plays(registry.load(path).game, "One")
    assert_plays(registry.load(f"{path}:One").game, "One")


def test_a_package_with_a_dot_in_its_name(tmp_path: Path):
    """Python cannot import it by its name."""
    write(tmp_path / "v1.0" / "__init__.py", "")
    write(tmp_path / "v1.0" / "beside_a_dot.py", "")
    assert_plays(registry.load(write(tmp_path / "v1.0" / "a_game.py", "import beside_a_dot\n" + source())).game)
    path = write(tmp_path / "v1.0" / "b_game.py", "from . import beside_a_dot\n" + source())
    assert_refused(path, path, "'v1.0' has a dot", "give it a name without one")


def test_two_files_of_one_name_have_their_own_parts(tmp_path: Path):
    games = []
    for folder in ("a", "b"):
        text = source() + f'\ndef presets(game):\n    return {{"quick": "{folder}"}}\n'
        games.append(registry.load(write(tmp_path / folder / "my_game.py", text)).game)
    assert [registry.of(type(game)).presets() for game in games] == [{"quick": "a"}, {"quick": "b"}]


def test_a_file_without_presets_or_net_gets_those_of_the_framework(tmp_path: Path):
    loaded = registry.load(write(tmp_path / "my_game.py", source()))
    assert loaded.presets() == presets(loaded.game)


@pytest.mark.parametrize("name", ["a_package.rules", "a_package.rules:TwoPlies"])
def test_a_module_by_dotted_name(importable: Path, name: str):
    write(importable / "a_package" / "__init__.py", "")
    write(importable / "a_package" / "rules.py", source())
    assert_plays(registry.load(name).game)


def install(folder: Path, entry_points: str) -> None:
    """Metadata as pip writes it for an installed package."""
    write(folder / "a_package-1.0.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: a-package\nVersion: 1.0\n")
    write(folder / "a_package-1.0.dist-info" / "entry_points.txt", f"[alphazero.games]\n{entry_points}\n")
    importlib.invalidate_caches()


@pytest.mark.parametrize("target", ["a_package.rules", "a_package.rules:TwoPlies"], ids=["module", "class"])
def test_an_installed_game_by_entry_point(importable: Path, target: str):
    write(importable / "a_package" / "__init__.py", "")
    write(importable / "a_package" / "rules.py", source())
    install(importable, f"two-plies = {target}")
    assert_plays(registry.load("two-plies").game)
    assert_refused("two-plys", "did you mean 'two-plies'?", error=UnknownName)


@pytest.mark.parametrize("target", ["a_package:SPEC", "a_package"], ids=["SPEC", "package"])
def test_an_entry_point_may_lead_to_a_spec(importable: Path, target: str):
    write_game(importable / "a_package", more=', presets=".preset:presets"')
    write(importable / "a_package" / "preset.py", 'def presets(game):\n    return {"quick": game.max_plies}\n')
    install(importable, f"TwoPlies = {target}")
    loaded = registry.load("TwoPlies")
    assert_plays(loaded.game)
    assert loaded.presets() == {"quick": 2}


def test_an_installed_game_does_not_hide_a_shipped_one(importable: Path):
    write(importable / "a_package" / "__init__.py", source())
    install(importable, "connect4 = a_package")
    assert registry.load("connect4").game.num_actions == 7


# --- refused ---


@pytest.mark.parametrize(
    ("name", "guess"), [("conect4", "connect4"), ("tictactoo", "tictactoe"), ("Connect4", "connect4")]
)
def test_a_misspelt_name_is_answered_with_the_closest(name: str, guess: str):
    assert_refused(name, f"did you mean {guess!r}?", "connect4, ", "my_game.py", error=UnknownName)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "go", "../connect4", "a..b", "no_such_package.game", ":", "a\0.b", "x" * 9999]
)
def test_a_name_that_nothing_has_lists_the_allowed_ones(name: str):
    with pytest.raises(UnknownName, match=r"allowed: .*connect4"):
        registry.load(name)


@pytest.mark.parametrize("name", ["__main__.game", "os.", "os..path", "math.sin"])
def test_a_name_that_begins_like_a_module_is_refused_in_one_sentence(name: str):
    with pytest.raises(InputError, match=f"^[^\n]*{re.escape(name)}[^\n]*$"):
        registry.load(name)


@pytest.mark.parametrize("name", ["connect4:Conect4", "games.connect4.game:Conect4"])
def test_a_class_that_is_not_there_is_answered_with_the_closest(name: str):
    assert_refused(name, "'Conect4'", "did you mean 'Connect4'?", error=UnknownName)


@pytest.mark.parametrize("name", ["games", "numpy", "this"])
@pytest.mark.parametrize("is_package", [True, False], ids=["package", "relative import"])
def test_a_folder_that_is_called_as_another_module_is_said(tmp_path: Path, name: str, is_package: bool):
    """`games` has been imported, and of `this` Python has a module that hides the folder."""
    modules = dict(sys.modules)
    write(tmp_path / name / "logic.py", "")
    text = source() if is_package else "from . import logic\n" + source()
    path = write(tmp_path / name / "my_game.py", text)
    if is_package:
        write(tmp_path / name / "__init__.py", "")
    assert_refused(path, f"{name!r} is ", f"; give the folder {tmp_path / name} another name")
    assert all(sys.modules.get(key) is module for key, module in modules.items())


@pytest.mark.parametrize("is_loaded", [True, False], ids=["loaded", "found first"])
def test_a_file_is_not_given_the_helper_of_another_file(tmp_path: Path, importable: Path, is_loaded: bool):
    """Python keeps one module of each name; `shared` is the same for both files."""
    name = f"a_helper_{is_loaded}"
    write(tmp_path / "shared_helper.py", "")
    uses = f"import shared_helper\nfrom {name}_caller import number\n" + source()
    for folder in ("one", "two"):
        write(tmp_path / folder / f"{name}.py", f"number = '{folder}'\n")
    for folder in ("one", "three"):
        write(tmp_path / folder / f"{name}_caller.py", f"from {name} import number\n")
    first = write(tmp_path / "one" / "my_game.py", uses if is_loaded else "import beside_one\n" + source())
    write(tmp_path / "one" / "beside_one.py", "")
    write(tmp_path / "three" / f"{name}.py", "")
    assert_plays(registry.load(first).game)
    second = write(tmp_path / "two" / "my_game.py", f"import shared_helper\n\ndef f():\n    import {name}\n" + source())
    assert_refused(second, second, f"'{name}' is {tmp_path / 'one' / name}.py", f"not that in {tmp_path / 'two'}")
    third = write(tmp_path / "three" / "my_game.py", uses)
    assert_refused(third, third, f"not that in {tmp_path / 'three'}: rename one")
    write(tmp_path / "two" / "my_game.py", f"import shared_helper\nfrom .{name} import number\n" + source())
    assert sys.modules[type(registry.load(second).game).__module__].number == "two"


def test_the_frameworks_own_games_are_no_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder called `games` beside a file is not meant, also where files of the framework's folder have been used."""
    monkeypatch.setattr("alphazero.catalogue.user_code._seen", {shipped.FOLDER.parent})
    write(tmp_path / "games" / "notes.py", "")
    file = write(tmp_path / "my_game.py", "from games.tictactoe.game import TicTacToe\n" + source())
    assert_plays(registry.load(f"{file}:TwoPlies").game)


def test_a_program_called_games_is_not_run_twice(tmp_path: Path):
    """Python finds it as `games`, where it expects the framework's own."""
    program = write(
        tmp_path / "games.py",
        "print('begun')\nimport alphazero as az\nprint(az.load_game('tictactoe').name)\n"
        "from games.tictactoe.game import TicTacToe\nprint(TicTacToe.__name__)\n",
    )
    shown = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=100, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(shipped.FOLDER.parent)},
    )  # fmt: skip
    assert shown.stdout == "begun\ntictactoe\nTicTacToe\n", shown.stderr


def test_a_module_of_the_current_folder_is_told_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The name alone runs no file of that folder."""
    write(tmp_path / "a_folder" / "my_game.py", "raise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    for name in ("a_folder.my_game", "a_folder.my_game:One"):
        assert_refused(name, "'a_folder.my_game'", "is not on Python's path: give a_folder/my_game.py instead")


def test_a_module_may_declare_its_games_instead_of_holding_them():
    assert registry.load("games.connect4").name == "connect4"
    assert_refused("games.othello", "games.othello declares 2 games: choose one of othello, othello6")


@pytest.mark.parametrize("arguments", ["(" * 300, "-" * 20_000 + "1)", "[" * 5000 + "]" * 5000 + ")"])
def test_arguments_that_python_cannot_read_are_refused(arguments: str):
    assert_refused(f"games.othello.game:Othello6({arguments}", "the arguments in brackets must be plain values")


def test_a_missing_file_is_named(tmp_path: Path):
    assert_refused(str(tmp_path / "none.py"), str(tmp_path / "none.py"), "give the path of a Python file")
    (tmp_path / "folder.py").mkdir()
    assert_refused(str(tmp_path / "folder.py"), "folder.py", "give the path of a Python file")
    assert_refused("x" * 5000 + ".py", "give the path of a Python file")


def test_two_games_in_a_file_need_a_choice(tmp_path: Path):
    path = write(tmp_path / "my_game.py", source("One") + source("Two"))
    assert_refused(path, path, "not 2", "add :NAME", "One, Two")


def test_a_file_without_a_game_says_what_to_write(tmp_path: Path):
    path = write(tmp_path / "my_game.py", "from alphazero.game import Game\n")
    assert_refused(path, path, "not 0", "class MyGame(Game)")
    assert_refused("json.decoder", "json.decoder", "not 0", "class MyGame(Game)")


# name: (what the file holds, what the sentence must say)
BROKEN = {
    "syntax": ("x = 1\ndef legal(state:\n", ["SyntaxError", "line 2"]),
    "missing import": ("import no_such_module\n", ["No module named 'no_such_module'", "line 1"]),
    "missing name": ("from alphazero.game import Gaem\n", ["Gaem", "line 1"]),
    "error while it runs": ("x = 1\n\ny = [][1]\n", ["IndexError", "line 3"]),
    "leaves Python": ("import sys\nsys.exit(0)\n", ["SystemExit", "line 2"]),
    "bytes": ("x = '\0'\n", ["null bytes"]),
    "needs arguments": (
        "from alphazero.game import Game\nclass Sized(Game):\n    def __init__(self, size):\n        pass\n",
        ["TypeError", "size"],
    ),
}


@pytest.mark.parametrize(("text", "parts"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_one_sentence_with_the_place(tmp_path: Path, text: str, parts: list[str]):
    path = write(tmp_path / "broken.py", text)
    assert_refused(path, path, *parts)
    write(tmp_path / "broken.py", source())
    assert_plays(registry.load(path).game)


@pytest.mark.parametrize(
    ("target", "part", "error"),
    [
        ("a_package.none", "No module named 'a_package.none'", GameError),
        ("a_package.rules:Nothing", "Nothing", UnknownName),
        ("a_package.rules:init", "'init'", UnknownName),
    ],
)
def test_a_broken_entry_point_is_one_sentence(importable: Path, target: str, part: str, error: type[InputError]):
    write(importable / "a_package" / "__init__.py", "")
    write(importable / "a_package" / "rules.py", source())
    install(importable, f"two-plies = {target}")
    assert_refused("two-plies", "'two-plies'", part, error=error)


# --- positions ---


@pytest.mark.parametrize("action", ["a1", None, 3.0, [3]])
def test_what_is_no_action_is_refused(action: object):
    with pytest.raises(
        IllegalAction, match="an action is a whole number, not .*: `position.parse` makes one of a text"
    ):
        registry.load("tictactoe").game.start().play(action)


@pytest.mark.parametrize("text", ["a9", "", "b", "no match"])
def test_a_mistyped_move_is_refused_whatever_the_notation_raises(text: str):
    class Dictionary(type(registry.load("tictactoe").game)):
        def parse_action(self, text, state):
            return int(re.match(r"\S*$", text).group(0) and {"b": None, "": "x"}[text] + 1)

    with pytest.raises(IllegalAction, match="is not a legal action here"):
        Dictionary().start().parse(text)


# --- compiled code ---

LOAD_AND_RUN = """
import sys, importlib
from alphazero.catalogue import registry, shipped
from alphazero.catalogue.loaded import LoadedGame
from alphazero.game.kernels import Kernels
name = sys.argv[1]
if name.endswith(".py"):
    game = registry.load(name).game
else:
    sys.path.insert(0, sys.argv[2])
    game = importlib.import_module(name).TwoPlies()
kernels = Kernels(game)
kernels.describe_all(kernels.start_states(1))
print(kernels.describe.is_compiled)
"""


def test_compiled_code_of_a_file_serves_every_way_to_import_it(tmp_path: Path):
    """What numba keeps on disk names the module that a function came from; another process may call it otherwise."""
    text = source().replace("@njit\n", "").replace("legal_mask[0] = True", "legal_mask[0] = helper(state)")
    text = text.replace("def legal", "@njit\ndef helper(state):\n    return True\n\ndef legal")
    path = write(tmp_path / "my_game.py", text)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for name in ("my_game", path):
        command = [sys.executable, "-c", LOAD_AND_RUN, name, str(tmp_path)]
        result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        assert result.stdout == "True\n", result.stderr


def test_a_game_typed_at_the_prompt_has_the_frameworks_presets(tmp_path: Path):
    """As in a notebook, whose module has no file."""
    code = source() + "\nfrom alphazero.catalogue import registry\nprint(sorted(registry.of(TwoPlies).presets()))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100
    )
    assert done.stdout == "['quick', 'standard', 'strong']\n", done.stderr
