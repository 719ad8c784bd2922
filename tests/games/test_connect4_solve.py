"""The command of the Connect Four solver: the scores of a position, and files of scores that it checks."""

import re

import pytest

from alphazero.commands.shared import run_command
from games.connect4.solver import main
from tests.games.connect4_positions import after

LATE = "2252576253462244111563365343"
WON = "1212121"
DRAWN = "721327737112271335112373255555466666644444"


def run_solver(*arguments: object) -> int:
    return run_command(main, [str(argument) for argument in arguments])


SHOWN = """
column  score
     1     -5  loses in 15 moves
     2     -5  loses in 15 moves
     3     -2  loses in 18 moves
     4     -3  loses in 17 moves
     5     -4  loses in 16 moves
     6     -2  loses in 18 moves
     7     -2  loses in 18 moves
"""


def test_the_command_shows_the_board_and_every_column(capsys):
    assert run_solver("4453") == 0
    assert capsys.readouterr() == (f"{after('4453')}\n{SHOWN}", "")


def test_the_command_needs_no_book_and_uses_the_threads_given(capsys):
    assert run_solver(LATE) == 0
    shown, _ = capsys.readouterr()
    assert run_solver(LATE, "--no-book", "--threads", 3) == 0
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("moves", "line"),
    [
        ("", "     3      0  draw"),
        ("7121212", "     1     18  wins in 1 move"),
        ("144553", "     6    -18  loses in 1 move"),
        (DRAWN[:-1], "     4      0  draw"),
    ],
)
def test_the_words_count_the_winners_stones_from_now_on(moves, line, capsys):
    assert run_solver(moves) == 0
    assert line in capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("moves", [WON, DRAWN])
def test_a_finished_game_has_no_scores(moves, capsys):
    assert run_solver(moves) == 0
    assert capsys.readouterr().out == f"{after(moves)}\n\ncolumn  score\n"


SUMMARY = re.compile(r"(\d+) of (\d+) right; mean \d+\.\d+ ms, [\d,]+ nodes; \d+\.\d+ million nodes/s\n")


@pytest.mark.parametrize("more", [(), ("--no-book", "--threads", 3)])
def test_a_file_of_right_scores_passes(more, tmp_path, capsys):
    file = tmp_path / "right"
    file.write_bytes(f"\r\n  {LATE} -7\r\n\r\n\t{LATE[:26]}\t-8  \r\n \n121212 18".encode())
    assert run_solver("--file", file, *more) == 0
    assert SUMMARY.fullmatch(capsys.readouterr().out).groups() == ("3", "3")


def test_wrong_scores_are_named_with_their_places_and_the_right_ones(tmp_path, capsys):
    file = tmp_path / "wrong"
    file.write_text("4453 -2\n\n4453 -1\n121212 40\n")
    assert run_solver("--file", file) == 2
    out, err = capsys.readouterr()
    assert out.startswith(f"{file}, line 3: the score is -2, not -1\n{file}, line 4: the score is 18, not 40\n1 of 3 ")
    assert err.startswith("error: ") and "2 of 3" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["4453", "--file", "x"], "MOVES and --file exclude each other"),
        (["--threads", "0"], "--threads must lie between"),
        (["--thread", "1"], "did you mean --threads?"),
        (["44a"], "'a' is not a legal action"),
        (["--file", "missing"], "there is no file missing"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments, words, capsys):
    assert run_solver(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and words in err and len(err.splitlines()) == 1
