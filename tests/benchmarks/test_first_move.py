"""The benchmark of first moves, with two programs that take no time."""

import re
import sys

import pytest

from alphazero.commands.shared import run_command
from benchmarks import first_move


def measure(*arguments: object) -> int:
    return run_command(first_move.main, [str(argument) for argument in arguments])


def test_the_table_has_the_median_and_the_range_of_each_program(capsys, monkeypatch):
    figures = {
        ("here", "cold"): [9.0, 3.0, 4.0], ("here", "warm"): [2.0, 2.0, 2.5],
        ("there", "cold"): [1.0, 8.0, 2.0], ("there", "warm"): [0.5, 0.25, 0.75],
    }  # fmt: skip
    starts = []

    def row(program: first_move.Program, folder: str, start: str) -> first_move.Figures:
        starts.append((program.name, start))
        return {"a thing, s": figures[program.name, start].pop()}

    monkeypatch.setattr(first_move, "ROWS", {"thing": row})
    assert measure("--rounds", 3, "--rows", "thing", "--programs", "here=.", f"there={sys.executable}") == 0
    assert starts[:4] == [("here", "cold"), ("here", "warm"), ("there", "cold"), ("there", "warm")]
    assert capsys.readouterr().out.splitlines() == [
        "| | here | there |",
        "|---|---|---|",
        "| a thing, s, cold | 4.0 (3.0-9.0) | 2.0 (1.0-8.0) |",
        "| a thing, s, warm | 2.0 (2.0-2.5) | 0.5 (0.2-0.8) |",
    ]


def test_a_command_that_fails_is_not_measured(tmp_path):
    program = first_move.Program.of(f"here={first_move.__file__.rsplit('/', 2)[0]}")
    seconds, megabytes = program.run("--version", folder=str(tmp_path))
    assert seconds > 0 and megabytes > 5
    with pytest.raises(first_move.InputError, match=r"here: alphazero check gone\.py ended with exit code 2"):
        program.run("check", "gone.py", folder=str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--programs", "here=/nowhere"], "NAME=FOLDER or NAME=PYTHON, each name once, not 'here=/nowhere'"),
        (["--programs", "."], "NAME=FOLDER or NAME=PYTHON, each name once, not '.'"),
        (["--programs", "a=.", "a=/"], "NAME=FOLDER or NAME=PYTHON, each name once, not 'a=.'"),
        (["--rows", "fly"], "--rows takes pit, train, serve, check, not 'fly'"),
        (["--rounds", "0"], "--rounds must lie between"),
    ],
)
def test_wrong_input_gets_one_sentence(arguments, words, capsys):
    assert measure(*arguments) == 2
    found = capsys.readouterr().err
    assert re.search(re.escape(words), found) and found.count("\n") == 1
