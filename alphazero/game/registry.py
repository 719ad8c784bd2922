"""The registry: from a name on the command line to a game with its presets and network.

A name is one of these:

    connect4                      declared by the SPEC of a folder of games beside the framework
    my/game.py                    a Python file; my/game.py:ClassName if it holds several games
    my_package.my_game            a module; my_package.my_game:ClassName likewise
    chess                         offered by an installed package under the entry point group `alphazero.games`
    openspiel:hex(board_size=5)   a game of OpenSpiel's

A class of alpha-zero-general's kind will do as well as a `Game`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from alphazero.errors import GameError, UnknownName
from alphazero.game.adapters import alpha_zero_general, openspiel
from alphazero.game.game import Game
from alphazero.game.gtp_words import GtpWords
from alphazero.game.spec import PARTS, GameSpec, LoadedGame, load_parts, resolve
from alphazero.game.user_code import can_be_found, import_file, naming

FOLDER = Path(__file__).resolve().parents[2] / "games"
"""The games that come with the framework, a package each; a new folder there is found without being installed."""


def _find_nets() -> Path:
    """The shipped nets: setup.py puts the clone's folder pretrained/ into the package where it is installed."""
    installed = Path(__file__).resolve().parents[1] / "pretrained"
    return installed if installed.is_dir() else FOLDER.parent / "pretrained"


NETS = _find_nets()
"""Holds a folder of nets for some games."""
HINT = "give the path of a Python file with a Game class"


@functools.cache
def _shipped() -> dict[str, tuple[str, GameSpec]]:
    """The package and the spec of every game in FOLDER; no part of a game is imported for it."""
    found = {}
    for path in sorted(FOLDER.glob("*/__init__.py")):
        name = f"{FOLDER.name}.{path.parent.name}"
        with naming(f"the folder {str(path.parent)!r}", GameError):
            module = importlib.import_module(name)
        if Path(str(module.__file__)).resolve() != path:
            raise GameError(
                f"the games that come with alphazero are hidden by {module.__file__}: rename that package, or start "
                "Python elsewhere"
            )
        spec = getattr(module, "SPEC", None)
        if isinstance(spec, GameSpec):
            found.update({game: (name, spec) for game in spec.games})
    return found


NAMES = sorted(_shipped())
"""The games that come with the framework."""


def load(name: str) -> LoadedGame:
    """The game called `name`; raises UnknownName, or GameError if its module fails or does not hold one game."""
    return replace(_find(name), load_again=functools.partial(load, name))


def load_named(name: str, where: str) -> LoadedGame:
    """The game that a file, `where`, names. Raises GameError for a path or a module: to load it is to run it."""
    if name in NAMES or name.startswith(openspiel.PREFIX) or name in _entry_points():
        return load(name)
    raise GameError(
        f"{where} is of the game {name!r:.200}, which is none of the shipped ones: say where it is by --game"
    )


def _entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    return {entry.name: entry for entry in importlib.metadata.entry_points(group="alphazero.games")}


def _find(name: str) -> LoadedGame:
    if name.startswith(openspiel.PREFIX):
        game = openspiel.OpenSpielGame(name.removeprefix(openspiel.PREFIX))
        return _loaded(GameSpec({}), game, "", openspiel.gtp_words)
    module_name, _, class_name = name.partition(":")
    if module_name in NAMES:
        return _load_shipped(module_name, class_name)
    if module_name.endswith(".py"):
        return _load_module(import_file(Path(module_name), "game", HINT, GameError), class_name, module_name)
    entries = _entry_points()
    if name in entries:
        with naming(f"the installed game {name!r}", GameError):
            loaded = entries[name].load()
        if isinstance(loaded, ModuleType):
            return _load_module(loaded, "", name)
        if not isinstance(loaded, type) or not issubclass(loaded, Game):
            raise GameError(f"the entry point {name!r} must lead to a Game class or its module: {entries[name].value}")
        return _load_module(sys.modules[loaded.__module__], loaded.__name__, name)
    if "." in module_name and can_be_found(module_name.split(".")[0]):
        with naming(f"the game module {module_name!r}", GameError):
            module = importlib.import_module(module_name)
        return _load_module(module, class_name, module_name)
    hint = "or a path to a Python file such as my_game.py, a dotted module name, or openspiel:NAME"
    raise UnknownName("game", name, [*NAMES, *entries], hint)


def _load_shipped(name: str, class_name: str) -> LoadedGame:
    package, spec = _shipped()[name]
    chosen = resolve(spec.games[name], package)
    if class_name:
        return _load_module(sys.modules[chosen.__module__], class_name, name)
    return _loaded(spec, chosen(), package, None)


def _load_module(module: ModuleType, class_name: str, given: str) -> LoadedGame:
    """The game of a module; `class_name` may be followed by arguments in brackets."""
    found = {
        value.__name__: value
        for value in vars(module).values()
        if isinstance(value, type)
        and value.__module__ == module.__name__
        and (issubclass(value, Game) or alpha_zero_general.fits(value))
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
        made = alpha_zero_general.GeneralGame(
            made, chosen.__name__ + (f"({', '.join(map(repr, arguments))})" if arguments else "")
        )
    spec, words = _spec_of(module)
    return _loaded(spec, made, module.__name__.rpartition(".")[0], words)


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


def _spec_of(module: ModuleType) -> tuple[GameSpec, Callable[[Game], GtpWords] | None]:
    """The SPEC of the module or of its package; else the parts that the module itself defines under their names."""
    around = sys.modules.get(module.__name__.rpartition(".")[0])
    for holder in (module, around):
        if isinstance(spec := getattr(holder, "SPEC", None), GameSpec):
            return spec, None
    names = (*PARTS, "contestants")
    parts: dict[str, Any] = {name: getattr(module, name) for name in names if hasattr(module, name)}
    return GameSpec({}, **parts), getattr(module, "gtp_words", None)


def _loaded(spec: GameSpec, game: Game, beside: str, gtp_words: Callable[[Game], GtpWords] | None) -> LoadedGame:
    nets = {path.stem: path for path in sorted((NETS / game.name).glob("*.safetensors"))}
    return load_parts(spec, game, beside, nets, gtp_words)
