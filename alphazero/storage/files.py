"""Reads and writes files: a write is complete or leaves no trace, and a read checks everything.

Writing: a temporary file in the same folder, flush and fsync, read it back and compare, `os.replace`,
fsync the folder. A process killed at any moment leaves the old file or the new one, and at worst a
temporary file that `remove_stray_temporary_files` clears away.

Reading: only regular files of bounded size, without waiting. What is wrong raises a `StorageError` of one sentence.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import itertools
import json
import os
import re
import secrets
import shutil
import signal
import stat
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from alphazero.errors import InvalidSetting, StorageError, quote, shorten_path
from alphazero.invocation import WINDOWS
from alphazero.storage.systems import patiently, process_is_alive, sync, sync_folder


def check_output_file(option: str, path: Path) -> None:
    """Raises InvalidSetting if no file can be written at `path`."""
    with contextlib.suppress(OSError, ValueError):
        with contextlib.suppress(FileNotFoundError):
            os.lstat(_temporary(path))  # a name may be too long, or hold what no name can
        folder = path.absolute().parent
        if folder.is_dir() and not path.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return
    raise InvalidSetting(
        f"{option} takes a file in a folder that exists and that you can write to, not {quote(str(path), 200)}"
    )


def may_write(path: Path, overwrite: bool = False) -> bool:
    """Nothing lies at `path`; or a file, and it is to be replaced: `overwrite`, or the user at the terminal says so."""
    if not os.path.lexists(path):
        return True
    if overwrite or not path.is_file() or not sys.stdin.isatty():
        return overwrite and path.is_file()
    with contextlib.suppress(EOFError):  # Ctrl-D
        return input(f"{path} exists; replace it? [y/N] ").strip().lower() in ("y", "yes")
    return False


MAX_JSON_BYTES = 1 << 20
"""Bounds the memory for parsing, which is up to 25 times the file (for a list of empty dicts)."""
MAX_LINE_BYTES = 1 << 20
"""The longest line of a file that is read line by line."""
LINE_SEAL = "line_sha256"
"""The entry of a line that is the SHA-256 of the others."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_TEMPORARY_NAME = re.compile(r"\..+\.(\d{1,9})\.tmp")
_ADVICE = {
    errno.EFBIG: "raise the limit on file sizes (ulimit -f) or choose another folder",
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space or choose another folder"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make the folder writable or choose another one"),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "its folder is gone: bring it back or choose another one"),
}

_times_reached: Counter[str] = Counter()
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""Flags to open a file with; a pipe in its place does not block (where systems have such pipes)."""


def fault_point(name: str) -> None:
    """For tests only: with ALPHAZERO_FAULT=`name:N` the process kills itself the N-th time it comes here."""
    armed = os.environ.get("ALPHAZERO_FAULT")
    if armed:
        _times_reached[name] += 1
        if armed == f"{name}:{_times_reached[name]}":
            os.kill(os.getpid(), signal.SIGKILL)


def atomic_write(path: str | Path, content: bytes) -> str:
    """Writes `content` to `path`, whole or not at all; returns its SHA-256 (hex).

    A file that lies there gives its mode to the new one; a link is replaced, not followed.
    """
    path, half, view = Path(path), len(content) // 2, memoryview(content)
    temporary, sha256 = _temporary(path), hashlib.sha256(content).hexdigest()
    fault_point("write.before")
    with _writing(path, len(content)):
        try:
            with open(temporary, "xb", buffering=0) as file:  # "x": a link lying there is never followed
                _copy_mode(path, temporary)
                write_all(file, view[:half])
                fault_point("write.within")
                write_all(file, view[half:])
                sync(file.fileno())
            fault_point("write.after")
            with open(temporary, "rb") as written:
                if written.read() != content:
                    raise OSError(errno.EIO, "it reads back differently than it was written")
            fault_point("rename.before")
            patiently(os.replace, temporary, path)
            fault_point("rename.after")
            sync_folder(path.parent)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink()
    return sha256


def _copy_mode(old: Path, new: Path) -> None:
    """Lets those read and write `new` who may read and write the file `old`, if there is one, and the owner."""
    with contextlib.suppress(OSError):  # there is none, or the file system knows no modes
        mode = os.lstat(old).st_mode
        if stat.S_ISREG(mode):
            os.chmod(new, mode & 0o777 | 0o600)


def _temporary(path: Path) -> Path:
    """A name that no other write has, be it of another thread, or of another container where we have the same number,
    which comes last: `remove_stray_temporary_files` asks whether its process lives."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.{os.getpid()}.tmp")


def append(path: str | Path, content: bytes) -> None:
    """Adds whole lines to the end of a file; they are on disk when the call returns.

    A process that is killed meanwhile may leave half a line: call `drop_torn_line` before reading such a file.
    """
    path, half = Path(path), len(content) // 2
    fault_point("append.before")
    is_new = not os.path.lexists(path)
    with _writing(path, len(content)):
        with open_own(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
            size = os.fstat(file.fileno()).st_size
            try:
                write_all(file, content[:half])
                fault_point("append.within")
                write_all(file, content[half:])
                sync(file.fileno())
            except OSError:
                file.truncate(size)  # else the next line would follow upon half of this one
                raise
        if is_new:
            sync_folder(path.parent)
    fault_point("append.after")


def write_all(file: io.FileIO, content: bytes | memoryview) -> None:
    """Writes all of the content: where a disk is nearly full, one call writes a part of it and says so."""
    while content:
        content = content[file.write(content) :]


def drop_torn_line(path: str | Path) -> None:
    """Cuts off an unfinished last line, which a killed process may have left."""
    path = Path(path)
    with _writing(path, 0), contextlib.suppress(FileNotFoundError), open_own(path, os.O_RDWR) as file:
        size = file.seek(0, os.SEEK_END)
        begin = file.seek(max(0, size - MAX_LINE_BYTES - 1))
        whole = begin + file.readall().rfind(b"\n") + 1
        if whole == begin > 0:
            raise StorageError(
                f"{path} ends in a line of more than {MAX_LINE_BYTES:,} bytes; it was not written by alphazero"
            )
        if whole < size:
            file.truncate(whole)
            sync(file.fileno())


@contextlib.contextmanager
def open_own(path: Path, flags: int) -> Iterator[io.FileIO]:
    """Opens a file to write to where it lies, without waiting; refuses links, folders, pipes and devices."""
    sentence = f"{path} is not a regular file, so it is left alone: move it away"
    extra = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = patiently(os.open, path, flags | extra, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):  # a link; a pipe that nobody reads; a folder
            raise StorageError(sentence) from error
        raise
    with open(descriptor, "r+b" if flags & os.O_RDWR else "wb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise StorageError(sentence)
        yield file


@contextlib.contextmanager
def _writing(path: Path, num_bytes: int) -> Iterator[None]:
    """Raises StorageError in the place of an OSError in here."""
    try:
        yield
    except OSError as error:
        free = ""
        with contextlib.suppress(OSError):
            free = f", {shutil.disk_usage(path.parent).free:,} bytes free"
        advice = _ADVICE.get(error.errno or 0, "check the folder and the disk it is on")
        if WINDOWS and isinstance(error, PermissionError):
            advice = "end what else has it open (a virus scanner, OneDrive, an editor), or choose a folder of yours"
        raise StorageError(
            f"cannot write {path}: {error.strerror} ({num_bytes:,} bytes needed{free}); {advice}"
        ) from error


def remove_stray_temporary_files(folder: str | Path) -> list[str]:
    """Removes temporary files of dead processes; returns their names. Call it before writing to `folder`.

    Files with this process's own number count as left behind: in a container every run has the same one.
    """
    removed = []
    for name in sorted(os.listdir(folder)):
        match = _TEMPORARY_NAME.fullmatch(name)
        if match and (int(match[1]) == os.getpid() or not process_is_alive(int(match[1]))):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))
                removed.append(name)
    return removed


def file_in(folder: Path, name: object) -> Path:
    """The file of that name in `folder`; refuses names that lead elsewhere, such as `../x`."""
    if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name):
        raise StorageError(f"{quote(name)} in {folder} is not a plain file name, so it is left alone")
    return folder / name


@contextlib.contextmanager
def open_regular(path: str | Path) -> Iterator[io.FileIO]:
    """Opens a file for reading, without waiting; refuses folders, pipes, devices and links out of the folder."""
    path = Path(path)
    try:
        inside = Path(os.path.realpath(path)).is_relative_to(os.path.realpath(path.parent))
    except ValueError as error:  # a NUL, or a half of a character
        raise StorageError(f"{quote(str(path), 200)} is no name of a file: {error}") from error
    if not inside or os.path.isdir(path):  # Windows would refuse to open a folder, as a file that is open elsewhere
        raise StorageError(f"cannot read {shorten_path(path)}: it is a folder, or a link that leads out of its folder")
    try:  # a pipe opened in the ordinary way would wait for its writer, perhaps for ever
        with open(patiently(os.open, path, _READ), "rb", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise StorageError(f"cannot read {path}: it is no regular file")
            yield file
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StorageError(f"there is no file {shorten_path(path)}") from error
    except OSError as error:
        raise StorageError(f"cannot read {shorten_path(path)}: {error.strerror}") from error


def read_bytes(path: str | Path, max_bytes: int) -> bytes:
    """The content of a regular file of at most `max_bytes`."""
    with open_regular(path) as file:
        num_bytes = os.fstat(file.fileno()).st_size
        if num_bytes > max_bytes:
            raise StorageError(f"{path} is too large: {num_bytes:,} bytes, and at most {max_bytes:,} are allowed")
        return file.readall()


def read_lines(path: str | Path, whole: bool = True) -> Iterator[bytes]:
    """The lines of a regular file without their ends, one by one, each of at most `MAX_LINE_BYTES`.

    Without `whole`, a last line without its end is left out.
    """
    with open_regular(path) as file, io.BufferedReader(file) as reader:
        for number in itertools.count(1):
            line = reader.readline(MAX_LINE_BYTES + 1)
            if not line:
                return
            if len(line) > MAX_LINE_BYTES:
                raise StorageError(f"{path}, line {number} is too long: at most {MAX_LINE_BYTES:,} bytes are allowed")
            if whole or line.endswith(b"\n"):
                yield line.rstrip(b"\r\n")


def sha256_of(path: str | Path) -> str:
    """SHA-256 (hex) of a regular file."""
    with open_regular(path) as file:
        return sha256_of_open(file)


def sha256_of_open(file: io.FileIO) -> str:
    """SHA-256 (hex) of the rest of an open file."""
    return hashlib.file_digest(file, "sha256").hexdigest()


def to_json(value: Any, indent: int | None = 1) -> bytes:
    """A value as JSON: sorted keys, ASCII, a newline at the end, numbers of numpy as such, no NaN or infinity."""
    try:
        text = json.dumps(value, sort_keys=True, indent=indent, allow_nan=False, default=plain_number)
        if "\\ud" in text:
            msgspec.json.decode(text)  # a half of a character, as of a file's name in another encoding
    except (ValueError, TypeError, msgspec.DecodeError) as error:
        raise StorageError(f"cannot be written as JSON: {error}") from error
    return f"{text}\n".encode("ascii")


def plain_number(value: Any) -> Any:
    """A number of numpy's as Python's, for JSON: a game may tell cells or players by such. Raises TypeError."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{quote(value)} is no text, number, list or dict")


def parse_json(content: bytes, where: str) -> Any:
    """The value of a JSON text, whose numbers are finite; `where` names its origin in the message."""
    try:
        return msgspec.json.decode(content)
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise StorageError(f"{where} is not valid JSON: {error}; it is damaged, or not ours") from error


def write_json(path: str | Path, value: Any) -> None:
    """Writes `value` as JSON, atomically."""
    content = to_json(value)
    if len(content) > MAX_JSON_BYTES:
        raise StorageError(f"{path} would hold {len(content):,} bytes, and at most {MAX_JSON_BYTES:,} are allowed")
    atomic_write(path, content)


def read_json(path: str | Path) -> Any:
    """The value in a JSON file of at most `MAX_JSON_BYTES`."""
    return parse_json(read_bytes(path, MAX_JSON_BYTES), str(path))


def write_sealed_json(path: str | Path, value: Mapping[str, Any], seal: str) -> dict[str, Any]:
    """Writes `value` and, under the key `seal`, the SHA-256 of the rest; returns it as written."""
    written = _with_seal(value, seal)
    write_json(path, written)
    return written


def read_sealed_json(path: str | Path, seal: str) -> dict[str, Any]:
    """The value that `write_sealed_json` wrote; refuses the file if a single bit of it has changed."""
    return _parse_sealed(read_bytes(path, MAX_JSON_BYTES), str(path), seal)  # type: ignore[no-any-return]


def read_json_less_seal(path: str | Path, seal: str) -> Any:
    """The value in a JSON file less its seal, which is verified if there is one: older versions wrote none.

    Hold the value against a schema without other names: a seal of another name is damage.
    """
    return _without(_parse_sealed(read_bytes(path, MAX_JSON_BYTES), str(path), seal, needed=False), seal)


def sealed_line(value: Mapping[str, Any]) -> bytes:
    """A line of JSON for a file that grows line by line, with the SHA-256 of the rest under the key `LINE_SEAL`."""
    return to_json(_with_seal(value, LINE_SEAL, indent=None), indent=None)


def parse_line(line: bytes, where: str) -> Any:
    """As `read_json_less_seal`, of one line without its end; a line may end as Windows ends it."""
    content = line.removesuffix(b"\r") + b"\n"
    return _without(_parse_sealed(content, where, LINE_SEAL, indent=None, needed=False), LINE_SEAL)


def _with_seal(value: Mapping[str, Any], seal: str, indent: int | None = 1) -> dict[str, Any]:
    written = json.loads(to_json(_without(value, seal)))  # numbers as keys become text, and sort so
    return {**written, seal: hashlib.sha256(to_json(written, indent)).hexdigest()}


def _without(value: Any, seal: str) -> Any:
    return {key: item for key, item in value.items() if key != seal} if isinstance(value, Mapping) else value


def _parse_sealed(content: bytes, where: str, seal: str, indent: int | None = 1, needed: bool = True) -> Any:
    """The value that `content` holds; raises StorageError unless its seal is whole, or absent and not `needed`."""
    value = parse_json(content, where)
    if not needed and not (isinstance(value, dict) and seal in value):
        return value
    with contextlib.suppress(StorageError, RecursionError):
        # The bytes are compared as well, for JSON has many spellings of one value (1e5 and 1E5).
        whole = isinstance(value, dict) and content == to_json(value, indent)
        if whole and value.get(seal) == hashlib.sha256(to_json(_without(value, seal), indent)).hexdigest():
            return value
    raise StorageError(f"{where} is damaged or was changed by hand: its checksum {seal!r} does not match")
