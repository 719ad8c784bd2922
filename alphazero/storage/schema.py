"""The checked reader: a value from a file is held against the schema of its format, which is written once.

A schema is a type: a msgspec Struct or a dataclass whose fields have types and, by `Meta`, ranges and a description of
what is allowed. Nothing is converted but lists to tuples and whole numbers to floats. Whatever does not fit is refused
by one sentence that names the file, the field, what is there, and what is allowed:

    games.jsonl, line 3: number must be a whole number of 0 or more, not 'x'
"""

from __future__ import annotations

import functools
import re
from dataclasses import is_dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from alphazero.errors import InputError, StorageError, UnknownName, quote

Schema = TypeVar("Schema")

MOST_TEXT = 4096
"""Characters in a text of any file."""

Text = Annotated[str, Meta(max_length=MOST_TEXT, description=f"a text of at most {MOST_TEXT:,} characters")]
Texts = Annotated[tuple[Text, ...], Meta(max_length=1 << 20, description="a list of texts")]
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1, description="a whole number of 0 or more")]
Counts = Annotated[tuple[Count, ...], Meta(max_length=1 << 20, description="a list of whole numbers of 0 or more")]
Figure = Annotated[float, Meta(ge=-1e15, le=1e15, description="a number between -1e15 and 1e15")]
Seconds = Annotated[float, Meta(ge=0, le=1e15, description="a number of seconds")]
Share = Annotated[float, Meta(ge=0, le=1, description="a number between 0 and 1")]
Sha256 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z", description="a SHA-256 of 64 hexadecimal digits")]
Truth = Annotated[bool, Meta(description="true or false")]
_WORDS = {bool: "True or False", int: "a whole number", float: "a number", str: "a text", dict: "names and values"}
Names = Annotated[dict[str, Any], Meta(description="names and values")]


def check(
    schema: type[Schema], value: Any, where: str, error: type[InputError] = StorageError, advice: str = ""
) -> Schema:
    """The value as the schema's type; raises `error` about the first field that does not fit.

    `where` names the file, and the line if there are many. `advice` ends the sentence.
    """
    if is_dataclass(schema) and isinstance(value, dict) and (more := value.keys() - _hints(schema)):
        raise error(
            f"{where}: {UnknownName('name', min(more), _hints(schema))}{advice}"
        )  # msgspec ignores them in dataclasses
    try:
        return msgspec.convert(value, schema)
    except (msgspec.ValidationError, RecursionError, OverflowError) as problem:
        raise error(f"{where}: {_sentence(schema, value, str(problem))}{advice}") from problem


def _sentence(kind: Any, value: Any, problem: str) -> str:
    """The problem that msgspec found, in the words of the schema."""
    match = re.fullmatch(r"(.*?)(?: - at `(.*)`)?", problem, re.DOTALL)
    assert match is not None
    path, known = "", True
    for name, index in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", match[2] or ""):
        path += f".{name}" if name else f"[{index}]" if index != "..." else ""
        kind = _hints(kind).get(name, kind)
        known = known and index != "..."
        value = value[name or int(index)] if known else None
    path = path.removeprefix(".")
    if field := re.fullmatch(r"Object missing required field `(.*)`", match[1], re.DOTALL):
        return f"{path}.{field[1]} is missing, which must be {_allowed(_hints(kind)[field[1]])}".removeprefix(".")
    if field := re.fullmatch(r"Object contains unknown field `(.*)`", match[1], re.DOTALL):
        return str(UnknownName("name", field[1], _hints(kind)))
    return f"{path or 'it'} must be {_allowed(kind)}" + (f", not {quote(value)}" if known else "")


def _hints(schema: Any) -> dict[str, Any]:
    if isinstance(schema, type) and hasattr(schema, "__annotations__"):
        return _hints_of_class(schema)
    return next((found for part in get_args(schema) if (found := _hints(part))), {})


@functools.cache  # to find them takes far longer than to check a line of a file, and there are thousands of lines
def _hints_of_class(schema: type) -> dict[str, Any]:
    return get_type_hints(schema, include_extras=True)


def _allowed(kind: Any) -> str:
    return _description(kind) or ", ".join(("names and values", *_hints(kind)))


def _description(kind: Any) -> str:
    metas = getattr(kind, "__metadata__", ())
    own = next((meta.description for meta in metas if isinstance(meta, Meta) and meta.description), "")
    inner = next((found for part in get_args(kind) if (found := _description(part))), "")
    return own or ("a list, each item " * (get_origin(kind) is tuple) + inner if inner else _WORDS.get(kind, ""))
