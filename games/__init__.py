"""The registry: from a name on the command line to a game with its presets and network.

A name is that of a class in one of the folders here, a path to a Python file (`my/game.py`, or
`my/game.py:ClassName`), a dotted module name (`my_package.my_game`, with `:ClassName` if it holds several), a name
that an installed package offers under the entry point group `alphazero.games`, or a game of OpenSpiel's
(`openspiel:hex(board_size=5)`). A class of alpha-zero-general's kind will do as well as a `Game`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.metadata
import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from alphazero.errors import GameError, UnknownName
from alphazero.game import Game
from alphazero.package import GamePackage
from alphazero.user_code import can_be_found, import_file, naming
from games import general, openspiel

FOLDER = Path(__file__).parent
NETS = FOLDER.parent / "pretrained"
"""Holds a folder of nets for some games."""
HINT = "give the path of a Python file with a Game class"


def _classes() -> dict[str, tuple[str, str]]:
    """The module and the class of every game in the folders here, found without importing them."""
    found = {}
    for path in FOLDER.glob("*/game.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in [node for node in tree.body if isinstance(node, ast.ClassDef)]:
            for item in node.body:
                match item:
                    case ast.Assign(targets=[ast.Name(id="name")], value=ast.Constant(value=str(name))):
                        found[name] = f"games.{path.parent.name}.game", node.name
    return found


_CLASSES = _classes()
NAMES = sorted(_CLASSES)
"""The games that come with the framework."""


def load(name: str) -> GamePackage:
    """The game called `name`; raises UnknownName, or GameError if its module fails or does not hold one game."""
    return replace(_find(name), load_again=functools.partial(load, name))


def load_named(name: str, where: str) -> GamePackage:
    """The game that a file, `where`, names. Raises GameError for a path or a module: to load it is to run it."""
    if name in NAMES or name.startswith(openspiel.PREFIX) or name in _entry_points():
        return load(name)
    raise GameError(
        f"{where} is of the game {name!r:.200}, which is none of the shipped ones: say where it is by --game"
    )


def _entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    return {entry.name: entry for entry in importlib.metadata.entry_points(group="alphazero.games")}


def _find(name: str) -> GamePackage:
    if name.startswith(openspiel.PREFIX):
        return _with_parts(openspiel.OpenSpielGame(name.removeprefix(openspiel.PREFIX)), openspiel)
    module_name, _, class_name = name.partition(":")
    if module_name in NAMES:
        path, its_class = _CLASSES[module_name]
        return _package(importlib.import_module(path), class_name or its_class, module_name)
    if module_name.endswith(".py"):
        return _package(import_file(Path(module_name), "game", HINT, GameError), class_name, module_name)
    entries = _entry_points()
    if name in entries:
        with naming(f"the installed game {name!r}", GameError):
            loaded = entries[name].load()
        if isinstance(loaded, ModuleType):
            return _package(loaded, "", name)
        if not isinstance(loaded, type) or not issubclass(loaded, Game):
            raise GameError(f"the entry point {name!r} must lead to a Game class or its module: {entries[name].value}")
        return _package(sys.modules[loaded.__module__], loaded.__name__, name)
    if "." in module_name and can_be_found(module_name.split(".")[0]):
        with naming(f"the game module {module_name!r}", GameError):
            module = importlib.import_module(module_name)
        return _package(module, class_name, module_name)
    hint = "or a path to a Python file such as my_game.py, a dotted module name, or openspiel:NAME"
    raise UnknownName("game", name, [*NAMES, *entries], hint)


def _package(module: ModuleType, class_name: str, given: str) -> GamePackage:
    """The game of a module; `class_name` may be followed by arguments in brackets."""
    found = {
        value.__name__: value
        for value in vars(module).values()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and (issubclass(value, Game) or general.fits(value))
    }
    class_name, arguments = _split_arguments(class_name)
    if class_name and class_name not in found:
        raise UnknownName(f"game class in {given}", class_name, found)
    if not class_name and len(found) != 1:
        choose = f"add :NAME to choose one of {', '.join(sorted(found))}"
        raise GameError(
            f"{given} must hold one Game class, not {len(found)}: "
            + (choose if found else "define one there, as `class MyGame(Game)`")
        )
    chosen = found[class_name] if class_name else next(iter(found.values()))
    with naming(f"the game class in {given}", GameError):
        made = chosen(*arguments)
    if not isinstance(made, Game):
        made = general.GeneralGame(
            made, chosen.__name__ + (f"({', '.join(map(repr, arguments))})" if arguments else "")
        )
    return _with_parts(made, module)


def _split_arguments(text: str) -> tuple[str, list[Any]]:
    """`"Othello(6)"` is Othello and [6]; raises GameError unless the arguments are plain values."""
    name, bracket, _ = text.partition("(")
    if not bracket:
        return text, []
    try:
        match ast.parse(text, mode="eval").body:
            case ast.Call(func=ast.Name(), args=arguments, keywords=[]):
                return name, [ast.literal_eval(argument) for argument in arguments]
    except (ValueError, SyntaxError):
        pass
    raise GameError(f"{text!r}: the arguments in brackets must be plain values, as in {name}(6)")


def _with_parts(game: Game, module: ModuleType) -> GamePackage:
    """The game and what its module, its module's neighbours or the framework have for it."""
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

    def optional(name: str, attribute: str) -> Any:
        """`attribute` of the module or its neighbour, or None."""
        here = hasattr(module, attribute) or (beside and importlib.util.find_spec(f"{beside}.{name}"))
        return part(name, attribute, ("", "")) if here else None

    return GamePackage(
        game, presets, make_net, optional("benchmark", "make_benchmark"),
        contestants=optional("contestants", "contestants") or {},
        nets={path.stem: path for path in sorted((NETS / game.name).glob("*.safetensors"))},
        truth=optional("truth", "make_truth"),
        make_balance=optional("balance", "make_balance"),
        gtp_words=optional("gtp", "gtp_words"),
    )  # fmt: skip
