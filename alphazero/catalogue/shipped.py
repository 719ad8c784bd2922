"""The games that come with the framework: a folder each, whose SPEC declares them."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from alphazero.catalogue.user_code import SHIPPED as FOLDER
from alphazero.catalogue.user_code import naming
from alphazero.errors import GameError, quote
from alphazero.game.spec import GameSpec

_INSTALLED = Path(__file__).resolve().parents[1] / "pretrained"
NETS = _INSTALLED if _INSTALLED.is_dir() else FOLDER.parent / "pretrained"
"""Holds a folder of nets for some games; setup.py puts the clone's pretrained/ into the package that it installs."""


def _make_importable() -> None:
    """Lets `games.NAME` be imported from FOLDER, also where another package or module called `games` comes first.

    A plain module of that name is not imported: it may be the user's program, which has begun and would run twice.
    """
    name, package = FOLDER.name, sys.modules.get(FOLDER.name)
    if package is None:
        found = importlib.util.find_spec(name)
        is_package = found is not None and found.submodule_search_locations is not None
        own = importlib.machinery.ModuleSpec(name, None, is_package=True)
        package = importlib.import_module(name) if is_package else importlib.util.module_from_spec(own)
        sys.modules[name] = package
    path = list(getattr(package, "__path__", []))
    if str(FOLDER) not in path:
        package.__path__ = [*path, str(FOLDER)]


def _find_shipped() -> tuple[dict[str, ModuleType], dict[str, str]]:
    """The package of every game in FOLDER, by game; and what is wrong with the others, a sentence for each folder.

    No part of a game is imported for it.
    """
    packages: dict[str, ModuleType] = {}
    faults: dict[str, str] = {}
    _make_importable()
    for path in sorted(FOLDER.glob("*/__init__.py")):
        folder = path.parent.name
        try:
            with naming(f"the folder {path.parent}", GameError):
                package = importlib.import_module(f"{FOLDER.name}.{folder}")
            spec = getattr(package, "SPEC", None)
            if Path(str(package.__file__)).resolve() != path:
                faults[folder] = f"the folder {path.parent} is hidden by {package.__file__}: rename one of the two"
            elif not isinstance(spec, GameSpec) or not spec.games:
                example = 'SPEC = GameSpec(games={"my_game": ".game:MyGame"})'
                faults[folder] = f"{path} must declare its games, as {example}"
            elif twice := sorted(set(spec.games) & set(packages)):
                other = packages[twice[0]].__file__
                faults[folder] = f"{path} declares {quote(twice[0])}, which {other} declares, too: rename one"
            else:
                packages |= dict.fromkeys(spec.games, package)
        except GameError as error:
            faults[folder] = str(error)
    return packages, faults


PACKAGES, FAULTS = _find_shipped()
"""The package of every game by the game's name, and a sentence for every folder that declares none."""
NAMES = sorted(PACKAGES)
"""The games that come with the framework."""
