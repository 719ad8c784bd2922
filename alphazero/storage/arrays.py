"""Numeric arrays as compressed npz: written so that equal arrays give equal bytes, and read against a description.

A reader says of each array which type, shape and range it must have. Sizes are checked before anything is unpacked, in
the archive's directory and in each array's header, and values while it is unpacked, so that a small file which would
fill the memory is refused before it does.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from alphazero.errors import StorageError, quote
from alphazero.storage.files import atomic_write, open_regular

MAX_BYTES = 1 << 34
"""A larger file of arrays is taken for damaged, and not written."""
HEADER_BYTES = 128
"""Bytes of each array beside its values."""
PIECE_BYTES = 1 << 20
"""The most bytes that are unpacked at once, or read at once."""

_NPY_MAGIC = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(r"\{'descr': '([<>|][biuf]\d{1,2})', 'fortran_order': False, 'shape': \(([\d, ]*)\), \} *\n")


@dataclass(frozen=True)
class Array:
    """The description of an array.

    A size given as a word stands for any number, but for the same in all arrays of the file.
    """

    dtype: type
    shape: tuple[int | str, ...]
    low: float = -math.inf
    high: float = math.inf
    """The least and the largest value; without them, nan is allowed, too."""

    def zeros(self) -> np.ndarray:
        """An array of zeros, where all sizes are numbers."""
        return np.zeros([int(size) for size in self.shape], self.dtype)

    def problem(self, dtype: np.dtype, shape: tuple[int, ...], sizes: dict[str, int], most: Mapping[Any, int]) -> str:
        """The reason why an array of that type and shape does not fit, or ""; adds to the `sizes` that are known."""
        wanted = tuple(sizes.get(size, size) if isinstance(size, str) else size for size in self.shape)
        fits = len(wanted) == len(shape) and dtype == np.dtype(self.dtype).newbyteorder("<")
        for size, there in zip(wanted, shape, strict=False):
            if isinstance(size, str):
                fits &= there <= most.get(size, MAX_BYTES)
                sizes[size] = there
            else:
                fits &= size == there
        if fits:
            return ""
        text = ", ".join(f"{size} <= {most[size]:,}" if size in most else f"{size}" for size in wanted)
        return f"is {dtype}[{', '.join(map(str, shape))}], not {np.dtype(self.dtype)}[{text}]"


def write_npz(path: str | Path, arrays: Mapping[str, np.ndarray], remedy: str = "") -> str:
    """Writes numeric arrays as a compressed npz; equal arrays give equal bytes. Returns the SHA-256 (hex).

    Raises StorageError, which ends with the `remedy`, where `read_npz` would refuse the file for its size.
    """
    unpacked = sum(HEADER_BYTES + np.asarray(array).nbytes for array in arrays.values())
    if unpacked > MAX_BYTES:
        raise StorageError(
            f"{path} would hold {unpacked:,} bytes, and could not be read again: {MAX_BYTES:,} are allowed{remedy}"
        )
    return atomic_write(path, pack_npz(arrays))


def pack_npz(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The content of the file that `write_npz` writes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in sorted(arrays):
            array = np.asarray(arrays[name], order="C")
            if array.dtype.kind not in "biuf":
                raise TypeError(f"array {name!r} must hold numbers or bools, not {array.dtype}")
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:  # dated 1980 by zipfile itself
                np.lib.format.write_array(member, array, allow_pickle=False)
    return buffer.getvalue()


def read_npz(
    path: str | Path,
    expected: Mapping[str, Array],
    most: Mapping[str, int] | None = None,
    max_bytes: int = MAX_BYTES,
    content: bytes | None = None,
) -> dict[str, np.ndarray]:
    """The arrays that `write_npz` wrote, at most `max_bytes` when unpacked; raises StorageError.

    `expected` describes each array by its name. A name that ends in `#` stands for the same name with each of the
    numbers 0, 1, ..., as many as there are. `most` limits sizes that are given as words. With the `content` that
    `pack_npz` gave, `path` only names it in messages.
    """
    source = open_regular(path) if content is None else cast(contextlib.closing[io.RawIOBase], io.BytesIO(content))
    try:
        with source as file, _BoundedReader(file) as reader, zipfile.ZipFile(reader) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            unpacked = sum(member.file_size for member in archive.infolist())
            if unpacked > max_bytes:
                raise StorageError(
                    f"{path} is too large: {unpacked:,} bytes unpacked, and at most {max_bytes:,} are allowed"
                )
            if len(members) != len(archive.infolist()):
                raise ValueError("a name occurs twice")
            named = _match_names(expected, members)
            headers = {name: _read_header(archive, member) for name, member in members.items()}
            sizes: dict[str, int] = {}
            for name, (dtype, shape, _) in headers.items():
                if problem := named[name].problem(dtype, shape, sizes, most or {}):
                    raise ValueError(f"array {name} {problem}")
            return {name: _read_member(archive, members[name], *headers[name], named[name]) for name in members}
    except (
        EOFError, ValueError, TypeError, KeyError, RuntimeError, OverflowError,
        struct.error, zipfile.BadZipFile, zlib.error, MemoryError,
    ) as error:  # fmt: skip
        raise StorageError(f"{path} is damaged, or was not written by alphazero: {error!s:.300}") from error


def _match_names(expected: Mapping[str, Array], names: Mapping[str, object]) -> dict[str, Array]:
    """The description of each array that is there; raises ValueError unless these are the arrays expected."""
    count = len(names) // len(expected)
    wanted = {
        f"{name[:-1]}{i}" if name.endswith("#") else name: array
        for name, array in expected.items()
        for i in range(max(1, count) if name.endswith("#") else 1)
    }
    if wanted.keys() != names.keys():
        there = ", ".join(sorted(map(ascii, names)))
        raise ValueError(f"it holds the arrays {there:.160}, not {', '.join(sorted(wanted)):.160}")
    return wanted


def _read_header(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[np.dtype, tuple[int, ...], int]:
    """Type and shape of an array, and the bytes before its values.

    The header must be the one that `write_npz` writes, and agree with the member's size.
    """
    if member.compress_type != zipfile.ZIP_DEFLATED or not member.filename.endswith(".npy"):
        raise ValueError(f"{quote(member.filename)} is no compressed array")
    with archive.open(member) as file:
        magic, length = file.read(len(_NPY_MAGIC)), int.from_bytes(file.read(2), "little")
        match = _NPY_HEADER.fullmatch(file.read(length).decode("ascii"))
    if magic != _NPY_MAGIC or not match:
        raise ValueError(f"{quote(member.filename)} has no header of ours")
    dtype, shape = np.dtype(match[1]), tuple(int(size) for size in match[2].split(",") if size.strip())
    begin = len(_NPY_MAGIC) + 2 + length
    num_bytes = begin + math.prod(shape) * dtype.itemsize
    if repr(shape) != f"({match[2]})" or num_bytes != member.file_size:
        raise ValueError(f"{quote(member.filename)} has {member.file_size:,} bytes, its header says {num_bytes:,}")
    return dtype, shape, begin


def _read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, dtype: np.dtype, shape: tuple[int, ...], begin: int, array: Array
) -> np.ndarray:
    """The values of one array, checked piece by piece."""
    values = np.empty(shape, dtype)
    flat, piece = values.reshape(-1), PIECE_BYTES // dtype.itemsize
    with archive.open(member) as file:
        file.read(begin)
        for start in range(0, len(flat), piece):
            part = flat[start : start + piece]
            content = file.read(part.nbytes)
            part[:] = np.frombuffer(content, dtype, len(part))  # fails where there are fewer
            is_free = (array.low, array.high) == (-math.inf, math.inf)
            if not is_free and len(wrong := part[~((array.low <= part) & (part <= array.high))]):  # nan is wrong
                limits = f"{array.low:g} and {array.high:g}"
                raise ValueError(f"{quote(member.filename)} holds {wrong[0]}, and its values lie between {limits}")
        if file.read(1):  # at the end, the checksum is compared
            raise ValueError(f"{quote(member.filename)} is longer than its header says")
    return values


class _BoundedReader(io.BufferedReader):
    """A reader that refuses large reads: zipfile reads the whole directory of an archive before it can be checked."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            size = PIECE_BYTES
        if size > PIECE_BYTES:
            raise zipfile.BadZipFile("its directory is absurdly large")
        return super().read(size)
