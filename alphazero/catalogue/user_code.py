"""Modules that users write: found by path or by name, and what they get wrong said in one sentence.

To import a module is to run it, so only names that the user has typed are imported, never names from a file.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from alphazero.errors import InputError, Terminated, quote

LEVELS = 3
"""A file's imports are looked for in its own folder and in the folders above it, so many in all."""
INSTALLED = re.compile("|".join([re.escape(sysconfig.get_path("stdlib")), r".*[\\/](?:site|dist)-packages[\\/]"]))
"""Matches files of Python and of installed libraries, also those of the system and of the user."""
FRAMEWORK = str(Path(__file__).resolve().parents[1])
SHIPPED = Path(__file__).resolve().parents[2] / "games"
"""The games that come with the framework, a package each; a new folder there is found without being installed."""
OURS = ("alphazero", "games")
"""The packages that come with the framework, which every file may import."""

_seen: set[Path] = set()
"""The folders of all files that were imported, and the folders above them that were looked into."""
ALONE = "alphazero_user_"
"""Begins the names of modules that are imported by their path alone, which another process cannot find."""
INSTEAD = {
    **{name: name for name in ("int", "float", "complex", "object", "str")},
    "unicode": "str", "bool8": "np.bool_", "int0": "np.intp", "uint0": "np.uintp", "product": "np.prod",
    "cumproduct": "np.cumprod", "in1d": "np.isin", "trapz": "np.trapezoid", "asscalar": "array.item()",
    "tostring": "tobytes()", "itemset": "array[index] = value", "ptp": "np.ptp(array)",
}  # fmt: skip
"""Names that older code takes from numpy or its arrays, and what to write now; for others numpy says it."""


def can_be_found(module_name: str) -> bool:
    """There is a module of that name."""
    with contextlib.suppress(ValueError, ModuleNotFoundError):  # as of __main__, or where a parent is missing
        return importlib.util.find_spec(module_name) is not None
    return False


def import_file(path: Path, kind: str, hint: str, error: type[InputError]) -> ModuleType:
    """The module in a file of that `kind`; raises `error`, with `hint` if there is no such file.

    What it imports is found beside it or in the folders above, where Python does not find it by itself.
    """
    if not os.path.isfile(path):  # unlike Path.is_file, it raises nothing for a name that is too long
        raise error(f"there is no {kind} file {quote(str(path), 200)}: {hint}")
    with naming(f"the {kind} file {quote(str(path), 200)}", error):
        path = path.resolve()
        in_package = (path.parent / "__init__.py").exists() and "." not in path.parent.name
        _check_helpers(path, error)
        while True:
            try:
                return _import_from_package(path, error) if in_package else _import_alone(path)
            except ModuleNotFoundError as missing:
                top = (missing.name or "").partition(".")[0]
                if not top or not (folder := _folder_around(path, top)) or not _add_to_path(folder):
                    raise
            except ImportError as failed:  # `from .logic import Board` in a folder without __init__.py
                if in_package or "no known parent package" not in str(failed):
                    raise
                in_package = True


def _import_alone(path: Path) -> ModuleType:
    name = f"{ALONE}{path.stem}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}"  # there may be others of its stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import_from_package(path: Path, error: type[InputError]) -> ModuleType:
    """A file of a package, whose folders may lack `__init__.py`; it may import its neighbours."""
    root, names = path.parent.parent, [path.parent.name, path.stem]
    while (root / "__init__.py").exists():
        root, names = root.parent, [root.name, *names]
    if dotted := [part for part in names if "." in part]:
        raise error(f"{quote(dotted[0])} has a dot, so that `from .` finds nothing: give it a name without one")
    _add_to_path(root)
    importlib.invalidate_caches()
    places = _places_of(names[0])
    if root / names[0] not in places:
        hiding = places[0] if places else "another module"
        raise error(f"{quote(names[0])} is {hiding}; give the folder {root / names[0]} another name")
    name = ".".join(names)
    if not path.is_relative_to(SHIPPED):  # others hold the classes of shipped games already
        sys.modules.pop(name, None)  # it may have changed since
    return importlib.import_module(name)


def _check_helpers(path: Path, error: type[InputError]) -> None:
    """Raises `error` if the file would get another file's helper in place of its own: Python keeps one of each name."""
    names = _imports_of(path)
    for name in names:  # grows by what its helpers import
        if name in OURS or not (own := _folder_around(path, name)):
            continue
        places = _places_of(name)
        if places and places[0].parent != own and places[0].parent in _seen:
            cure = f"rename one of the two, or write `from . import {name}` in the file beside it"
            raise error(f"{quote(name)} is {places[0]}, not that in {own}: {cure}")
        names += [other for other in _imports_of(own / f"{name}.py") if other not in names]
    _seen.update(path.parents[:LEVELS])


def _imports_of(file: Path) -> list[str]:
    """The modules that the lines of a file import by absolute names, without what follows a dot."""
    with contextlib.suppress(OSError):  # its import will tell
        text = file.read_text(encoding="utf-8", errors="replace")
        return list(dict.fromkeys(re.findall(r"^[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)", text, re.MULTILINE)))
    return []


def _places_of(name: str) -> list[Path]:
    """The file of a module that is or would be imported, or the folders of a package; none if Python finds nothing."""
    spec, found = None, getattr(sys.modules.get(name), "__path__", None)
    with contextlib.suppress(ValueError, ImportError):
        spec = importlib.util.find_spec(name)
    if spec is not None and not found:
        found = spec.submodule_search_locations or [spec.origin]
    return [Path(place).resolve() for place in found or [] if place]


def _folder_around(path: Path, name: str) -> Path | None:
    """The nearest folder around a file that holds a module of that name."""
    folders = path.parents[:LEVELS]
    return next((each for each in folders if (each / f"{name}.py").is_file() or (each / name).is_dir()), None)


def _add_to_path(folder: Path) -> bool:
    """Puts the folder on Python's path, last, so that it hides nothing; false if it was there."""
    if str(folder) in sys.path:
        return False
    sys.path.append(str(folder))
    importlib.invalidate_caches()
    return True


@contextlib.contextmanager
def naming(what: str, error: type[InputError]) -> Iterator[None]:
    """Turns any exception of a user's module into an `error`: one sentence with the file and the line."""
    try:
        yield
    except Terminated:
        raise
    except (Exception, SystemExit) as raised:
        raise error(f"{what} cannot be used until this error is fixed: {describe(raised)}") from raised


def describe(raised: BaseException) -> str:
    """An exception in one line, with the user's own line that led to it, and what to write instead of an old name."""
    kind = "" if isinstance(raised, InputError) else f"{type(raised).__name__}: "  # ours are sentences
    text = " ".join(f"{kind}{raised}".split())
    old = re.search(r"(?:module 'numpy'|'numpy\.\w+' object) has no attribute '(\w+)'", text)
    if old and old[1] in INSTEAD:
        text = f"numpy has no `{old[1]}` any more: write {INSTEAD[old[1]]}"
    frames = traceback.extract_tb(raised.__traceback__)
    places = [each for each in frames if "importlib" not in each.filename and not each.filename.startswith(FRAMEWORK)]
    own = [frame for frame in places if not INSTALLED.match(frame.filename)] or places
    return f"{text:.500}" + (f" ({own[-1].filename}, line {own[-1].lineno})" if own else "")
