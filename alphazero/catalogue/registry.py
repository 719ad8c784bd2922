"""The registry: from a name, a class or a game to a `LoadedGame`, the game with its presets and network.

A name is one of these:

    connect4                      declared by the SPEC of a folder of games beside the framework
    my/game.py                    a Python file; my/game.py:ClassName if it holds several games
    my_package.my_game            a module; my_package.my_game:ClassName likewise
    shogi                         offered by an installed package under the entry point group `alphazero.games`
    openspiel:hex(board_size=5)   a game of OpenSpiel's

A class with the interface of alpha-zero-general is taken as well as a `Game`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.metadata
import os
import re
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from types import ModuleType
from typing import Any

from alphazero.catalogue.adapters import alpha_zero_general, openspiel
from alphazero.catalogue.loaded import LaterPart, LoadedGame, load_parts
from alphazero.catalogue.shipped import FAULTS, FOLDER, NAMES, NETS, PACKAGES
from alphazero.catalogue.user_code import ALONE, can_be_found, import_file, naming
from alphazero.errors import GameError, LawBroken, UnknownName, listed, quote, shorten, shorten_path
from alphazero.game.game import Game
from alphazero.game.laws.laws import check_declaration
from alphazero.game.spec import PARTS, GameSpec
from alphazero.game.validator import Check
from alphazero.invocation import command_line, option

A_GAME = "a game is a name, a Game class or an object of one"
MOST_OF_A_NAME = 200
"""The most characters of a game's name."""
TRIAL_GAMES = 20
"""Random games of a trial, at most."""
TRIAL_SECONDS = 0.3
"""No longer for the games of a trial, nor for each kind of checks after them."""
TRIAL_PLIES = 3
"""Plies of the first game that are tried however slow the rules are: a third player is known after two."""
_tried_rules: set[tuple[str, str]] = set()
"""The names and fingerprints of the games that have kept all laws."""
_origins: weakref.WeakKeyDictionary[Game, functools.partial[LoadedGame]] = weakref.WeakKeyDictionary()
"""Give a game that was loaded its parts once more, when the game alone is known."""

# --- from a name, a class or a game to its parts ---


def load(name: str) -> LoadedGame:
    """The game called `name`; raises UnknownName, or GameError if its module fails or does not hold one game."""
    return _keep(_find(name), functools.partial(load, name))


def load_named(name: str, where: str) -> LoadedGame:
    """The game that a file, `where`, names. Raises GameError for a path or a module: to load it is to run it."""
    if name in NAMES or name.startswith(openspiel.PREFIX) or name in _entry_points():
        return load(name)
    cure = f"name its file or module by {option('game')}"
    raise GameError(f"{where} belongs to the game {quote(name, 200)}, which does not come with alphazero: {cure}")


def of(game: str | Path | LoadedGame | Game | type | Any) -> LoadedGame:
    """The game behind a name, a path, a class, or an object of one, with its parts; raises as `load` does.

    A class or an object with the interface of alpha-zero-general is taken, too. A game that was loaded before keeps
    its parts.
    """
    if isinstance(game, LoadedGame):
        return game
    if isinstance(game, str | Path):
        return load(str(game))
    if isinstance(game, type):
        return _of_class(game)
    made = _as_game(game, type(game).__name__)
    written = made.wrapped if isinstance(made, alpha_zero_general.GeneralGame) else made
    loaded = _origins[made](made) if made in _origins else _with_parts(made, type(written))
    # not kept, since it holds the game
    return loaded if loaded.load_again else replace(loaded, load_again=_again(written, type(written)))


def tried(game: str | Path | LoadedGame | Game | type) -> LoadedGame:
    """`of(game)`, for all that begins with a game; raises LawBroken as `try_rules` does."""
    loaded = of(game)
    try_rules(loaded.game, str(game) if isinstance(game, str | Path) else "")
    return loaded


@functools.lru_cache(maxsize=64)
def _of_class(cls: type) -> LoadedGame:
    if not _is_game(cls):
        raise GameError(f"{A_GAME}, not the class {cls.__name__}{_lacking(cls)}")
    return _keep(_load_class(cls, [], f"the game class {cls.__name__}"), _again(cls, cls))


def _keep(loaded: LoadedGame, load_again: Callable[[], LoadedGame] | None) -> LoadedGame:
    """The same with a way to load it in another process, which is kept for its game."""
    _origins[loaded.game] = functools.partial(_origins[loaded.game], load_again=load_again)
    return replace(loaded, load_again=load_again)


def _again(game: Any, cls: type) -> Callable[[], LoadedGame] | None:
    """A way to load a class or an object of it in another process; None if it cannot be sent or imported there."""
    if cls.__module__.startswith(("__main__", ALONE)) or not can_be_found(cls.__module__):
        return None
    with suppress(Exception):  # whatever an object of somebody's holds
        ForkingPickler.dumps(game)
        return functools.partial(of, game)
    return None


def _entry_points() -> dict[str, importlib.metadata.EntryPoint]:
    return {entry.name: entry for entry in importlib.metadata.entry_points(group="alphazero.games")}


def _find(name: str) -> LoadedGame:
    if name.startswith(openspiel.PREFIX):
        return _with_parts(openspiel.OpenSpielGame(name.removeprefix(openspiel.PREFIX)), openspiel.OpenSpielGame)
    found = re.fullmatch(r"(.*\.py|[^:]*)(?::(.*))?", name, re.DOTALL)  # the path of a file may have colons, too
    assert found is not None
    module_name, class_name = found[1], found[2] or ""
    if module_name in NAMES:
        loaded = _load_declared(module_name, PACKAGES[module_name])
        cls = type(loaded.game)
        return _load_module(sys.modules[cls.__module__], class_name, name) if class_name else loaded
    if module_name.endswith(".py"):
        hint = "give the path of a Python file with a Game class"
        return _load_module(import_file(Path(module_name), "game", hint, GameError), class_name, module_name)
    entries = _entry_points()
    if name in entries:
        return _load_installed(entries[name])
    if "." in module_name and can_be_found(module_name.split(".")[0]):
        with naming(f"the game module {quote(module_name)}", GameError):
            module = importlib.import_module(module_name)
        return _load_module(module, class_name, module_name)
    if "." in module_name and os.path.isfile(file := module_name.replace(".", "/") + ".py"):
        raise GameError(f"the game module {quote(module_name)} is not on Python's path: give {file} instead")
    if name in FAULTS:
        raise GameError(FAULTS[name])
    hint = "or a path to a Python file such as my_game.py, a dotted module name, or openspiel:NAME"
    faults = "".join(f"; besides, {fault}" for fault in FAULTS.values())
    raise UnknownName("game", name, [*NAMES, *entries], hint + faults)


def _load_installed(entry: importlib.metadata.EntryPoint) -> LoadedGame:
    """The game of an installed package, whose entry point leads to a class, a module or a SPEC."""
    with naming(f"the installed game {quote(entry.name)}", GameError):
        module = importlib.import_module(entry.module)
    spec, attribute = getattr(module, "SPEC", None), entry.attr or ""
    if attribute in ("", "SPEC") and isinstance(spec, GameSpec) and entry.name in spec.games:
        return _load_declared(entry.name, module)
    return _load_module(module, attribute, f"the installed game {quote(entry.name)}")


# --- a trial of rules that nobody has checked: a net trained by rules that break a law is worth nothing ---


def try_rules(game: Game, given: str = "") -> None:
    """Raises LawBroken if random games of about a second show that a law of `Game` is broken.

    It takes plain Python alone, compiles nothing, and leaves notation, pictures and warnings to `validate`. Games that
    come with the framework and OpenSpiel's cost nothing, and others are tried once. `given`: the name that the user
    gave the game, for the sentence.
    """
    file = getattr(sys.modules.get(type(game).__module__), "__file__", None)
    if isinstance(game, openspiel.OpenSpielGame) or (file is not None and Path(file).is_relative_to(FOLDER)):
        return
    try:
        _try(game)
    except LawBroken as error:
        check = command_line("check", given) if given else "az.check_game(game)"
        raise LawBroken(f"{error}; to see where, and for all laws: {check}", error.drawing) from error


def _try(game: Game) -> None:
    check, lines, games = Check(game, TRIAL_SECONDS), list[list[int]](), 0
    check_declaration(check)
    check.permutations()
    if (game.name, game._fingerprint) in _tried_rules:
        return
    with check.watched():
        while games == 0 or (len(lines) < TRIAL_GAMES and time.monotonic() < check.deadline):
            games += 1
            for *_, facts in check.random_game(check.rng):
                if facts.is_terminal:
                    lines.append(check.line)
                elif time.monotonic() > check.deadline and (games > 1 or len(check.line) >= TRIAL_PLIES):
                    break
        check.line = []
        check.asked_again()
        if lines:
            check.all_move()
            check.mirrored(lines[:1])
    _tried_rules.add((game.name, game._fingerprint))


# --- from a class to its parts ---


def _is_game(cls: type) -> bool:
    return issubclass(cls, Game) or not alpha_zero_general.missing(cls)


def _lacking(cls: type) -> str:
    """The end of a sentence: the methods that a class lacks, if it has others of alpha-zero-general's interface."""
    missing = alpha_zero_general.missing(cls)
    return f": {cls.__name__} lacks {', '.join(missing)}" if len(missing) < len(alpha_zero_general.METHODS) else ""


def _load_declared(name: str, holder: ModuleType) -> LoadedGame:
    """One of the games of a module's SPEC."""
    cls = _declared_class(name, holder)
    what = f"the game {quote(name)} of {holder.__file__}"
    if not isinstance(cls, type) or not _is_game(cls):
        raise GameError(f"{what} must be a Game class, not {quote(cls)}")
    loaded = _load_class(cls, [], what, holder)
    if loaded.name != name:
        raise GameError(f'{what} must have that name in its class, too: name = "{name}", not "{loaded.name}"')
    return loaded


def _declared_class(name: str, holder: ModuleType) -> Any:
    return LaterPart(holder.SPEC.games[name], f"games[{name!r}]", holder).resolve()


def _load_module(module: ModuleType, class_name: str, given: str) -> LoadedGame:
    """The game of a module; `class_name` may be followed by arguments in brackets."""
    class_name, arguments = _split_arguments(class_name)
    what, where = f"the game class in {given}", shorten_path(given)
    held = {name: value for name, value in vars(module).items() if isinstance(value, type)}
    own = {cls.__name__: cls for cls in held.values() if cls.__module__ == module.__name__}
    found = {name: cls for name, cls in own.items() if _is_game(cls)}
    if class_name:
        if (cls := held.get(class_name)) is None:
            raise UnknownName(f"game class in {where}", class_name, found)
        if not _is_game(cls):
            derive = f": derive it from Game, as `class {class_name}(Game)`"
            raise GameError(f"{class_name} in {where} is not a Game{_lacking(cls) or derive}")
        return _load_class(cls, arguments, what)
    # what only chooses arguments for another class must be named
    written = {*alpha_zero_general.METHODS}
    found = {n: cls for n, cls in found.items() if issubclass(cls, Game) or written & {*vars(cls)}} or found
    spec = getattr(module, "SPEC", None)
    if not found and isinstance(spec, GameSpec) and spec.games:
        if len(spec.games) == 1:
            return _load_declared(next(iter(spec.games)), module)
        raise GameError(f"{where} declares {len(spec.games)} games: choose one of {listed(spec.games)}")
    if len(found) != 1:
        remedy = f": add :NAME to choose one of {', '.join(sorted(found))}"
        if not found:
            remedy = next(filter(None, map(_lacking, own.values())), ": define one there, as `class MyGame(Game)`")
        raise GameError(f"{where} must hold one Game class, not {len(found)}{remedy}")
    return _load_class(next(iter(found.values())), [], what)


def _load_class(cls: type, arguments: Sequence[Any], what: str, holder: ModuleType | None = None) -> LoadedGame:
    with naming(what, GameError):
        made = cls(*arguments)
    title = cls.__name__ + (f"({', '.join(map(repr, arguments))})" if arguments else "")
    return _with_parts(_as_game(made, title), cls, holder)


def _as_game(made: Any, title: str) -> Game:
    """A game as it is, or an object with the interface of alpha-zero-general as a game of that name."""
    if not isinstance(made, Game):
        if alpha_zero_general.missing(type(made)):
            raise GameError(f"{A_GAME}, not {quote(made)}{_lacking(type(made))}")
        made = alpha_zero_general.GeneralGame(made, title)
    name = getattr(made, "name", None) or ""
    if len(name) > MOST_OF_A_NAME or not name[:1].isalnum() or not name.isprintable() or {*name} & {*"/\\"}:
        law = f"that begins with a letter or a digit, has no slash and at most {MOST_OF_A_NAME} characters"
        raise GameError(f'{shorten(title)} must have a `name` {law}, as name = "my_game"; it has {quote(name)}')
    return made


def _with_parts(game: Game, cls: type, holder: ModuleType | None = None) -> LoadedGame:
    """The game with the parts of the SPEC in `holder`, else of that of its class."""
    if (package := PACKAGES.get(game.name)) is not None:
        shipped = _declared_class(game.name, package)
        keeps_rules = isinstance(game, shipped) and game.rules == getattr(shipped, "rules", None)
        if type(game) is not shipped and not keeps_rules:  # it would take the other's nets for its own
            cure = f'give yours another, as name = "my_{game.name}"'
            raise GameError(f"{quote(game.name)} is the name of a shipped game: {cure}")
    spec, holder = (holder.SPEC, holder) if holder else _spec_of(cls)
    nets = {path.stem: path for path in sorted((NETS / game.name).glob("*.safetensors"))}
    _origins[game] = functools.partial(load_parts, spec=spec, holder=holder, nets=nets)
    return _origins[game](game)


def _spec_of(cls: type) -> tuple[GameSpec, ModuleType]:
    """The SPEC of the class's module, or of the package if it is for that class, and the module that holds it.

    Without a SPEC, the module's own functions `presets`, `make_net` and so on are the parts.
    """
    module = sys.modules[cls.__module__]
    place = f"{cls.__module__}:{cls.__name__}"
    package = sys.modules.get(module.__name__.rpartition(".")[0])
    for holder in (module, package):
        spec = getattr(holder, "SPEC", None)
        if isinstance(spec, GameSpec) and holder is not None:
            mine = cls, place, place.removeprefix(holder.__name__)
            if holder is module or not spec.games or any(part in mine for part in spec.games.values()):
                return spec, holder
    if module.__name__ == "__main__":  # of a notebook, whose names mean anything
        return GameSpec(), module
    with naming(f"{module.__file__}", GameError):
        names = [name for name in (*PARTS, "contestants") if hasattr(module, name)]
        return GameSpec(**{name: getattr(module, name) for name in names}), module


def _split_arguments(text: str) -> tuple[str, list[Any]]:
    """`"Othello(6)"` is Othello and [6]; raises GameError unless the arguments are plain values."""
    name, bracket, _ = text.partition("(")
    if not bracket:
        return text, []
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):  # the last two for too many brackets
        match ast.parse(text, mode="eval").body:
            case ast.Call(func=ast.Name(), args=arguments, keywords=[]):
                return name, [ast.literal_eval(argument) for argument in arguments]
    raise GameError(f"{quote(text)}: the arguments in brackets must be plain values, as in {name}(6)")
