"""Modules that users write: found by path or by name, and what they get wrong said in one sentence.

To import a module is to run it: only for names that the user has typed, never for what a file says.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from alphazero.errors import InputError, Terminated


def can_be_found(module_name: str) -> bool:
    """There is a module of that name."""
    with contextlib.suppress(ValueError, ModuleNotFoundError):  # as of __main__, or where a parent is missing
        return importlib.util.find_spec(module_name) is not None
    return False


def import_file(path: Path, kind: str, hint: str, error: type[InputError]) -> ModuleType:
    """The module in a file of that `kind`; raises `error`, with `hint` if there is no such file."""
    exists = False
    with contextlib.suppress(OSError):  # as of a name that is too long
        exists = path.is_file()
    if not exists:
        raise error(f"there is no {kind} file {str(path)!r}: {hint}")
    what = f"the {kind} file {str(path)!r}"
    if (path.parent / "__init__.py").exists():
        return _import_from_package(path.resolve(), what, error)
    name = f"alphazero_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with naming(what, error):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _import_from_package(path: Path, what: str, error: type[InputError]) -> ModuleType:
    """A file of a package, which may import its neighbours."""
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").exists():
        root, names = root.parent, [root.name, *names]
    name = ".".join(names)
    if str(root) not in sys.path:
        sys.path.append(str(root))  # last, so that it hides nothing
    sys.modules.pop(name, None)  # it may have changed since
    importlib.invalidate_caches()
    with naming(what, error):
        module = importlib.import_module(name)
    if Path(str(module.__file__)).resolve() != path:
        raise error(f"{path} cannot be imported: {name!r} is {module.__file__}; give its folder another name")
    return module


@contextlib.contextmanager
def naming(what: str, error: type[InputError]) -> Iterator[None]:
    """Turns whatever somebody else's module raises into one sentence, an `error`, that says where."""
    try:
        yield
    except Terminated:
        raise
    except (Exception, SystemExit) as raised:
        frames = traceback.extract_tb(raised.__traceback__)
        ours = {frame.filename for frame in frames[:2]}  # this function and the one that asked
        places = [frame for frame in frames if frame.filename not in ours and "importlib" not in frame.filename]
        where = f" ({places[-1].filename}, line {places[-1].lineno})" if places else ""
        kind = "" if isinstance(raised, InputError) else f"{type(raised).__name__}: "  # ours are sentences
        reason = " ".join(f"{kind}{raised}".split())
        raise error(f"{what} cannot be used until this is mended: {reason}{where}") from raised
