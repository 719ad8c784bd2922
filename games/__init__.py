"""The registry: from a name on the command line to a game with its presets and network.

A name is one of the folders here, a path to a Python file (`my/game.py`, or `my/game.py:ClassName`), a dotted module
name (`my_package.my_game`, with `:ClassName` if it holds several), or a name that an installed package offers under the
entry point group `alphazero.games`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from alphazero.errors import GameError, UnknownName
from alphazero.game import Game
from alphazero.package import GamePackage

FOLDER = Path(__file__).parent
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/game.py"))
"""The games that come with the framework."""


def load(name: str) -> GamePackage:
    """The game called `name`; raises UnknownName, or GameError if its module does not hold one game."""
    module_name, _, class_name = name.partition(":")
    if module_name in NAMES:
        return _package(importlib.import_module(f"games.{module_name}.game"), class_name)
    if module_name.endswith(".py"):
        return _package(_import_file(Path(module_name)), class_name)
    for entry in importlib.metadata.entry_points(group="alphazero.games"):
        if entry.name == name:
            loaded = entry.load()
            module = loaded if isinstance(loaded, ModuleType) else sys.modules[loaded.__module__]
            return _package(module, "" if loaded is module else loaded.__name__)
    if "." in module_name and importlib.util.find_spec(module_name.split(".")[0]) is not None:
        try:
            return _package(importlib.import_module(module_name), class_name)
        except ModuleNotFoundError as error:
            raise GameError(f"cannot import the game module {module_name!r}: {error}") from error
    hint = "or a path to a Python file such as my_game.py, or a dotted module name"
    raise UnknownName("game", name, NAMES, hint)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise GameError(f"there is no game file {str(path)!r}: give the path of a Python file with a Game class")
    name = f"alphazero_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _package(module: ModuleType, class_name: str) -> GamePackage:
    found = {
        value.__name__: value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Game) and value.__module__ == module.__name__
    }
    if class_name and class_name not in found:
        raise UnknownName(f"game class in {module.__name__}", class_name, found)
    if not class_name and len(found) != 1:
        raise GameError(
            f"{module.__name__} must hold one Game class, not {len(found)}"
            + (f": add :NAME to choose one of {', '.join(sorted(found))}" if found else "")
        )
    game = (found[class_name] if class_name else next(iter(found.values())))()
    beside = module.__name__.rpartition(".")[0] if module.__name__.endswith(".game") else None

    def part(name: str, attribute: str, default: tuple[str, str]) -> Any:
        """`attribute` of the module itself, of its neighbour `name`, or the framework's own."""
        if hasattr(module, attribute):
            return getattr(module, attribute)
        if beside and importlib.util.find_spec(f"{beside}.{name}"):
            return getattr(importlib.import_module(f"{beside}.{name}"), attribute)
        return getattr(importlib.import_module(default[0]), default[1])

    def presets() -> Any:
        return part("preset", "presets", ("alphazero.presets", "presets"))(game)

    def make_net(game: Game, settings: Any) -> Any:
        return part("net", "make_net", ("alphazero.resnet", "make_net"))(game, settings)

    return GamePackage(game, presets, make_net)
