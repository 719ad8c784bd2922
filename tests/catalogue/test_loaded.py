"""A game or its class leads to its parts, in this process and in others."""

import gc
import sys
import weakref
from dataclasses import replace
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import GameError
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.training.presets import presets
from tests.catalogue.two_plies import assert_refused, source, write


class Local(registry.load("tictactoe").game.__class__):
    """A game of this module."""


def assert_same(found: LoadedGame, loaded: LoadedGame) -> None:
    """One game with the same parts."""
    assert found.game is loaded.game and found.load_again is loaded.load_again
    assert (found.make_net, found.contestants, found.nets) == (loaded.make_net, loaded.contestants, loaded.nets)


def test_a_loaded_game_leads_back_to_its_parts():
    loaded = registry.load("connect4")
    assert registry.of(loaded) is loaded
    assert_same(registry.of(loaded.game), loaded)


def test_a_game_that_nobody_holds_is_let_go():
    held = [weakref.ref(registry.load("connect4").game), weakref.ref(registry.of(registry.of(Local()).game).game)]
    gc.collect()
    assert [game() for game in held] == [None, None]


@pytest.mark.parametrize("as_class", [True, False])
def test_a_class_and_an_object_of_a_shipped_game_have_its_parts(as_class: bool):
    loaded, cls = registry.load("connect4"), type(registry.load("connect4").game)
    found = registry.of(cls if as_class else cls())
    assert found.nets == loaded.nets and found.presets() == loaded.presets() and set(found.contestants) == {"solver"}
    assert registry.of(found.game).nets == loaded.nets
    assert found.load_again is not None and found.load_again().name == "connect4"


def test_a_game_of_ones_own_has_the_parts_of_its_module():
    made = registry.of(Local())
    assert made.presets() == presets(made.game) and made.nets == registry.load("tictactoe").nets


def test_a_game_that_another_process_cannot_import_is_not_sent_there(tmp_path: Path):
    class Inner(Local):
        pass

    in_a_file = type(registry.load(write(tmp_path / "my_game.py", source())).game)
    assert registry.of(Inner).load_again is None and registry.of(in_a_file()).load_again is None
    main = type("Main", (Local,), {"__module__": "__main__"})
    assert registry.of(main).load_again is None
    assert registry.of(Local).load_again is not None


SHIPPED = "'breakthrough' is the name of a shipped game: give yours another"


def test_a_game_of_ones_own_cannot_have_the_name_of_a_shipped_one(tmp_path: Path):
    """It would get the other's nets for its own, and its checkpoints would be played by the other's rules."""
    text = source("Mine").replace('name = "Mine"', 'name = "breakthrough"')
    assert_refused(write(tmp_path / "my_game.py", text), SHIPPED)
    general = "from tests.catalogue.general_games import TicTacToeGame\nclass breakthrough(TicTacToeGame):\n"
    general += "    def getActionSize(self):\n        return super().getActionSize()\n"
    assert_refused(write(tmp_path / "general.py", general), SHIPPED)
    with pytest.raises(GameError, match=SHIPPED):
        registry.of(type("Mine", (Local,), {"name": "breakthrough"}))


def test_a_class_with_other_rules_needs_a_name_of_its_own():
    other = replace(Local.rules, is_terminal=Local.rules.is_terminal.py_func)
    with pytest.raises(GameError, match="'tictactoe' is the name of a shipped game"):
        registry.of(type("Changed", (Local,), {"rules": other}))


@pytest.mark.parametrize("name", ["connect4", "othello6"])
def test_a_shipped_game_by_the_path_of_its_file_has_its_nets(name: str):
    loaded = registry.load(name)
    cls = type(loaded.game)
    found = registry.load(f"{sys.modules[cls.__module__].__file__}:{cls.__name__}")
    assert found.name == name and found.nets == loaded.nets != {}
    assert type(found.game) is cls, "its oracle and others hold the class"


def test_a_game_with_settings_is_sent_with_them():
    made = Local()
    made.size = 5
    str(made.start())  # what is computed on the way stays here
    registry.of(made)
    again = ForkingPickler.loads(ForkingPickler.dumps(registry.of(made).load_again))()
    assert again.game.size == 5 and again.game is not made


def test_what_is_no_game_is_refused():
    for wrong in (3, object(), None):
        with pytest.raises(GameError, match="a game is a name, a Game class or an object of one"):
            registry.of(wrong)
    with pytest.raises(GameError, match="a game is a name"):
        registry.of(int)


def test_a_game_without_a_name_is_refused():
    nameless = type("Nameless", (Game,), {})
    with pytest.raises(GameError, match='Nameless must have a `name`.* as name = "my_game"'):
        registry.of(nameless)


@pytest.mark.parametrize("name", ["", "a/b", "a\\b", "..", "a\nb", "a" * 201])
def test_a_name_that_no_file_can_be_named_after_is_refused(name):
    named = type("Named", (Game,), {"name": name})
    with pytest.raises(GameError, match="`name` that begins with a letter or a digit, has no slash and at most 200"):
        registry.of(named)


@pytest.mark.parametrize("name", ["v{4}", "a b", "n" * 200])
def test_rules_of_a_game_with_any_name_are_compiled(name: str):
    """Files are named after it, whose names hold 255 characters."""
    named = type("Named", (type(registry.load("tictactoe").game),), {"name": name})
    kernels = Kernels(named())
    assert kernels.start_states(1).tolist() == [[0, 0]] and kernels.init_states.is_compiled
    assert len(kernels.init_states.compiled.__qualname__) < 150
