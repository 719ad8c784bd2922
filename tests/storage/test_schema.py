"""A value is held against its schema; the sentence about what does not fit names the file, the field and the rule."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated

import pytest
from msgspec import Meta, Struct

from alphazero.errors import CheckpointError, StorageError
from alphazero.storage.files import parse_json, to_json
from alphazero.storage.formats import check_metrics
from alphazero.storage.schema import Count, Figure, Text, Texts, check


class Inner(Struct, forbid_unknown_fields=True):
    size: Count
    names: Texts = ()


class Outer(Struct):
    inner: Inner
    by_name: Annotated[dict[str, Inner], Meta(description="sizes by name")]
    rows: Annotated[list[tuple[Text, Figure]], Meta(description="a list of names and numbers")]
    maybe: Annotated[int | None, Meta(description="a whole number or null")] = None


@dataclass(frozen=True)
class Plain:
    number: Count
    words: Texts


VALID = {"inner": {"size": 3}, "by_name": {"a": {"size": 1}}, "rows": [["x", 0.5], ["y", 1]]}


def test_what_fits_comes_as_the_type():
    found = check(Outer, VALID, "a.json")
    assert found.inner.size == 3 and found.by_name["a"].names == () and found.rows == [("x", 0.5), ("y", 1.0)]
    assert check(Plain, {"number": 1, "words": ["a"]}, "a.json") == Plain(1, ("a",))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"inner": {"size": -1}}, "a.json: inner.size must be a whole number of 0 or more, not -1"),
        ({"inner": {"size": True}}, "a.json: inner.size must be a whole number of 0 or more, not True"),
        ({"inner": {"size": 1.0}}, "a.json: inner.size must be a whole number of 0 or more, not 1.0"),
        ({"inner": {"size": 1 << 64}}, f"a.json: inner.size must be a whole number of 0 or more, not {1 << 64}"),
        ({"inner": {}}, "a.json: inner.size is missing, which must be a whole number of 0 or more"),
        ({"inner": {"size": 1, "sise": 2}}, "a.json: unknown name 'sise'; did you mean 'size'? (allowed: names, size)"),
        ({"inner": 3}, "a.json: inner must be names and values, size, names, not 3"),
        ({"inner": {"size": 1, "names": ["a", 2]}}, "a.json: inner.names[1] must be a list of texts, not 2"),
        ({"by_name": {"a": {"size": "x"}}}, "a.json: by_name.size must be sizes by name"),
        ({"rows": [["x", 0.5], ["y"]]}, "a.json: rows[1] must be a list of names and numbers, not ['y']"),
        ({"rows": [["x", float("nan")]]}, "a.json: rows[0][1] must be a list of names and numbers, not nan"),
        ({"maybe": "x"}, "a.json: maybe must be a whole number or null, not 'x'"),
    ],
)
def test_what_does_not_fit_is_said_in_one_sentence(change, sentence):
    with pytest.raises(CheckpointError) as caught:
        check(Outer, VALID | change, "a.json", CheckpointError, "; mend it")
    said = str(caught.value)
    assert said.endswith("; mend it") and said.count("\n") == 0
    if "by_name" in change:  # the key of the entry is not known there
        assert said.startswith("a.json: by_name.size must be")
    else:
        assert said == f"{sentence}; mend it"


def test_a_dataclass_takes_no_other_names():
    with pytest.raises(StorageError, match="unknown name 'numbre'; did you mean 'number'"):
        check(Plain, {"number": 1, "words": [], "numbre": 1}, "a.json")


@pytest.mark.parametrize(
    "value",
    ["x" * 10**6, ["x"] * 10**6, {str(i): i for i in range(10**5)}, [["x" * 10**6]], json.loads("[" * 900 + "]" * 900)],
)
def test_what_is_shown_is_short(value):
    with pytest.raises(StorageError) as caught:
        check(Plain, {"number": value, "words": []}, "a.json")
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    "text", ["NaN", "1e999", r'"\ud800"', r'{"\udc00": 1}', "[" * 10_000, "9" * 5000, "", "{", "\ufeff1", "[1,]"]
)
def test_json_is_strict(text):
    with pytest.raises(StorageError, match="a.json is not valid JSON"):
        parse_json(text.encode("utf-8"), "a.json")


def test_half_a_character_is_not_written():
    """A file whose name is no UTF-8 has such a name; it could not be read back."""
    with pytest.raises(StorageError, match="cannot be written as JSON"):
        to_json({"name": "runs/\udcff"})
    assert parse_json(to_json({"name": "\U0001f600 \\ud800"}), "a") == {"name": "\U0001f600 \\ud800"}


@pytest.mark.parametrize("figure", ["x", [1], {}, 1e16, float("inf")])
def test_a_line_of_metrics_has_numbers(figure):
    assert check_metrics({"generation": 1, "a": 0.5, "b": None, "c": True}, "m")["a"] == 0.5
    with pytest.raises(StorageError, match="'a': it must be a number"):
        check_metrics({"generation": 1, "a": figure}, "m")


def test_the_reader_does_not_slow_the_import_of_the_library():
    code = "import sys, alphazero; sys.exit('msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
