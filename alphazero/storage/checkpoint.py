"""Weights and their card: `X.safetensors` beside `X.json`, the only format in which nets are kept.

The card is JSON: the caller's facts about the net, and the entries of `formats.Card` that have no default.

Every cut and every flipped bit is found, in either file. Both files may be renamed together. Give each generation a new
name: while a checkpoint is overwritten, its weights and its card do not match.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import safetensors.numpy

from alphazero.errors import CheckpointError, StorageError, quote
from alphazero.storage import files
from alphazero.storage.files import atomic_write, open_regular, sha256_of_open, to_json
from alphazero.storage.formats import MAX_HEADER_BYTES, MAX_WEIGHTS_BYTES, Card, NetCard
from alphazero.storage.schema import check

FORMAT = 1

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
    "BOOL": "?",
}  # fmt: skip
"""numpy's names of the types that a file may hold. BF16, which numpy does not have, is read as float32."""


def save_checkpoint(path: str | Path, arrays: Mapping[str, np.ndarray], card: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the weights, then the card; returns the card as written.

    `path` ends in `.safetensors`. Raises StorageError for NaN, infinity and types that are not allowed, on the card
    too, and writes nothing then.

    >>> import alphazero as az, numpy as np
    >>> card = az.save_checkpoint("mine.safetensors", {"weights": np.ones(3, np.float32)}, {"game": "tictactoe"})
    >>> sorted(card)
    ['card_sha256', 'format', 'game', 'weights']
    """
    weights_path, card_path = _pair(path)
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}  # safetensors takes no gaps
    for name, array in whole.items():
        if problem := _problem(array):
            raise CheckpointError(f"tensor {name!r} {problem}, so {weights_path} was not written")
    content = safetensors.numpy.save(whole)
    _header_length(content[:8], len(content), weights_path)
    to_json(card)  # what cannot be written is refused while an older checkpoint is whole
    weights = {"file": weights_path.name, "bytes": len(content), "sha256": atomic_write(weights_path, content)}
    return files.write_sealed_json(card_path, {**card, "format": FORMAT, "weights": weights}, "card_sha256")


def load_checkpoint(
    path: str | Path, most_bytes: int = MAX_WEIGHTS_BYTES, card: dict[str, Any] | None = None
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Weights and card of a checkpoint, both verified; `path` is either of the two files.

    bfloat16 tensors come as float32, which holds all their values. `most_bytes`: the size of the expected tensors; a
    larger file is refused unread. A `card` that has just been read is not read again. Raises CheckpointError.

    >>> import alphazero as az, numpy as np
    >>> card = az.save_checkpoint("ours.safetensors", {"weights": np.ones(3, np.float32)}, {"game": "tictactoe"})
    >>> arrays, card = az.load_checkpoint("ours.safetensors")
    >>> arrays["weights"], card["game"]
    (array([1., 1., 1.], dtype=float32), 'tictactoe')
    """
    with _with_remedy():
        card = read_card(path) if card is None else card
        content = _read_weights(weights_path := _pair(path)[0], card["weights"], most_bytes)
        try:
            arrays = {name: _array(view) for name, view in safetensors.deserialize(content)}
        except (safetensors.SafetensorError, KeyError, ValueError, TypeError, RuntimeError) as error:
            reason = quote(str(error), 120)  # it may quote names out of the file, line breaks and all
            raise StorageError(f"{weights_path} is not a valid checkpoint file: {reason}") from error
        for name, array in arrays.items():
            if problem := _problem(array):
                raise StorageError(f"{weights_path}: tensor {quote(name)} {problem}")
        return arrays, card


def checkpoint_bytes(path: str | Path) -> tuple[bytes, bytes]:
    """The content of both files of a checkpoint, verified, weights first: to be sent elsewhere and written there."""
    with _with_remedy():
        card = read_card(path)
        return _read_weights(_pair(path)[0], card["weights"], MAX_WEIGHTS_BYTES), to_json(card)


def read_card(path: str | Path, schema: type[Card] = Card) -> dict[str, Any]:
    """The card of a checkpoint, verified; the weights are not read."""
    _, card_path = _pair(path)
    with _with_remedy():
        card = files.read_sealed_json(card_path, "card_sha256")
        if card.get("format") != FORMAT:
            raise CheckpointError(f"{card_path} has format {quote(card.get('format'))}, not {FORMAT}; update alphazero")
        check(schema, card, f"the card of {path}" if schema is NetCard else str(card_path))
        return card


def read_net_card(path: str | Path) -> dict[str, Any]:
    """The card of a net that plays, verified: it names the `game`, and the settings of the `net`."""
    return read_card(path, NetCard)


def check_tensors(tensors: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], path: str | Path) -> None:
    """Refuses arrays whose names, shapes or types differ from the expected ones; the message names them."""
    problems = [f"{quote(name)} is missing" for name in expected if name not in tensors]
    problems += [f"{quote(name)} does not belong there" for name in tensors if name not in expected]
    for name, tensor in tensors.items():
        wanted = expected.get(name, tensor)
        if (tensor.shape, tensor.dtype) != (wanted.shape, wanted.dtype):
            there, not_there = (f"{array.dtype}{list(array.shape)}" for array in (tensor, wanted))
            problems.append(f"{quote(name)} is {there}, not {not_there}")
    if problems:
        more = f" and {len(problems) - 2} more" if len(problems) > 2 else ""
        raise CheckpointError(
            f"{path} is of another net: {', '.join(problems[:2])}{more}; choose the game and net size of its card, "
            "or train anew if an older version made it, whose observations were others"
        )


def _pair(path: str | Path) -> tuple[Path, Path]:
    """The weights' and the card's path, from either of them."""
    path = Path(path)
    if path.suffix not in (".safetensors", ".json"):
        raise CheckpointError(f"{path} is not the name of a checkpoint; name a .safetensors file")
    return path.with_suffix(".safetensors"), path.with_suffix(".json")


def bytes_of(tensors: Mapping[str, np.ndarray]) -> int:
    """The size of tensors: those of a net are the most that its checkpoint may have."""
    return sum(tensor.nbytes for tensor in tensors.values())


@contextlib.contextmanager
def _with_remedy() -> Iterator[None]:
    """Raises CheckpointError, which says what to do, in the place of a StorageError in here."""
    try:
        yield
    except CheckpointError:
        raise
    except StorageError as error:
        raise CheckpointError(f"{error}; use another checkpoint or fetch this one again") from error


class _Place(msgspec.Struct):
    """The place of a tensor in a file; entries that are no tensors have none."""

    data_offsets: tuple[int, int] = (0, 0)


def _read_weights(path: Path, weights: Mapping[str, Any], most_bytes: int) -> bytes:
    """The weights file, verified: whatever can be seen by its size and header is, before it is read."""
    with open_regular(path) as file:
        num_bytes = os.fstat(file.fileno()).st_size
        if num_bytes != weights["bytes"]:
            raise StorageError(f"{path} has {num_bytes:,} bytes, its card says {weights['bytes']:,}")
        length = _header_length(file.read(8), num_bytes, path)
        if num_bytes > most_bytes + MAX_HEADER_BYTES + 8:
            raise StorageError(
                f"{path} is of another net: it has {num_bytes:,} bytes, and the net that is expected has at most "
                f"{most_bytes:,}"
            )
        try:
            places = msgspec.json.decode(file.read(length), type=dict[str, _Place])
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise StorageError(f"{path} is not a valid checkpoint file: {quote(str(error), 120)}") from error
        announced, there = max((each.data_offsets[1] for each in places.values()), default=0), num_bytes - 8 - length
        if announced != there:
            raise StorageError(
                f"{path} is not a valid checkpoint file: its header announces {announced:,} bytes of tensors, and it "
                f"has {there:,}"
            )
        file.seek(0)
        if sha256_of_open(file) != weights["sha256"]:
            raise StorageError(f"{path} is damaged: its SHA-256 is not the one on its card")
        file.seek(0)
        return file.readall()


def _header_length(first_bytes: bytes, num_bytes: int, path: Path) -> int:
    """The length of the header, with which a safetensors file begins (8 bytes, little-endian)."""
    length = int.from_bytes(first_bytes, "little")
    if length > min(MAX_HEADER_BYTES, num_bytes - 8):
        raise StorageError(f"{path} announces an absurd header of {length:,} bytes")
    return length


def _array(view: Mapping[str, Any]) -> np.ndarray:
    """One tensor of a file, in memory of its own."""
    if view["dtype"] == "BF16":  # the upper halves of float32
        return (np.frombuffer(view["data"], "<u2").astype(np.uint32) << 16).view(np.float32).reshape(view["shape"])
    if view["dtype"] not in _DTYPES:
        raise ValueError(f"type {view['dtype']} is not allowed")
    return np.frombuffer(view["data"], _DTYPES[view["dtype"]]).reshape(view["shape"]).copy()


def _problem(array: np.ndarray) -> str:
    if array.dtype.newbyteorder("<") not in map(np.dtype, _DTYPES.values()):
        return f"has type {array.dtype}, which is not allowed"
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return "holds a number that is not finite"
    return ""
