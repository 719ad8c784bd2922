"""The Connect Four solver against a plain search by the rules, reference scores, and the laws of a score."""

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from alphazero.commands.shared import run_command
from alphazero.errors import StorageError
from alphazero.game import Position
from alphazero.storage.files import write_npz
from games.connect4 import solver as module
from games.connect4.notation import GAME, format_moves, parse_moves, parse_score, parse_scored_line, read_lines
from games.connect4.solve import main
from games.connect4.solver import NO_SCORE, Solver, read_book

ROOT = Path(__file__).resolve().parents[2]

DRAWN_GAME = "721327737112271335112373255555466666644444"
GAME_WON_BY_THE_LAST_STONE = "225462267577722457476556314544163363111313"
LATE = "2252576253462244111563365343"


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver(threads=1)


@pytest.fixture(scope="module")
def bookless() -> Solver:
    return Solver(threads=1, book=False)


def states_of(positions: list[Position]) -> np.ndarray:
    return np.array([position.state for position in positions], np.uint64).reshape(-1, 2)


def sign(score: int | None) -> int | None:
    return None if score is None else (score > 0) - (score < 0)


def random_position(rng: np.random.Generator, ply: int) -> Position:
    """After `ply` random plies, not over."""
    while True:
        position = GAME.start()
        while position.ply < ply and not position.terminal:
            position = position.play(int(rng.choice(position.legal_actions)))
        if not position.terminal:
            return position


def random_finished(rng: np.random.Generator) -> Position:
    position = GAME.start()
    while not position.terminal:
        position = position.play(int(rng.choice(position.legal_actions)))
    return position


def mirrored(position: Position) -> Position:
    return GAME.position([6 - action for action in position.actions])


# --- a plain search; a board is seven texts of X and O, from the bottom up ---

Board = tuple[str, ...]


def drop(board: Board, column: int) -> Board:
    mark = "XO"[sum(map(len, board)) % 2]
    return (*board[:column], board[column] + mark, *board[column + 1 :])


def top_stone_makes_four(board: Board, column: int) -> bool:
    row = len(board[column]) - 1
    for right, up in ((0, 1), (1, 0), (1, 1), (1, -1)):
        length = 1
        for way in (1, -1):
            x, y = column + way * right, row + way * up
            while 0 <= x < 7 and 0 <= y < len(board[x]) and board[x][y] == board[column][row]:
                length, x, y = length + 1, x + way * right, y + way * up
        if length >= 4:
            return True
    return False


def plain_column_scores(board: Board, known: dict[Board, int]) -> list[int | None]:
    stones_of_mover = sum(map(len, board)) // 2
    scores: list[int | None] = []
    for column in range(7):
        if len(board[column]) == 6:
            scores.append(None)
            continue
        child = drop(board, column)
        if top_stone_makes_four(child, column):
            scores.append(22 - (stones_of_mover + 1))
        else:
            scores.append(-plain_score(child, known))
    return scores


def plain_score(board: Board, known: dict[Board, int]) -> int:
    if board not in known:
        known[board] = max((score for score in plain_column_scores(board, known) if score is not None), default=0)
    return known[board]


def plain_random_board(rng: np.random.Generator, num_empty: int, num_open: int) -> tuple[Board, list[int]]:
    """A board that is not over, with its actions: so many empty squares, in so many columns."""
    while True:
        heights = np.full(7, 6)
        open_columns = rng.permutation(7)[:num_open]
        heights[open_columns] -= 1
        while heights.sum() > 42 - num_empty:
            column = rng.choice(open_columns)
            heights[column] -= heights[column] > 0
        board, actions = ("",) * 7, []
        while len(actions) < 42 - num_empty:
            columns = [column for column in range(7) if len(board[column]) < heights[column]]
            columns = [column for column in columns if not top_stone_makes_four(drop(board, column), column)]
            if not columns:
                break
            actions.append(int(rng.choice(columns)))
            board = drop(board, actions[-1])
        else:
            return board, actions


@pytest.mark.parametrize(
    ("num_empty", "num_open", "count"),
    [(1, 1, 10), (2, 2, 20), (6, 1, 20), (12, 2, 40), (8, 3, 40), (11, 3, 30), (9, 4, 40), (9, 5, 30), (10, 7, 30)],
)
def test_late_positions_score_as_a_plain_search_by_the_rules_says(num_empty, num_open, count, bookless):
    rng, found = np.random.default_rng(100 * num_empty + num_open), set()
    for _ in range(count):
        board, actions = plain_random_board(rng, num_empty, num_open)
        position, known = GAME.position(actions), {}
        expected = plain_column_scores(board, known)
        score = max(score for score in expected if score is not None)
        assert bookless.solve(position) == score, format_moves(actions)
        assert bookless.solve(position, weak=True) == sign(score), format_moves(actions)
        assert bookless.column_scores(position) == expected, format_moves(actions)
        assert bookless.column_scores(position, weak=True) == [sign(score) for score in expected], format_moves(actions)
        assert len([score for score in expected if score is not None]) == num_open
        found.add(sign(score))
    assert num_empty < 8 or {-1, 1} <= found, "the positions should be won and lost"


# --- the reference data ---


def read_set(folder: Path, name: str, count: int = 1000) -> tuple[np.ndarray, list[int]]:
    """States and scores of the first lines of a test set by Pascal Pons."""
    lines = [line.split() for line in (folder / "connect4" / name).read_text().splitlines()[:count]]
    assert len(lines) == count
    return states_of([parse_moves(moves) for moves, _ in lines]), [int(score) for _, score in lines]


@pytest.mark.parametrize(
    ("name", "most_nodes"),
    [
        ("Test_L3_R1", 51.5),
        ("Test_L2_R1", 449),
        ("Test_L1_R1", 3270),
        pytest.param("Test_L2_R2", 39800, marks=pytest.mark.slow),
    ],
)
def test_the_reference_sets_are_solved_without_the_book_within_so_many_nodes(name, most_nodes, shared_data):
    states, expected = read_set(shared_data, name)
    fresh = Solver(threads=1, book=False)
    assert fresh.num_nodes == 0
    assert fresh.solve_all(states).tolist() == expected
    assert 20 < fresh.num_nodes / len(states) <= most_nodes


def test_early_middle_games_are_solved_without_the_book(shared_data, bookless):
    states, expected = read_set(shared_data, "Test_L2_R2", 200)
    assert bookless.solve_all(states).tolist() == expected


@pytest.mark.parametrize("name", ["Test_L1_R2", "Test_L1_R3"])
def test_openings_are_solved_with_the_book(name, shared_data, solver):
    states, expected = read_set(shared_data, name, 300)
    assert solver.solve_all(states).tolist() == expected


@pytest.mark.parametrize("name", ["Test_L3_R1", "Test_L2_R1", "Test_L1_R1", "Test_L1_R3"])
def test_weak_scores_are_the_signs_of_the_reference_scores(name, shared_data, solver):
    states, expected = read_set(shared_data, name, 300)
    assert solver.solve_all(states, weak=True).tolist() == [sign(score) for score in expected]


def column_score_rows(folder: Path) -> tuple[list[str], np.ndarray]:
    rows = [json.loads(line) for line in (folder / "connect4" / "column_scores.jsonl").read_text().splitlines()]
    scores = [[NO_SCORE if score is None else score for score in row["scores"]] for row in rows]
    return [row["moves"] for row in rows], np.array(scores)


def test_a_sample_of_the_reference_column_scores(shared_data, solver):
    moves, expected = column_score_rows(shared_data)
    rows = np.random.default_rng(0).choice(len(moves), 300, replace=False)
    states = states_of([parse_moves(moves[row]) for row in rows])
    np.testing.assert_array_equal(solver.column_scores_all(states), expected[rows])


@pytest.mark.slow
def test_all_reference_column_scores(shared_data):
    moves, expected = column_score_rows(shared_data)
    assert len(moves) == 6000
    np.testing.assert_array_equal(Solver().column_scores_all(states_of(list(map(parse_moves, moves)))), expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", [f"Test_{name}" for name in ("L3_R1", "L2_R1", "L1_R1", "L2_R2", "L1_R2", "L1_R3")])
def test_all_reference_scores_with_the_book(name, shared_data):
    states, expected = read_set(shared_data, name)
    assert Solver().solve_all(states).tolist() == expected


@pytest.mark.slow
def test_all_middle_openings_without_the_book(shared_data):
    states, expected = read_set(shared_data, "Test_L1_R2")
    assert Solver(book=False).solve_all(states).tolist() == expected


# --- laws ---


def test_the_first_player_wins_from_the_centre_alone(solver):
    start = GAME.start()
    assert solver.solve(start) == solver.solve(start, weak=True) == 1
    assert solver.column_scores(start) == [-2, -1, 0, 1, 0, -1, -2]
    assert solver.column_scores(start, weak=True) == [-1, -1, 0, 1, 0, -1, -1]


def law_positions(seed: int) -> list[Position]:
    """Where no search goes deep: before the book's ply, and after the next."""
    rng = np.random.default_rng(seed)
    return [random_position(rng, ply) for ply in (*range(12), *range(14, 42)) for _ in range(4)]


def test_a_position_scores_as_its_best_column_and_a_child_as_minus_its_column(solver):
    positions = law_positions(seed=0)
    fresh = Solver(threads=1)
    for position, columns in zip(positions, fresh.column_scores_all(states_of(positions)), strict=True):
        moves = format_moves(position.actions)
        assert [action for action in range(7) if columns[action] != NO_SCORE] == position.legal_actions, moves
        assert solver.solve(position) == columns.max(), moves
        for action in position.legal_actions:
            assert solver.solve(position.play(action)) == -columns[action], moves


def test_mirror_images_have_mirrored_scores(solver):
    positions = law_positions(seed=1)
    images = states_of([mirrored(position) for position in positions])
    states, fresh = states_of(positions), Solver(threads=1)
    np.testing.assert_array_equal(solver.solve_all(states), fresh.solve_all(images))
    scores = solver.column_scores_all(states)
    np.testing.assert_array_equal(scores, fresh.column_scores_all(images)[:, ::-1])
    assert (scores != scores[:, ::-1]).any(axis=1).mean() > 0.8, "few positions should be their own mirror images"


@pytest.mark.parametrize("ply", [10, 11, 12])
def test_the_book_changes_no_score(ply, solver, bookless):
    rng = np.random.default_rng(ply)
    states = states_of([random_position(rng, ply) for _ in range({10: 3, 11: 6, 12: 30}[ply])])
    assert solver.solve_all(states).tolist() == bookless.solve_all(states).tolist()
    assert solver.solve_all(states, weak=True).tolist() == bookless.solve_all(states, weak=True).tolist()


# --- the end of a game ---


def test_a_lost_position_scores_by_its_ply_and_has_no_columns(solver):
    rng, plies = np.random.default_rng(2), set()
    for _ in range(200):
        position = random_finished(rng)
        if position.outcome == 0:
            continue
        assert solver.solve(position) == -((44 - position.ply) // 2), format_moves(position.actions)
        assert solver.solve(position, weak=True) == -1
        assert solver.column_scores(position) == [None] * 7
        plies.add(position.ply)
    assert len(plies) > 20


def test_a_board_filled_by_a_winning_stone_is_lost_and_by_another_is_a_draw(solver):
    lost, drawn = parse_moves(GAME_WON_BY_THE_LAST_STONE), parse_moves(DRAWN_GAME)
    assert [solver.solve(lost), solver.solve(drawn)] == [-1, 0]
    assert [solver.solve(lost, weak=True), solver.solve(drawn, weak=True)] == [-1, 0]
    assert solver.column_scores(lost) == solver.column_scores(drawn) == [None] * 7


def test_the_last_stone_can_win_or_draw(solver):
    winning, drawing = parse_moves(GAME_WON_BY_THE_LAST_STONE[:-1]), parse_moves(DRAWN_GAME[:-1])
    assert [solver.solve(winning), solver.solve(drawing)] == [1, 0]
    assert solver.column_scores(winning) == [None, None, 1, None, None, None, None]
    assert solver.column_scores(drawing) == [None, None, None, 0, None, None, None]


def test_a_win_with_the_next_stone_scores_by_its_ply(solver):
    rng, plies = np.random.default_rng(3), set()
    while len(plies) < 20:
        position = GAME.position(random_finished(rng).actions[:-1])
        wins = [a for a in position.legal_actions if (child := position.play(a)).terminal and child.outcome]
        if not wins:
            continue
        best = (43 - position.ply) // 2
        assert solver.solve(position) == best, format_moves(position.actions)
        assert solver.solve(position, weak=True) == 1
        scores = solver.column_scores(position)
        assert [action for action in range(7) if scores[action] == best] == wins
        plies.add(position.ply)


def test_a_threat_on_two_sides_loses_by_the_opponents_next_stone(solver):
    position = parse_moves("44553")
    assert solver.solve(position) == -((42 - 5) // 2)
    assert solver.column_scores(position) == [-18] * 7


# --- many at a time ---


@functools.cache
def mixed_positions() -> list[Position]:
    """Open and finished ones in turn, of many plies."""
    rng = np.random.default_rng(4)
    positions = [random_position(rng, 15 + i % 26) for i in range(150)] + [random_finished(rng) for _ in range(50)]
    return [positions[i] for i in rng.permutation(len(positions))] + [parse_moves(DRAWN_GAME)]


def test_one_two_and_three_threads_give_the_same_scores():
    states = states_of(mixed_positions())
    solvers = [Solver(threads, book=False) for threads in (1, 2, 3)]
    for ask in (Solver.solve_all, Solver.column_scores_all):
        for weak in (False, True):
            first, second, third = (ask(solver, states, weak) for solver in solvers)
            np.testing.assert_array_equal(first, second)
            np.testing.assert_array_equal(first, third)
    assert all(solver.num_nodes > 1000 for solver in solvers)


def test_all_at_once_as_one_at_a_time(solver):
    positions = mixed_positions()
    states, alone = states_of(positions), Solver(threads=1)
    scores, columns = solver.solve_all(states), solver.column_scores_all(states)
    assert scores.dtype == columns.dtype == np.int8
    assert columns.shape == (len(positions), 7)
    assert scores.tolist() == [alone.solve(position) for position in positions]
    expected = [alone.column_scores(position) for position in positions]
    assert [[None if score == NO_SCORE else score for score in row] for row in columns.tolist()] == expected
    np.testing.assert_array_equal(solver.solve_all(states, weak=True), np.sign(scores))


def test_no_positions_have_no_scores(solver):
    states = np.zeros((0, 2), np.uint64)
    for weak in (False, True):
        assert solver.solve_all(states, weak).shape == (0,)
        assert solver.column_scores_all(states, weak).shape == (0, 7)


def test_the_states_asked_about_stay_as_they_are(solver):
    states = states_of(mixed_positions())
    before = states.copy()
    solver.solve_all(states)
    solver.column_scores_all(states)
    np.testing.assert_array_equal(states, before)


def test_the_functions_of_the_module_share_one_solver():
    position = parse_moves("4453")
    states = states_of([position, parse_moves(LATE)])
    assert module.solve(position) == -2
    assert module.solve(position, weak=True) == -1
    assert module.column_scores(position) == [-5, -5, -2, -3, -4, -2, -2]
    assert module.column_scores(position, weak=True) == [-1] * 7
    assert module.solve_all(states).tolist() == [-2, module.solve(parse_moves(LATE))]
    assert module.solve_all(states, weak=True)[0] == -1
    assert module.column_scores_all(states)[0].tolist() == [-5, -5, -2, -3, -4, -2, -2]
    assert module.column_scores_all(states, weak=True)[0].tolist() == [-1] * 7
    assert module.shared_solver() is module.shared_solver()
    assert module.shared_solver().num_nodes > 0


SOLVE_ONE = f"""
from games.connect4.notation import parse_moves
from games.connect4.solver import Solver

position = parse_moves("{LATE}")
print(Solver(1).solve(parse_moves("4453")), Solver(1, book=False).column_scores(position))
"""


def test_a_second_process_uses_the_compiled_code_of_the_first(tmp_path, bookless):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    expected = f"-2 {bookless.column_scores(parse_moves(LATE))}\n"
    kept = []
    for _ in range(2):
        command = [sys.executable, "-c", SOLVE_ONE]
        result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
        assert (result.returncode, result.stdout) == (0, expected), result.stderr
        kept.append({path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")})
    assert any("negamax" in name for name in kept[0])
    assert kept[0] == kept[1], "the second process should have had nothing to compile"


# --- the command ---


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

X to move after 4 moves; with perfect play loses in 18

column  score
     1     -5  loses in 15
     2     -5  loses in 15
     3     -2  loses in 18
     4     -3  loses in 17
     5     -4  loses in 16
     6     -2  loses in 18
     7     -2  loses in 18

best: 3, 6, 7
"""


def test_the_command_shows_the_board_every_column_and_the_best():
    command = [sys.executable, "-m", "games.connect4.solver", "4453"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, SHOWN, "")


def test_the_command_shows_the_empty_board_and_draws(capsys):
    assert run_solver() == 0
    out, err = capsys.readouterr()
    assert "\nX to move after 0 moves; with perfect play wins in 21\n" in out
    assert "\n     1     -2  loses in 20\n     2     -1  loses in 21\n     3      0  draw\n" in out
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
        ("121212", "X", "wins in 1", "     1     18  wins in 1"),
        ("7121212", "O", "wins in 1", "     1     18  wins in 1"),
        ("44553", "O", "loses in 1", "     2    -18  loses in 1"),
        ("144553", "X", "loses in 1", "     6    -18  loses in 1"),
        (GAME_WON_BY_THE_LAST_STONE[:-1], "O", "wins in 1", "     3      1  wins in 1"),
        (GAME_WON_BY_THE_LAST_STONE[:-2], "X", "it is a draw", "     1     -1  loses in 1"),
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
    assert err == f"error: wrong scores in {file}: 1 of 3; mend the lines named above\n"


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
    assert err == f"error: wrong scores in {file}: 3 of 70; mend the lines named above\n"


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
    assert err == f"error: wrong scores in {file}: 1 of 1; mend the lines named above\n"


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


@pytest.mark.parametrize("change", ["short", "long", "segments", "size", "kind"])
def test_what_is_no_opening_book_is_refused(change, tmp_path):
    book = read_book()
    if change == "short":
        book = book[:-1]
    elif change == "long":
        book = np.append(book, np.uint8(0))
    elif change == "kind":
        book = book.astype(np.int16)
    else:
        book = book.copy()
        book[{"segments": 8, "size": 16}[change]] ^= 1
    write_npz(tmp_path / "book.npz", {"book": book})
    with pytest.raises(StorageError, match="not an opening book"):
        read_book(tmp_path / "book.npz")
