"""Modules that users write: found by path or by name, and what they get wrong said in one sentence.

To import a module is to run it, so only names that the user has typed are imported, never names from a file.
"""

from __future__ import annotations

import ast
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
from alphazero.machine import without_warnings

LEVELS = 3
"""A file's imports are looked for in its own folder and in the folders above it, so many in all."""
INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
"""Folders of Python and of libraries installed in its environment."""
LIBRARIES = {"site-packages", "dist-packages"}
"""Folders of libraries everywhere: an environment may see those of the system or of the user, too."""
FRAMEWORK = str(Path(__file__).resolve().parents[1])
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


def file_instead(module_name: str) -> str:
    """The file in the current folder that a module's name may mean where Python does not look there; else empty."""
    *folders, last = module_name.split(".")
    file = Path(*folders, f"{last}.py")
    with contextlib.suppress(OSError):  # as of a name that is too long
        if all(part.isidentifier() for part in (*folders, last)) and file.is_file():
            return file.as_posix()
    return ""


def import_file(path: Path, kind: str, hint: str, error: type[InputError]) -> ModuleType:
    """The module in a file of that `kind`; raises `error`, with `hint` if there is no such file.

    What it imports is found beside it or in the folders above, where Python does not find it by itself.
    """
    exists = False
    with contextlib.suppress(OSError):  # as of a name that is too long
        exists = path.is_file()
    if not exists:
        raise error(f"there is no {kind} file {quote(str(path), 200)}: {hint}")
    in_package = (path.parent / "__init__.py").exists()
    with naming(f"the {kind} file {quote(str(path), 200)}", error):
        _check_helpers(path.resolve(), error)
        while True:
            try:
                return _import_from_package(path.resolve(), error) if in_package else _import_alone(path)
            except ModuleNotFoundError as missing:
                if not _add_folder_of(missing.name or "", path.resolve()):
                    raise
            except ImportError as failed:  # `from .logic import Board` in a folder without __init__.py
                if in_package or "no known parent package" not in str(failed):
                    raise
                in_package = True


def _import_alone(path: Path) -> ModuleType:
    path = path.resolve()
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
        return _import_despite_dot(path, dotted[0], error)
    name = ".".join(names)
    _add_to_path(root)
    if other := _another_package(root / names[0]):
        raise error(f"{quote(names[0])} is {other}; give the folder {root / names[0]} another name")
    if not _is_shipped(path):
        sys.modules.pop(name, None)  # it may have changed since
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    if Path(str(module.__file__)).resolve() != path:
        raise error(f"{quote(name)} is {module.__file__}; give the folder of {path} another name")
    return module


def _import_despite_dot(path: Path, part: str, error: type[InputError]) -> ModuleType:
    """A file that no name leads to, as the part of it has a dot; it may not import its neighbours by `from .`."""
    try:
        return _import_alone(path)
    except ImportError as failed:
        if "no known parent package" not in str(failed):
            raise
        raise error(f"{quote(part)} has a dot, so that `from .` finds nothing: give it a name without one") from failed


def _is_shipped(path: Path) -> bool:
    """The file is of a shipped game, whose classes others hold already."""
    places = getattr(sys.modules.get("games"), "__path__", ())
    return any(path.resolve().is_relative_to(Path(place).resolve()) for place in places)


def _another_package(folder: Path) -> str:
    """The file of another module that Python finds by the folder's name; empty if it finds the folder."""
    loaded, found = sys.modules.get(folder.name), None
    with contextlib.suppress(ValueError, ImportError):
        found = importlib.util.find_spec(folder.name)
    places = getattr(loaded, "__path__", None) if loaded else found and found.submodule_search_locations
    places = list(places or [])
    if any(Path(place).resolve() == folder for place in places) or not (loaded or found):
        return ""
    return getattr(loaded, "__file__", None) or (found and found.origin) or ", ".join(places) or "another module"


def _check_helpers(path: Path, error: type[InputError]) -> None:
    """Raises `error` if the file would get another file's helper in place of its own: Python keeps one of each name."""
    names = _imports_of(path)
    for name in names:  # grows by what its helpers import
        if name in OURS or not (own := _folder_around(path, name)):
            continue
        found = _file_of(name)
        folder = found and (found.parent.parent if found.name == "__init__.py" else found.parent)
        if folder != own and folder in _seen:
            raise error(
                f"{quote(name)} is {found}, not that in {own}: rename one of the two, or write `from . import {name}` "
                "in the file beside it"
            )
        names += [other for other in _imports_of(own / f"{name}.py") if other not in names]
    _seen.update(path.parents[:LEVELS])


def _imports_of(file: Path) -> list[str]:
    """The modules that a file imports by absolute names, without what follows a dot; none if it cannot be read."""
    names: list[str] = []
    with contextlib.suppress(OSError, SyntaxError, ValueError), without_warnings():  # its import will tell
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                names += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.append(node.module)
    return list(dict.fromkeys(name.partition(".")[0] for name in names))


def _file_of(name: str) -> Path | None:
    """The file, or the folder without `__init__.py`, of a module that is or would be imported."""
    with contextlib.suppress(ValueError, ImportError):
        if spec := importlib.util.find_spec(name):
            places = [spec.origin] if spec.has_location else spec.submodule_search_locations
            return next((Path(place).resolve() for place in places or [] if place), None)
    return None


def _folder_around(path: Path, name: str) -> Path | None:
    """The nearest folder around a file that holds a module of that name."""
    folders = path.parents[:LEVELS]
    return next((each for each in folders if (each / f"{name}.py").is_file() or (each / name).is_dir()), None)


def _add_folder_of(missing: str, path: Path) -> bool:
    """Puts the nearest folder around `path` that holds a module on Python's path; false if that helps nothing."""
    top = missing.partition(".")[0]
    folder = _folder_around(path, top) if top else None
    return folder is not None and _add_to_path(folder)


def _add_to_path(folder: Path) -> bool:
    """Last, so that it hides nothing; false if it was there."""
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
    places = [frame for frame in traceback.extract_tb(raised.__traceback__) if "importlib" not in frame.filename]
    places = [frame for frame in places if not frame.filename.startswith(FRAMEWORK)]
    own = [frame for frame in places if not _is_installed(frame.filename)] or places
    return f"{text:.500}" + (f" ({own[-1].filename}, line {own[-1].lineno})" if own else "")


def _is_installed(file: str) -> bool:
    return file.startswith(INSTALLED) or not LIBRARIES.isdisjoint(Path(file).parts)
