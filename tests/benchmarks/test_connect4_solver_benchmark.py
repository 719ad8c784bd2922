"""The benchmark of the Connect Four solver, which checks files of scores."""

import re

import pytest

from alphazero.commands.shared import run_command
from benchmarks.connect4_solver import main

LATE = "2252576253462244111563365343"


def run_solver(*arguments: object) -> int:
    return run_command(main, [str(argument) for argument in arguments])


SUMMARY = re.compile(r"(\d+) of (\d+) right; mean \d+\.\d+ ms, [\d,]+ nodes; \d+\.\d+ million nodes/s\n")


@pytest.mark.parametrize("more", [(), ("--no-book", "--threads", 3)])
def test_a_file_of_right_scores_passes(more, tmp_path, capsys):
    file = tmp_path / "right"
    file.write_bytes(f"\r\n  {LATE} -7\r\n\r\n\t{LATE[:26]}\t-8  \r\n \n121212 18".encode())
    assert run_solver(file, *more) == 0
    assert SUMMARY.fullmatch(capsys.readouterr().out).groups() == ("3", "3")


def test_wrong_scores_are_named_with_their_places_and_the_right_ones(tmp_path, capsys):
    file = tmp_path / "wrong"
    file.write_text("4453 -2\n\n4453 -1\n121212 40\n")
    assert run_solver(file) == 2
    out, err = capsys.readouterr()
    assert out.startswith(f"{file}, line 3: the score is -2, not -1\n{file}, line 4: the score is 18, not 40\n1 of 3 ")
    assert err.startswith("error: ") and "2 of 3" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "FILE"),
        (["x", "--threads", "0"], "--threads must lie between"),
        (["x", "--thread", "1"], "did you mean --threads?"),
        (["missing"], "there is no file missing"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments, words, capsys):
    assert run_solver(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and words in err and len(err.splitlines()) == 1
