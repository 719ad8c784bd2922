"""The exact results that `alphazero solve` shows."""

import re
import shlex

import pytest

from alphazero.commands.rules.benchmark import SolveConfig, solve
from alphazero.commands.shared import run_command


def solved(capsys, *words: str) -> tuple[str, dict[str, str]]:
    """All that is printed, and the result of each move in the order shown."""
    assert run_command(solve, list(words)) == 0
    shown = capsys.readouterr().out
    return shown, dict(re.findall(r"^  (\S+) +(.+)$", shown.partition("to move")[2], re.MULTILINE))


def test_a_position_of_connect_four_is_solved_by_its_moves(capsys):
    shown, results = solved(capsys, "4455", "--game", "connect4")
    # three in a row with both ends open: the columns 3 and 6 threaten to win on both sides
    assert "first player to move after 4 plies" in shown and ". . . X X . ." in shown
    assert sorted(results) == list("1234567") and {results["3"], results["6"]} == {"wins in 2 moves"}
    assert list(results)[:2] == ["3", "6"], "the best come first"
    assert solved(capsys, "4", "4", "5", "5")[1] == results


def test_a_win_in_one_and_a_game_that_is_over(capsys):
    _, results = solved(capsys, "121212")
    assert results["1"] == "wins in 1 move"
    shown, results = solved(capsys, "1212121")
    assert shown.endswith("The game is over after 7 plies: the first player has won.\n") and not results


def test_the_examples_of_the_help_are_solved(capsys):
    examples = re.findall(r"^ *alphazero solve (.+)$", SolveConfig.__doc__, re.MULTILINE)
    assert len(examples) == 3
    for example in examples[:2]:  # the third one is a problem below
        assert solved(capsys, *shlex.split(example))[1]


# two problems of FForum as Edax keeps them (abulmo/edax-reversi, fforum-1-19.obf, commit 75848c8): all moves and scores
PROBLEMS = {
    "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X; "
    "G8:+18; H1:+12; H7:+6; A2:+6; A3:+4; B1:-4; A4:-22; G2:-24;": "first",
    "---O-XOX----XXOX---XXOOXO-XXOXOXXXXOOXOX-XOOXXXXXOOOXX-XOOOOOOO- O; "
    "B3:+30; C2:+26; A6:+24; G7:+20; C3:+18; D2:+16; B4:+10; E1:+6;": "second",
}


@pytest.mark.parametrize(("line", "mover"), PROBLEMS.items())
def test_a_line_of_a_board_is_solved_as_published(line, mover, capsys):
    shown, results = solved(capsys, line, "--game", "othello")
    assert f"\n\n{mover} player to move on a board\n" in shown
    published = {move.lower(): int(score) for move, score in re.findall(r"([A-H][1-8]):([+-]\d+)", line)}
    words = {"wins": 1, "loses": -1}
    found = {move: words[said.split()[0]] * int(said.split()[2]) for move, said in results.items()}
    assert {move: found[move] for move in published} == published


def test_a_grid_of_connect_four_is_solved_like_its_moves(capsys):
    grid = "7/7/7/7/3O3/2OXX2"
    shown, results = solved(capsys, grid)
    assert results == solved(capsys, "4453")[1] and "first player to move on a board" in shown
    shown, _ = solved(capsys, "7/7/X6/XO5/XO5/XO5")
    assert shown.endswith("The game is over: the first player has won.\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--game hex", "hex has no solver; the games that have one are connect4, othello, othello6"),
        ("--game othello", "end to be solved: it has 60 empty squares, and 16 or fewer can be solved; add moves"),
        ("48 --game connect4", "8"),
        ("7/7/7/7/7/3XX2", "this is no board of connect4: X begins"),
        ("7/7/7/3X3/7/3O3", "in column 4 a stone lies above an empty cell"),
    ],
)
def test_what_cannot_be_solved_gets_one_sentence(words, message, capsys):
    assert run_command(solve, words.split()) == 2
    shown, errors = capsys.readouterr()
    assert errors.startswith("error: ") and errors.count("\n") == 1 and message in errors
    assert shown == ""
