"""Compiled code on disk: numba's own files, made safe.

numba writes its files without waiting for the disk, trusts whatever it finds in them, and raises at import where it
may write nowhere. `cached` compiles a function whose damaged files are compiled anew, and whose code is used without
being kept where it cannot be kept. The files hold pickles: apart from the sources, each must be the user's own.

`READY` may hold code that was compiled before, for a whole class of processors: `alphazero compile` makes it, a wheel
brings it along. It lies beside the sources, so it is theirs who could change these as well.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import importlib
import io
import logging
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from llvmlite import binding
from numba import config, njit
from numba.core import caching, event
from numba.np import linalg

from alphazero import interruption
from alphazero.errors import warn_once
from alphazero.invocation import WINDOWS

logger = logging.getLogger(__name__)

READY = Path(__file__).parents[1] / "compiled"
LEVELS = {
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl avx2 bmi2 fma",
    "x86-64-v3": "avx2 bmi bmi2 f16c fma lzcnt movbe",
    "generic": "",
}
"""Processors that code is compiled for ahead, as LLVM calls them, and what one must have to be one of them."""

NOT_USED = "compiled code on disk is not used, and is compiled anew: %s"
DIGEST_BYTES = 32
LOCK = "alphazero.lock"
PATIENCE = 2.0
"""Seconds to wait for another program that keeps its code."""


class _Listener(event.Listener):  # type: ignore[misc]
    """Ends compiling, which takes some 20 seconds in all, if the process was asked to end."""

    def on_start(self, event: Any) -> None:
        interruption.check()

    def on_end(self, event: Any) -> None:
        """numba has ended one."""


event.register("numba:run_pass", _Listener())


# numba asks whether scipy's linear algebra is there by importing it, which takes a tenth of a start; functions that
# multiply matrices import it when they are compiled
with contextlib.suppress(AttributeError):  # another version of numba may not ask
    _ensure_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    importlib.import_module("numba.np.arraymath")  # asks
    linalg.ensure_blas = _ensure_blas


def cached(function: Callable[..., Any], **options: Any) -> Any:
    """`njit(function, **options)`, which C cannot call. Its code is kept on disk if there is a folder for it."""
    dispatcher = njit(no_cfunc_wrapper=True, **options)(function)
    if hasattr(dispatcher, "enable_caching"):  # else numba is switched off
        with contextlib.suppress(RuntimeError):  # of a function that was made while the program runs
            dispatcher._cache = Cache(function)
    return dispatcher


def levels_here() -> list[str]:
    """The levels that this processor has, the highest first."""
    try:
        has = binding.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know this processor
        has = {}
    return [level for level, needs in LEVELS.items() if all(has.get(need) for need in needs.split())]


@functools.cache
def ready_level() -> str | None:
    """The highest level of this processor for which there is code in READY."""
    if config.CPU_NAME is not None:  # numba was told what to compile for
        return None
    return next((level for level in levels_here() if (READY / level).is_dir()), None)


_made_ready: str | None = None


def make_ready(level: str) -> None:
    """From now on all that is compiled is kept in READY, for that level, for which NUMBA_CPU_NAME must be set.

    To be called before the modules with kernels are imported.
    """
    global _made_ready
    (READY / level).mkdir(parents=True, exist_ok=True)
    _made_ready = level


def needs_compiling(compiled: Any) -> bool:
    """A function that `cached` has compiled is neither ready in this process nor kept on disk, be it damaged or for
    arguments of other types."""
    if getattr(compiled, "signatures", True):  # it is ready, or numba is switched off
        return False
    return not (isinstance(compiled._cache, Cache) and compiled._cache.is_kept)


class _Home(caching.UserWideCacheLocator):  # type: ignore[misc]
    """Below the user's cache folder. Without a home, numba would make a folder `~` in the current one."""

    def ensure_cache_path(self) -> None:
        if not os.path.isabs(self.get_cache_path()):
            raise FileNotFoundError("this user has no home")
        super().ensure_cache_path()


class _Nowhere(caching.InTreeCacheLocator):  # type: ignore[misc]
    """For functions of files where no folder can be written to."""

    def __init__(self, function: Any, file: str):
        super().__init__(function, file)
        self._is_known = False

    def ensure_cache_path(self) -> None:
        if self._is_known or not os.path.exists(self._py_file):
            raise FileNotFoundError(errno.ENOENT, "there is no folder that it may write to")
        self._is_known = True


class _Place(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Finds the folder of a function."""

    _locator_classes = (
        caching.UserProvidedCacheLocator, caching.InTreeCacheLocator, _Home, caching.IPythonCacheLocator, _Nowhere,
    )  # fmt: skip


class Cache(caching.FunctionCache):  # type: ignore[misc]
    """The files of one function."""

    _impl_class = _Place

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        locator = self._impl.locator
        self._name, self._stamp = self._impl.filename_base, locator.get_source_stamp()
        # beside its source, whoever owns the folder could change that as well
        own = hasattr(os, "getuid") and not isinstance(locator, caching.InTreeCacheLocator)
        if _made_ready is not None:
            self._cache_path, own = str(READY / _made_ready), False
        self._cache_file = _Files(self._cache_path, self._name, self._stamp, own)

    @property
    def _ready(self) -> _Files | None:
        """The code that was compiled ahead for this processor."""
        level = ready_level()
        return _Files(str(READY / level), self._name, self._stamp) if level else None

    @property
    def is_kept(self) -> bool:
        """There is compiled code on disk."""
        return any(files and os.path.exists(files._index_path) for files in (self._ready, self._cache_file))

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if ready := self._ready:
            signature, (triple, *_), source = self._index_key(sig, target_context.codegen())
            try:
                if data := ready.load((signature, (triple, ready_level(), ""), source)):
                    return self._impl.rebuild(target_context, data)
            except Exception as error:  # damaged pickles raise anything
                logger.warning(NOT_USED, error)
        return super()._load_overload(sig, target_context)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            logger.warning(
                NOT_USED, error.strerror if isinstance(error, PermissionError) else f"it is damaged: {error}"
            )
        with contextlib.suppress(OSError):
            os.unlink(self._cache_file._index_path)  # code that it names is written over
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        from filelock import FileLock, Timeout  # costs 40 ms, which only a program that compiles should pay

        try:
            # numba writes the index and then the code: of two programs at once, each could write one of the two
            with FileLock(Path(self._cache_path) / LOCK, timeout=PATIENCE):
                super().save_overload(sig, data)
        except Timeout:
            return  # the next start compiles it again
        except (OSError, NotImplementedError) as error:  # the second where the file system has no locks
            self.disable()
            warn_once(
                f"compiled code cannot be kept, so every start compiles anew ({self._cache_path}: "
                f"{getattr(error, 'strerror', error)}): set the environment variable NUMBA_CACHE_DIR to a folder"
            )


class _Files(caching.IndexDataCacheFile):  # type: ignore[misc]
    """The index of one function and its files of code. Each ends with the SHA-256 of what comes before.

    A file of code names the arguments and the version of the source that it is for, since an index of another program
    may name it.
    """

    def __init__(self, folder: str, name: str, stamp: Any, own: bool = False):
        """With `own`, only files are taken that are this user's and that nobody else may write to."""
        super().__init__(folder, f"{name}.sealed2", stamp)  # files called `sealed` do not say what they are for
        self._own = own

    def save(self, key: Any, data: Any) -> None:
        """Keeps the code for the arguments in `key`."""
        super().save(key, (self._source_stamp, key, data))

    def load(self, key: Any) -> Any:
        """The code for the arguments in `key`, or None; raises ValueError if the file is for something else."""
        found = super().load(key)
        if found is not None and found[:2] != (self._source_stamp, key):
            raise ValueError(f"a file of {self._index_path} is for other arguments or another version of the source")
        return found and found[2]

    def _load_index(self) -> Any:
        try:
            content = io.BytesIO(_read(self._index_path, self._own))
        except FileNotFoundError:
            return {}
        if pickle.load(content) != self._version:
            return {}
        stamp, overloads = pickle.load(content)
        return overloads if stamp == self._source_stamp else {}

    def _load_data(self, name: str) -> Any:
        return pickle.loads(_read(self._data_path(name), self._own))

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[Any]:
        content = io.BytesIO()
        yield content
        with super()._open_for_write(filepath) as file:
            file.write(content.getvalue())
            file.write(hashlib.sha256(content.getvalue()).digest())
            file.flush()
            if not WINDOWS:  # with a umask of 0 everybody could write to it
                os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode & 0o755)
            os.fsync(file.fileno())


def folder_of(compiled: Any) -> Path | None:
    """The folder where the code of a function that `cached` has compiled is kept; None if it is not kept."""
    cache = getattr(compiled, "_cache", None)
    return Path(cache.cache_path) if isinstance(cache, Cache) else None


def _read(path: str, own: bool = False) -> bytes:
    """The content of a file without its checksum; raises ValueError if a bit of it has changed.

    With `own`, raises PermissionError if another user could have written it.
    """
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        if own and (found.st_uid != os.getuid() or found.st_mode & 0o022):
            raise PermissionError(errno.EPERM, f"another user may have written {path}", path)
        content = file.read()
    if hashlib.sha256(content[:-DIGEST_BYTES]).digest() != content[-DIGEST_BYTES:]:
        raise ValueError(f"the checksum of {path} does not match")
    return content[:-DIGEST_BYTES]
