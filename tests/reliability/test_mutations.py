"""The list of mutations fits the source: each text is there once, and each test exists."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutations import __main__ as mutations
from tests.mutations.table import MUTATIONS, Mutation
from tests.program import ROOT

SURVIVOR = Mutation(
    "a comment", "games/tictactoe/game.py", '"""Tic-tac-toe', '"""Noughts and crosses',
    "tests/games/test_tictactoe.py::test_perft",
)  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.protection)
def test_a_mutation_fits_the_source_and_names_a_test(mutation: Mutation):
    changed = mutations.mutated(mutation)
    assert changed != (ROOT / mutation.file).read_text(encoding="utf-8")
    ast.parse(changed)
    file, _, name = mutation.test.partition("::")
    functions = {node.name for node in ast.parse((ROOT / file).read_text()).body if isinstance(node, ast.FunctionDef)}
    assert name.partition("[")[0] in functions


def test_every_protection_is_listed_once():
    assert len({each.protection for each in MUTATIONS}) == len(MUTATIONS) >= 40


def test_a_text_that_is_gone_is_an_error(monkeypatch, capsys):
    monkeypatch.setattr(mutations, "MUTATIONS", [SURVIVOR._replace(old="no such text")])
    assert mutations.main([]) == 2
    assert "holds the text of 'a comment' 0 times, not once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((0, ""), "SURVIVED tests/games/test_tictactoe.py::test_perft"),
        ((1, "1 failed\nFAILED tests/a.py::test_b[c d] - AssertionError"), "caught by tests/a.py::test_b[c d]"),
        ((None, ""), "caught by tests/games/test_tictactoe.py::test_perft, which did not end"),
        ((4, "no such test\n"), "NOT TESTED: pytest ended with 4, saying 'no such test'"),
        ((-9, ""), "NOT TESTED: pytest ended with -9, saying 'nothing'"),
    ],
)
def test_what_pytest_says_becomes_a_verdict_and_the_file_is_as_before(answer, words: str, tmp_path, monkeypatch):
    monkeypatch.setattr(mutations, "run_tests", lambda folder, tests: answer)
    (tmp_path / "games" / "tictactoe").mkdir(parents=True)
    assert mutations.verdict(SURVIVOR, tmp_path) == words
    assert (tmp_path / SURVIVOR.file).read_bytes() == (ROOT / SURVIVOR.file).read_bytes()


@pytest.mark.slow
def test_a_mutation_that_nobody_notices_survives_and_one_that_breaks_is_caught(monkeypatch, capsys, tmp_path: Path):
    breaks = SURVIVOR._replace(protection="the rules", old="def is_terminal(state):", new="def is_terminal(state, x):")
    monkeypatch.setattr(mutations, "MUTATIONS", [SURVIVOR, breaks])
    assert mutations.main([]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "  1 of 2  a comment: SURVIVED tests/games/test_tictactoe.py::test_perft"
    assert shown[1].startswith("  2 of 2  the rules: caught by tests/games/test_tictactoe.py::test_perft")
    assert shown[2].startswith("1 of 2 mutations caught in ")
