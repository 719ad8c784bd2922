"""The games that come with the framework: a folder each, whose SPEC declares them."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from alphazero.catalogue.user_code import naming
from alphazero.errors import GameError, quote
from alphazero.game.spec import GameSpec

FOLDER = Path(__file__).resolve().parents[2] / "games"
"""The games that come with the framework, a package each; a new folder there is found without being installed."""


def _find_nets() -> Path:
    """The shipped nets: setup.py puts the clone's folder pretrained/ into the package where it is installed."""
    installed = Path(__file__).resolve().parents[1] / "pretrained"
    return installed if installed.is_dir() else FOLDER.parent / "pretrained"


NETS = _find_nets()
"""Holds a folder of nets for some games."""


def _make_importable() -> None:
    """Lets `games.NAME` be imported from FOLDER, also where another package or module called `games` comes first.

    A plain module of that name is not imported: it may be the user's program, which has begun and would run twice.
    """
    package = sys.modules.get(FOLDER.name)
    found = None if package else importlib.util.find_spec(FOLDER.name)
    if found is not None and found.submodule_search_locations is not None:
        package = importlib.import_module(FOLDER.name)
    if package is None:
        package = importlib.util.module_from_spec(importlib.machinery.ModuleSpec(FOLDER.name, None, is_package=True))
        sys.modules[FOLDER.name] = package
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
            packages |= _declared(package, path, packages)
        except GameError as error:
            faults[folder] = str(error)
    return packages, faults


def _declared(package: ModuleType, path: Path, others: Mapping[str, ModuleType]) -> dict[str, ModuleType]:
    """The games that the package at `path` declares; raises GameError if it declares none, or one of the others'."""
    if Path(str(package.__file__)).resolve() != path:
        raise GameError(f"the folder {path.parent} is hidden by {package.__file__}: rename one of the two")
    spec = getattr(package, "SPEC", None)
    if not isinstance(spec, GameSpec) or not spec.games:
        raise GameError(f'{path} must declare its games, as SPEC = GameSpec(games={{"my_game": ".game:MyGame"}})')
    if twice := sorted(set(spec.games) & set(others)):
        raise GameError(
            f"{path} declares {quote(twice[0])}, which {others[twice[0]].__file__} declares, too: rename one"
        )
    return dict.fromkeys(spec.games, package)


PACKAGES, FAULTS = _find_shipped()
"""The package of every game by the game's name, and a sentence for every folder that declares none."""
NAMES = sorted(PACKAGES)
"""The games that come with the framework."""
