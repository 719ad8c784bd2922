"""The page on reliability names tests that exist, and every row of its tables has a figure for CI and a last run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.program import ROOT

PAGE = ROOT / "docs" / "reliability.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if re.match(r"\| [A-Z]\d+ \|", line)
]
SHOWN = [row for row in ROWS if row[3]]
"""Those that have a figure for CI; the others are still to be filled in."""


def test_the_catalogue_is_there():
    names = [row[0] for row in ROWS]
    assert len(set(names)) == len(names) >= 25 and len(SHOWN) >= 20
    assert all(len(row) == 6 for row in ROWS)


@pytest.mark.parametrize("row", SHOWN, ids=lambda row: row[0])
def test_a_row_names_tests_that_exist_and_has_its_figures(row: list[str]):
    files: set[Path] = set()
    tests: set[str] = set()
    for word in re.findall(r"`([^`]+)`", row[2]):
        if word.endswith(".py") or "/" in word:
            found = {path for path in (ROOT / "tests").rglob("*") if path.as_posix().endswith(f"/{word}")}
            assert found, word
            files |= {file for path in found for file in (path.rglob("*.py") if path.is_dir() else [path])}
        else:
            tests.add(word)
    there = {node.name for file in files for node in ast.parse(file.read_text()).body if hasattr(node, "name")}
    assert files and tests <= there, tests - there
    assert row[4] and row[5]
