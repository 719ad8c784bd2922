"""The list of mutations fits the source: each place is there once, and each test exists."""

from __future__ import annotations

import ast

import pytest

from tests.mutations import __main__ as mutations
from tests.mutations.edits import Edit, always, function_in, instead, never, reworded, without
from tests.mutations.table import MUTATIONS, Mutation
from tests.program import ROOT

SURVIVOR = Mutation(
    "games/tictactoe/game.py", "", reworded("Tic-tac-toe", "Noughts and crosses"),
    "tests/games/test_tictactoe.py::test_perft",
)  # fmt: skip

CODE = """
class Box:
    def put(self, thing):
        if thing is None or self.full:
            raise ValueError(f"nothing: {thing}")
        try:
            self.write(thing, sync=True)
        except OSError as error:
            return [name for name in error.args if name]
        self.count = self.count + 1
"""


def edited(place: str, edit: Edit) -> str:
    tree = ast.parse(CODE)
    edit(function_in(tree, place))
    return ast.unparse(ast.fix_missing_locations(tree))


@pytest.mark.parametrize(
    ("edit", "old", "new"),
    [
        (never("full"), "thing is None or self.full", "False"),
        (always("full"), "thing is None or self.full", "True"),
        (without("write"), "self.write(thing, sync=True)", "pass"),
        (without("count"), "self.count = self.count + 1", "pass"),
        (instead("thing is None or ...", "self.full"), "thing is None or self.full", "self.full"),
        (instead("self.write(...)", "raise"), "self.write(thing, sync=True)", "raise"),
        (instead("if ...: ...", "pass"),
         'if thing is None or self.full:\n            raise ValueError(f"nothing: {thing}")', "pass"),
        (instead("except OSError as error: ...", "except OSError: raise"),
         "except OSError as error:\n            return [name for name in error.args if name]",
         "except OSError:\n            raise"),
        (reworded("thing:", "other:"), "nothing: {", "noother: {"),
    ],
)  # fmt: skip
def test_an_edit_changes_its_one_place_and_nothing_else(edit: Edit, old: str, new: str):
    assert CODE.count(old) == 1
    assert edited("Box.put", edit) == ast.unparse(ast.parse(CODE.replace(old, new)))


@pytest.mark.parametrize("edit", [never("absent"), without("absent"), instead("absent(...)", "0"), without("self")])
def test_an_edit_that_fits_no_place_or_several_is_an_error(edit: Edit):
    with pytest.raises(ValueError, match="fits [02] places, not one"):
        edited("Box.put", edit)
    with pytest.raises(ValueError, match="'Box.take' fits 0 places"):
        edited("Box.take", edit)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_fits_the_source_and_names_a_test(mutation: Mutation):
    source = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert mutations.mutated(mutation) != ast.unparse(ast.parse(source))
    file, _, name = mutation.test.partition("::")
    functions = {node.name for node in ast.parse((ROOT / file).read_text()).body if isinstance(node, ast.FunctionDef)}
    assert name.partition("[")[0] in functions


def test_a_place_that_is_gone_is_an_error(monkeypatch, capsys):
    monkeypatch.setattr(mutations, "MUTATIONS", [SURVIVOR._replace(place="step", edit=never("no_such_name"))])
    assert mutations.main([]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: games/tictactoe/game.py step: test_perft does not fit: 'no_such_name' fits 0 places")


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
