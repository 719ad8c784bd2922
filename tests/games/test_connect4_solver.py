"""The Connect Four solver against a plain search by the rules, reference scores, and the laws of a score."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from alphazero.errors import StorageError
from alphazero.game import Position
from alphazero.storage.arrays import write_npz
from games.connect4 import solver as module
from games.connect4.solver import GAME, NO_SCORE, Solver, read_book
from tests.games.connect4_positions import after, random_position, states_of, written
from tests.patience import PATIENCE

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


def sign(score: int | None) -> int | None:
    return None if score is None else (score > 0) - (score < 0)


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
    [(1, 1, 10), (2, 2, 10), (12, 2, 20), (11, 3, 15), (9, 4, 20), (10, 7, 10)],
)
def test_late_positions_score_as_a_plain_search_by_the_rules_says(num_empty, num_open, count, bookless):
    rng, found = np.random.default_rng(100 * num_empty + num_open), set()
    for _ in range(count):
        board, actions = plain_random_board(rng, num_empty, num_open)
        position, known = GAME.position(actions), {}
        expected = plain_column_scores(board, known)
        score = max(score for score in expected if score is not None)
        assert bookless.solve(position) == score
        assert bookless.solve(position, weak=True) == sign(score)
        assert bookless.column_scores(position) == expected
        assert bookless.column_scores(position, weak=True) == [sign(score) for score in expected]
        assert len([score for score in expected if score is not None]) == num_open
        found.add(sign(score))
    assert num_empty < 8 or {-1, 1} <= found, "the positions should be won and lost"


# --- positions with known scores: connect4_scores.json says where they are from ---


def read_scores(*stages: str) -> tuple[np.ndarray, np.ndarray]:
    """States `uint64[n, 2]` and the scores `int64[n, 7]` of their columns."""
    known = json.loads((Path(__file__).parent / "connect4_scores.json").read_text())
    rows = [row for stage in stages for row in known[stage]]
    scores = [[NO_SCORE if score is None else score for score in columns] for _, columns in rows]
    return states_of([after(moves) for moves, _ in rows]), np.array(scores)


@pytest.mark.parametrize(("stage", "count", "most_nodes"), [("end", 150, 57.7), ("middle", 100, 52_800)])
def test_positions_are_solved_without_the_book_within_so_many_nodes(stage, count, most_nodes):
    states, columns = read_scores(stage)
    fresh = Solver(threads=1, book=False)
    assert fresh.num_nodes == 0 and len(states) == count
    np.testing.assert_array_equal(fresh.solve_all(states), columns.max(axis=1))
    assert 20 < fresh.num_nodes / len(states) <= most_nodes


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
def test_every_column_of_known_positions_is_scored(step, solver):
    states, columns = (rows[::step] for rows in read_scores("begin", "middle", "end"))
    assert {-1, 0, 1} == set(np.sign(columns.max(axis=1)).tolist()) and (columns == NO_SCORE).any()
    before = states.copy()
    np.testing.assert_array_equal(solver.column_scores_all(states), columns)
    np.testing.assert_array_equal(solver.solve_all(states, weak=True), np.sign(columns.max(axis=1)))
    np.testing.assert_array_equal(states, before)
    assert solver.column_scores_all(states[:0]).shape == (0, 7)


@pytest.mark.slow
def test_openings_are_solved_without_the_book():
    states, columns = read_scores("begin")
    rows = np.bitwise_count(states).sum(axis=1) >= 10
    np.testing.assert_array_equal(Solver(book=False).solve_all(states[rows]), columns[rows].max(axis=1))


# --- laws ---


def test_the_first_player_wins_from_the_centre_alone(solver):
    start = GAME.start()
    assert solver.solve(start) == solver.solve(start, weak=True) == 1
    assert solver.column_scores(start) == [-2, -1, 0, 1, 0, -1, -2]
    assert solver.column_scores(start, weak=True) == [-1, -1, 0, 1, 0, -1, -1]


def law_positions(seed: int) -> list[Position]:
    """Where no search goes deep: before the book's ply, and after the next."""
    rng = np.random.default_rng(seed)
    return [random_position(rng, ply) for ply in (*range(12), *range(14, 42))]


def test_a_position_scores_as_its_best_column_and_a_child_as_minus_its_column(solver):
    positions = law_positions(seed=0)
    fresh = Solver(threads=1)
    for position, columns in zip(positions, fresh.column_scores_all(states_of(positions)), strict=True):
        moves = written(position)
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
    states = states_of([random_position(rng, ply) for _ in range({10: 1, 11: 2, 12: 8}[ply])])
    assert solver.solve_all(states).tolist() == bookless.solve_all(states).tolist()
    assert solver.solve_all(states, weak=True).tolist() == bookless.solve_all(states, weak=True).tolist()


# --- the end of a game ---


def test_a_lost_position_scores_by_its_ply_and_has_no_columns(solver):
    rng, plies = np.random.default_rng(2), set()
    for _ in range(200):
        position = random_finished(rng)
        if position.outcome == 0:
            continue
        assert solver.solve(position) == -((44 - position.ply) // 2), written(position)
        assert solver.solve(position, weak=True) == -1
        assert solver.column_scores(position) == [None] * 7
        plies.add(position.ply)
    assert len(plies) > 20


def test_a_board_filled_by_a_winning_stone_is_lost_and_by_another_is_a_draw(solver):
    lost, drawn = after(GAME_WON_BY_THE_LAST_STONE), after(DRAWN_GAME)
    assert [solver.solve(lost), solver.solve(drawn)] == [-1, 0]
    assert [solver.solve(lost, weak=True), solver.solve(drawn, weak=True)] == [-1, 0]
    assert solver.column_scores(lost) == solver.column_scores(drawn) == [None] * 7


def test_a_win_with_the_next_stone_scores_by_its_ply(solver):
    rng, plies = np.random.default_rng(3), set()
    while len(plies) < 20:
        position = GAME.position(random_finished(rng).actions[:-1])
        wins = [a for a in position.legal_actions if (child := position.play(a)).terminal and child.outcome]
        if not wins:
            continue
        best = (43 - position.ply) // 2
        assert solver.solve(position) == best, written(position)
        assert solver.solve(position, weak=True) == 1
        scores = solver.column_scores(position)
        assert [action for action in range(7) if scores[action] == best] == wins
        plies.add(position.ply)


# --- many at a time ---


@functools.cache
def mixed_positions() -> list[Position]:
    """Open and finished ones in turn, of many plies."""
    rng = np.random.default_rng(4)
    positions = [random_position(rng, 15 + i % 26) for i in range(75)] + [random_finished(rng) for _ in range(25)]
    return [positions[i] for i in rng.permutation(len(positions))] + [after(DRAWN_GAME)]


def test_one_two_and_three_threads_give_the_same_scores():
    states = states_of(mixed_positions()[::2])
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


def test_the_functions_of_the_module_share_one_solver():
    position, solver = after("4453"), module.shared_solver()
    nodes = solver.num_nodes
    assert (module.solve(position), module.solve(position, weak=True)) == (-2, -1)
    assert module.column_scores(position) == [-5, -5, -2, -3, -4, -2, -2]
    assert module.column_scores(position, weak=True) == [-1] * 7
    assert module.solve_all(states_of([position, after(LATE)]), weak=True)[0] == -1
    assert module.shared_solver() is solver and solver.num_nodes > nodes


SOLVE_ONE = f"""
import numpy as np

from games.connect4.game import Connect4
from games.connect4.solver_kernels import solve_many

scores, memory = np.zeros(1, np.int8), (np.zeros(1 << 10, np.uint64), np.zeros(344, np.uint64))
solve_many(Connect4().position("{LATE}").state[None].copy(), False, *memory, np.zeros(0, np.uint8), scores)
print(scores[0])
"""


def test_a_second_process_uses_the_compiled_code_of_the_first(tmp_path, bookless):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    expected = f"{bookless.solve(after(LATE))}\n"
    kept = []
    for _ in range(2):
        command = [sys.executable, "-c", SOLVE_ONE]
        result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE)
        assert (result.returncode, result.stdout) == (0, expected), result.stderr
        kept.append({path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")})
    assert any("negamax" in name for name in kept[0])
    assert kept[0] == kept[1], "the second process should have had nothing to compile"


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
    with pytest.raises(StorageError, match="not an opening book|is int16\\[.*, not uint8"):
        read_book(tmp_path / "book.npz")
