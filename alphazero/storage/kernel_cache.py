"""Compiled code on disk: numba's own files, made safe.

numba writes its files without waiting for the disk, trusts whatever it finds in them, and raises at import where it
may write nowhere. `cached` compiles a function whose damaged files are compiled anew, and whose code is used without
being kept where it cannot be kept. The files hold pickles: a folder of them apart from the sources must be the user's
own.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import inspect
import io
import logging
import os
import pickle
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core import event
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    IPythonCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)

from alphazero import interruption
from alphazero.invocation import WINDOWS

with contextlib.suppress(ImportError):  # not on Windows, where no file has a group's rights
    import grp
    import pwd

logger = logging.getLogger(__name__)

DIGEST_BYTES = 32
LOCK = "alphazero.lock"
PATIENCE = 2.0
"""Seconds to wait for another program that keeps its code."""
PACKAGE = Path(__file__).resolve().parents[1]
"""The installed library."""


class _Listener(event.Listener):  # type: ignore[misc]
    """Ends compiling, which takes half a minute in all, if the process was asked to end."""

    def on_start(self, event: Any) -> None:
        """numba begins a pass over a function."""
        interruption.check()

    def on_end(self, event: Any) -> None:
        """numba has ended one."""


event.register("numba:run_pass", _Listener())


def cached(function: Callable[..., Any], **options: Any) -> Any:
    """`njit(function, **options)`, which C cannot call. Its code is kept on disk if there is a folder for it."""
    dispatcher = njit(no_cfunc_wrapper=True, **options)(function)
    if hasattr(dispatcher, "enable_caching"):  # else numba is switched off
        cache = _open_cache(function)
        if cache is not None:
            dispatcher._cache = cache
    return dispatcher


def is_on_disk(dispatcher: Any) -> bool:
    """Compiled code of the function was kept on disk, be it damaged or for arguments of other types."""
    cache = dispatcher._cache
    return isinstance(cache, Cache) and cache.is_kept


def _open_cache(function: Callable[..., Any]) -> Cache | None:
    with contextlib.suppress(RuntimeError):  # numba knows no folder that it may write to
        return Cache(function)
    if not os.path.exists(inspect.getfile(function)):
        return None  # made while the program runs: there is no file by which it could be found again
    _use_temporary_folder()
    with contextlib.suppress(RuntimeError):
        return Cache(function)
    _say_not_kept("there is no folder that it may write to")
    return None


class _Own:
    """A place for compiled code that is taken only if it is this user's alone: who else may write there can put code
    of theirs into it."""

    def ensure_cache_path(self) -> None:
        """Makes the folder; raises OSError if it is not ours or cannot be written to."""
        folder = Path(self.get_cache_path())  # type: ignore[attr-defined]
        folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o755)  # numba's own would be everybody's with a umask of 0
        super().ensure_cache_path()  # type: ignore[misc]
        if hasattr(os, "getuid"):
            _check_folders(folder)


def _check_folders(folder: Path) -> None:
    """Raises PermissionError unless the folder is this user's alone, and nobody else can put another in its place."""
    found, above = folder.lstat(), folder.parent.stat()
    if found.st_uid != os.getuid():
        raise PermissionError(f"{folder} is not yours")
    if above.st_uid not in (os.getuid(), 0):
        _say_not_used(folder.parent, "it belongs to another user, who could change it: choose a folder of yours")
        raise PermissionError(f"{folder.parent} is not yours")
    is_shared = not above.st_mode & stat.S_ISVTX and _others_can_write(above)  # with that bit, as /tmp, nobody renames
    if is_shared or _others_can_write(found):
        shared = folder.parent if is_shared else folder
        _say_not_used(shared, "others may write there: chmod go-w ends that")
        raise PermissionError(f"others may write to {shared}")


class _Named(_Own, UserProvidedCacheLocator):  # type: ignore[misc]
    """Below the folder that NUMBA_CACHE_DIR names."""


class _Home(_Own, UserWideCacheLocator):  # type: ignore[misc]
    """Below the user's cache folder. Without a home, numba would take a folder `~` in the current one."""

    def ensure_cache_path(self) -> None:
        if not os.path.isabs(self.get_cache_path()):
            raise FileNotFoundError("this user has no home")
        super().ensure_cache_path()


class _Notebook(_Own, IPythonCacheLocator):  # type: ignore[misc]
    """Below IPython's cache folder."""


class _Place(CompileResultCacheImpl):  # type: ignore[misc]
    """Finds the folder of a function; beside its source, whoever owns the folder could change that as well."""

    _locator_classes = (_Named, InTreeCacheLocator, _Home, _Notebook)


class Cache(FunctionCache):  # type: ignore[misc]
    """The files of one function."""

    _impl_class = _Place

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        locator = self._impl.locator
        own = isinstance(locator, _Own) and hasattr(os, "getuid")
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, locator.get_source_stamp(), own)

    @property
    def is_kept(self) -> bool:
        """There is compiled code on disk."""
        return os.path.exists(self._cache_file._index_path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except PermissionError as error:
            logger.warning("compiled code on disk is not used, and is compiled anew: %s", error.strerror)
        except Exception as error:  # damaged pickles raise anything
            logger.warning("compiled code on disk is damaged, and is compiled anew: %s", error)
        self._cache_file.remove()
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
            _say_not_kept(f"{self._cache_path}: {getattr(error, 'strerror', error)}")


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """The index of one function and its files of code. Each ends with the SHA-256 of what comes before.

    A file of code names the arguments and the version of the source that it is for, since an index of another program
    may name it.
    """

    def __init__(self, folder: str, name: str, stamp: Any, own: bool):
        """With `own`, only files are taken that are this user's and that nobody else may write to."""
        super().__init__(folder, f"{name}.sealed2", stamp)  # files called `sealed` do not say what they are for
        self._own = own

    def save(self, key: Any, data: Any) -> None:
        """Keeps the code for the arguments in `key`."""
        super().save(key, (self._source_stamp, key, data))

    def load(self, key: Any) -> Any:
        """The code for the arguments in `key`, or None; raises ValueError if the file is for something else."""
        found = super().load(key)
        if found is None:
            return None
        stamp, kept, data = found
        if (stamp, kept) != (self._source_stamp, key):
            raise ValueError(f"a file of {self._index_path} is for other arguments or another version of the source")
        return data

    def remove(self) -> None:
        """Removes them all, as far as that is allowed."""
        name = self._index_name.removesuffix("nbi")
        for path in Path(self._cache_path).iterdir():
            if path.name.startswith(name):
                with contextlib.suppress(OSError):
                    path.unlink()

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


def needs_compiling(compiled: Any) -> bool:
    """A function that `cached` has compiled is neither ready in this process nor kept on disk."""
    if not hasattr(compiled, "signatures") or compiled.signatures:  # numba is switched off, or it is ready
        return False
    return not is_on_disk(compiled)


@dataclass(frozen=True)
class CacheState:
    """The compiled code that is kept on disk."""

    folder: Path
    """The folder of a function's files; those of others are beside it or below it."""
    is_writable: bool
    others_can_write: bool
    """Another user may put files there, which are run as code."""
    num_files: int
    num_bytes: int
    damaged: int
    """Files whose checksum does not match."""


def examine_cache(compiled: Any) -> CacheState | None:
    """The state of the folders where a function that `cached` has compiled is kept; None if it is not kept.

    Reads all files of compiled code there, and writes none.
    """
    cache = getattr(compiled, "_cache", None)
    if not isinstance(cache, Cache):
        return None
    folder = Path(cache.cache_path)
    # numba keeps it beside each source file, or below one folder for all
    root = PACKAGE if folder.is_relative_to(PACKAGE) else folder.parent
    files = list(root.rglob("*.sealed*.nb[ic]"))
    damaged = num_bytes = 0
    for path in files:
        try:
            num_bytes += path.stat().st_size
            _read(str(path))
        except (OSError, ValueError):
            damaged += path.exists()  # another process may have compiled it anew
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    others_can_write = _others_can_write(nearest.stat())
    return CacheState(folder, os.access(nearest, os.W_OK), others_can_write, len(files), num_bytes, damaged)


def _others_can_write(folder: os.stat_result) -> bool:
    """Another user than the owner may write there. Many systems give each user a group of the same name, without other
    members, that may write to all files of that user. On Windows the mode says nothing about others."""
    if WINDOWS:
        return False
    if folder.st_mode & stat.S_IWOTH:
        return True
    if not folder.st_mode & stat.S_IWGRP:
        return False
    try:
        owner, group = pwd.getpwuid(folder.st_uid).pw_name, grp.getgrgid(folder.st_gid)
    except KeyError:  # a number without a name, as in containers; a user's own group has the user's number
        return folder.st_uid != folder.st_gid
    return group.gr_name != owner or not set(group.gr_mem) <= {owner}


def _read(path: str, own: bool = False) -> bytes:
    """The content of a file without its checksum; raises ValueError if a bit of it has changed.

    With `own`, raises PermissionError if another user could have written it. The folder was looked at when the program
    began, and may be another by now; the file that is open stays the same.
    """
    with open(path, "rb") as file:
        if own:
            found = os.fstat(file.fileno())
            if found.st_uid != os.getuid() or _others_can_write(found):
                raise PermissionError(errno.EPERM, f"another user may have written {path}", path)
        content = file.read()
    if hashlib.sha256(content[:-DIGEST_BYTES]).digest() != content[-DIGEST_BYTES:]:
        raise ValueError(f"the checksum of {path} does not match")
    return content[:-DIGEST_BYTES]


@functools.cache
def _use_temporary_folder() -> None:
    """Lets numba write to a folder in the system's temporary one, if it is this user's and nobody else's."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    with contextlib.suppress(OSError):  # also where nothing at all can be written to
        folder = Path(tempfile.gettempdir()) / f"alphazero-kernels-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        private = stat.S_ISDIR(found.st_mode) and (WINDOWS or not stat.S_IMODE(found.st_mode) & 0o022)
        if private and found.st_uid == user and os.access(folder, os.W_OK):
            config.CACHE_DIR = str(folder)
            logger.warning(
                "compiled code is kept in %s, since neither the installation nor a cache folder of yours can be "
                "written to; NUMBA_CACHE_DIR names another folder that is yours", folder,
            )  # fmt: skip


@functools.cache
def _say_not_used(folder: Path, reason: str) -> None:
    logger.warning("compiled code in %s is not used, since %s", folder, reason)


@functools.cache
def _say_not_kept(reason: str) -> None:
    logger.warning(
        "compiled code cannot be kept, so every start compiles anew (%s): set the environment variable "
        "NUMBA_CACHE_DIR to a folder",
        reason,
    )
