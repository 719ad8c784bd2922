"""The command of the Connect Four solver, the files that it checks, and the input that it refuses."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from alphazero.commands.shared import run_command
from games.connect4.solver import Solver
from games.connect4.solver.__main__ import main
from games.connect4.solver.notation import format_moves, parse_moves, parse_score, parse_scored_line, read_lines
from tests.games.connect4_positions import random_position, states_of

ROOT = Path(__file__).resolve().parents[2]

DRAWN_GAME = "721327737112271335112373255555466666644444"
GAME_WON_BY_THE_LAST_STONE = "225462267577722457476556314544163363111313"
LATE = "2252576253462244111563365343"


def run_solver(*arguments: object) -> int:
    return run_command(main, [str(argument) for argument in arguments])


SHOWN = """\
. . . . . . .
. . . . . . .
. . . . . . .
. . . . . . .
. . . O . . .
. . O X X . .
1 2 3 4 5 6 7

X to move after 4 moves; with perfect play loses in 18 moves

column  score
     1     -5  loses in 15 moves
     2     -5  loses in 15 moves
     3     -2  loses in 18 moves
     4     -3  loses in 17 moves
     5     -4  loses in 16 moves
     6     -2  loses in 18 moves
     7     -2  loses in 18 moves

best: 3, 6, 7
"""


def test_the_command_shows_the_board_every_column_and_the_best():
    command = [sys.executable, "-m", "games.connect4.solver", "4453"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, SHOWN, "")


def test_the_command_shows_the_empty_board_and_draws(capsys):
    assert run_solver() == 0
    out, err = capsys.readouterr()
    assert "\nX to move after 0 moves; with perfect play wins in 21 moves\n" in out
    assert "\n     1     -2  loses in 20 moves\n     2     -1  loses in 21 moves\n     3      0  draw\n" in out
    assert out.endswith("\nbest: 4\n") and err == ""


def test_the_command_needs_no_book_and_uses_the_threads_given(capsys):
    assert run_solver(LATE) == 0
    shown, _ = capsys.readouterr()
    assert run_solver(LATE, "--no-book", "--threads", 3) == 0
    assert capsys.readouterr().out == shown


def test_a_full_column_is_shown_as_full(capsys):
    assert run_solver("444444") == 0
    out, _ = capsys.readouterr()
    assert "\n     4      -  full\n" in out
    assert out.count("full") == 1
    assert not re.search(r"best:.*4", out)


@pytest.mark.parametrize(
    ("moves", "last_line"),
    [
        ("1212121", "X has won after 7 moves"),
        ("71212121", "O has won after 8 moves"),
        (DRAWN_GAME, "a draw after 42 moves"),
        (GAME_WON_BY_THE_LAST_STONE, "O has won after 42 moves"),
    ],
)
def test_a_finished_game_is_shown_with_its_result(moves, last_line, capsys):
    assert run_solver(moves) == 0
    out, err = capsys.readouterr()
    assert out == f"{parse_moves(moves)}\n\n{last_line}\n" and err == ""


@pytest.mark.parametrize(
    ("moves", "to_move", "words", "line"),
    [
        ("121212", "X", "wins in 1 move", "     1     18  wins in 1 move"),
        ("7121212", "O", "wins in 1 move", "     1     18  wins in 1 move"),
        ("44553", "O", "loses in 1 move", "     2    -18  loses in 1 move"),
        ("144553", "X", "loses in 1 move", "     6    -18  loses in 1 move"),
        (GAME_WON_BY_THE_LAST_STONE[:-1], "O", "wins in 1 move", "     3      1  wins in 1 move"),
        (GAME_WON_BY_THE_LAST_STONE[:-2], "X", "it is a draw", "     1     -1  loses in 1 move"),
    ],
)
def test_the_words_count_the_winners_stones_from_now_on(moves, to_move, words, line, capsys):
    assert run_solver(moves) == 0
    out, _ = capsys.readouterr()
    assert f"\n{to_move} to move after {len(moves)} moves; with perfect play {words}\n" in out
    assert line in out.splitlines()


# --- files ---

SUMMARY = re.compile(
    r"(\d+) of (\d+) right; mean \d+\.\d+ ms, worst \d+\.\d+ ms; mean [\d,]+ nodes, \d+\.\d+ million nodes/s"
)


@functools.cache
def late_lines(count: int) -> tuple[list[str], list[int]]:
    rng, solver = np.random.default_rng(5), Solver(1, book=False)
    positions = [random_position(rng, 20 + i % 20) for i in range(count)]
    return [format_moves(position.actions) for position in positions], solver.solve_all(states_of(positions)).tolist()


@pytest.mark.parametrize("more", [(), ("--no-book",), ("--threads", 3)])
def test_a_file_of_right_scores_passes(more, tmp_path, capsys):
    moves, scores = late_lines(50)
    file = tmp_path / "right"
    file.write_text("\n".join(f"{line} {score}" for line, score in zip(moves, scores, strict=True)))
    assert run_solver("--file", file, *more) == 0
    out, err = capsys.readouterr()
    [line] = out.splitlines()
    assert SUMMARY.fullmatch(line).groups() == ("50", "50") and err == ""


def test_a_file_may_have_blank_lines_spaces_and_other_line_ends(tmp_path, capsys):
    file = tmp_path / "right"
    file.write_bytes(b"\r\n  4453 -2\r\n\r\n\t4453\t-2  \r\n \n121212 18")
    assert run_solver("--file", file) == 0
    assert capsys.readouterr().out.startswith("3 of 3 right; ")


def test_a_wrong_score_is_named_with_its_place_and_the_right_one(tmp_path, capsys):
    file = tmp_path / "wrong"
    file.write_text("4453 -2\n\n4453 -1\n121212 18\n")
    assert run_solver("--file", file) == 2
    out, err = capsys.readouterr()
    wrong, summary = out.splitlines()
    assert wrong == f"{file}, line 3: the score is -2, not -1"
    assert SUMMARY.fullmatch(summary).groups() == ("2", "3")
    assert err == f"error: wrong scores in {file}: 1 of 3; correct the lines named above\n"


def test_wrong_scores_are_found_all_over_a_long_file(tmp_path, capsys):
    moves, scores = late_lines(70)
    given = list(scores)
    for i in (1, 30, 69):
        given[i] += -1 if scores[i] > 0 else 1
    file = tmp_path / "wrong"
    file.write_text("\n".join(f"{line} {score}" for line, score in zip(moves, given, strict=True)))
    assert run_solver("--file", file, "--threads", 2) == 2
    out, err = capsys.readouterr()
    assert out.splitlines()[:-1] == [
        f"{file}, line {i + 1}: the score is {scores[i]}, not {given[i]}" for i in (1, 30, 69)
    ]
    assert SUMMARY.fullmatch(out.splitlines()[-1]).groups() == ("67", "70")
    assert err == f"error: wrong scores in {file}: 3 of 70; correct the lines named above\n"


# --- what is refused ---


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that says what is wrong, less "error: "."""
    assert run_solver(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ") and err.endswith("\n") and len(err.splitlines()) == 1
    return err.removeprefix("error: ").removesuffix("\n")


@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        ("4444444 1", 7, "column 4 is full; choose one of 1, 2, 3, 5, 6, 7"),
        ("   4444444 1", 10, "column 4 is full; choose one of 1, 2, 3, 5, 6, 7"),
        ("12121212 1", 8, "the game was over after 7 moves; leave out what follows"),
        ("  121212121212 1", 10, "the game was over after 7 moves"),
        (f"{DRAWN_GAME}4 0", 43, "the game was over after 42 moves"),
        ("1212121 1", 7, "this move ends the game; there is nothing to solve"),
        ("  1212121 1", 9, "this move ends the game"),
        ("44x3 1", 3, "'x' is no column of the board; moves are digits from 1 to 7"),
        ("    x443 1", 5, "'x' is no column"),
        ("\t44x3 1", 4, "'x' is no column"),
        ("4450 1", 4, "'0' is no column"),
        ("8 1", 1, "'8' is no column"),
        ("  48 1", 4, "'8' is no column"),
        ("44-3 1", 3, "'-' is no column"),
        ("44\u0663 1", 3, "is no column"),
        ("4453", 1, "a line holds moves and a score, as in '4453 -2', not '4453'"),
        ("4453 -2 1", 1, "a line holds moves and a score"),
        ("4453 two", 6, "a score is a whole number, not 'two'"),
        ("4453 -1.5", 6, "a score is a whole number, not '-1.5'"),
        ("  4453   x", 10, "a score is a whole number, not 'x'"),
        ("4 4x", 3, "a score is a whole number, not '4x'"),
        ("4453 20", 6, "20 is an impossible score; after 4 moves it lies between -19 and 19"),
        ("4453 -20", 6, "-20 is an impossible score; after 4 moves it lies between -19 and 19"),
        ("  4453 44", 8, "44 is an impossible score; after 4 moves it lies between -19 and 19"),
        ("  44535  -19", 10, "-19 is an impossible score; after 5 moves it lies between -18 and 19"),
        (f"{DRAWN_GAME[:-1]} -1", 43, "-1 is an impossible score; after 41 moves it lies between 0 and 1"),
        ("4453 " + 4000 * "9", 6, "is an impossible score; after 4 moves it lies between -19 and 19"),
        ("4453 -" + 1_000_000 * "9", 6, "is an impossible score; after 4 moves it lies between -19 and 19"),
    ],
)
@pytest.mark.parametrize("lines_before", [0, 3])
def test_a_malformed_line_is_refused_with_its_line_and_column(
    line, column, words, lines_before, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_text("4453 -2\n\n  4453 -2\n"[: 19 if lines_before else 0] + line + "\n4453 -2\n")
    message = refusal(capsys, "--file", "FILE")
    assert message.startswith(f"FILE, line {lines_before + 1}, column {column}: ") and words in message
    assert len(message) < 250


@pytest.mark.parametrize("limit", [-19, 19])
def test_the_utmost_scores_are_possible_though_wrong(limit, tmp_path, capsys):
    file = tmp_path / "wrong"
    file.write_text(f"4453 {limit}\n")
    assert run_solver("--file", file) == 2
    out, err = capsys.readouterr()
    assert out.startswith(f"{file}, line 1: the score is -2, not {limit}\n")
    assert err == f"error: wrong scores in {file}: 1 of 1; correct the lines named above\n"


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"", 1, "the file is empty"),
        (b"\n \r\n\t\n\n", 1, "the file is empty"),
        (b"\xff\xfe4\x004\x00", 1, "this is not a text file"),
        (bytes(range(256)), 2, "this is not a text file"),
        (b"4453 -2\n\x80\n", 2, "this is not a text file"),
        (bytes(1000), 1, "a line holds moves and a score"),
        (b"\x7fELF 1", 1, r"'\x7f' is no column of the board"),
    ],
)
def test_a_file_without_a_text_of_positions_is_refused(content, line, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("FILE").write_bytes(content)
    message = refusal(capsys, "--file", "FILE")
    assert message.startswith(f"FILE, line {line}, column ") and words in message
    assert message.isprintable() and len(message) < 250


def test_what_is_no_file_is_refused(tmp_path, capsys):
    missing = tmp_path / "missing"
    assert refusal(capsys, "--file", missing) == f"there is no file {missing}"
    assert refusal(capsys, "--file", tmp_path).startswith(f"cannot read {tmp_path}: ")


@pytest.mark.parametrize(
    ("moves", "message"),
    [
        ("4444444", "move 7 of '4444444': column 4 is full; choose one of 1, 2, 3, 5, 6, 7"),
        ("12121212", "move 8 of '12121212': the game was over after 7 moves; leave out what follows"),
        ("44a", "move 3 of '44a': 'a' is no column of the board; moves are digits from 1 to 7"),
        ("0", "move 1 of '0': '0' is no column of the board; moves are digits from 1 to 7"),
        ("448", "move 3 of '448': '8' is no column of the board; moves are digits from 1 to 7"),
        ("44 53", "move 3 of '44 53': ' ' is no column of the board; moves are digits from 1 to 7"),
        ("44\n53", r"move 3 of '44\n53': '\n' is no column of the board; moves are digits from 1 to 7"),
    ],
)
def test_malformed_moves_are_refused_with_the_number_of_the_move(moves, message, capsys):
    assert refusal(capsys, moves) == message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["4453", "--file", "x"], "MOVES and --file exclude each other"),
        (["--threads", "0"], "--threads must lie between 1 and 1,024, not 0"),
        (["--threads", "-1"], "--threads must lie between 1 and 1,024, not -1"),
        (["--threads", "1025"], "--threads must lie between 1 and 1,024, not 1025"),
        (["--threads", "two"], "--threads takes a whole number, not 'two'"),
        (["--thread", "1"], "did you mean --threads?"),
        (["44", "53"], "unknown argument '53'"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments, words, capsys):
    assert words in refusal(capsys, *arguments)


@pytest.mark.parametrize(
    ("text", "score"),
    [("0", 0), ("-0", 0), ("-2", -2), ("007", 7), ("-" + 5000 * "9", -1_000_000), ("1_0", None), ("-٢", None),
     ("", None), ("+3", None), ("2.0", None)],
)  # fmt: skip
def test_a_score_is_plain_digits_with_perhaps_a_minus(text, score):
    assert parse_score(text) == score


def test_only_newlines_part_lines_and_a_byte_order_mark_is_passed_over(tmp_path):
    path = tmp_path / "file"
    path.write_bytes("\ufeff4453 -2\r\n4453\x0c-2\n\n1 2".encode())
    assert [place.rpartition(" ")[2] for place, _ in read_lines(path)] == ["1", "2", "4"]
    assert parse_scored_line(next(iter(read_lines(path)))[1], "here")[1] == -2
