"""The frozen set of labelled Connect Four positions, and the command that makes it."""

from pathlib import Path

import numpy as np
import pytest

from alphazero.matches.judge import Labelled
from benchmarks.frozen import connect4 as module
from benchmarks.frozen.connect4 import decisive, main
from games.connect4.benchmark import FOLDER, load_frozen
from games.connect4.solver import NO_SCORE, Solver
from tests.games.connect4_positions import after, plies_of

FROZEN_FILE = FOLDER / "labelled.npz"


@pytest.fixture(scope="module")
def frozen() -> Labelled:
    return load_frozen()


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver(threads=1)


def rows_at_random(labelled: Labelled, count: int, first_ply: int = 0) -> np.ndarray:
    rows = np.flatnonzero(plies_of(labelled) >= first_ply)
    return np.random.default_rng(1).permutation(rows)[:count]


def board_of(moves: str) -> tuple[str, ...]:
    """Seven texts of X and O, from the bottom up."""
    board = [""] * 7
    for ply, move in enumerate(moves):
        board[int(move) - 1] += "XO"[ply % 2]
    return tuple(board)


# --- the frozen set ---


def test_the_frozen_set_has_7000_positions_distinct_also_up_to_mirroring_on_plies_0_to_35(frozen):
    boards = {min(board, board[::-1]) for board in map(board_of, frozen.names)}
    assert len(boards) == len(frozen.names) == 7000
    counts = np.bincount([len(moves) for moves in frozen.names])
    assert len(counts) == 36 and counts.min() >= 1 and counts.max() <= 240
    assert FROZEN_FILE.stat().st_size < 200_000


def test_every_frozen_position_is_decisive_and_none_is_lost(frozen):
    for moves, row in zip(frozen.names, frozen.scores.tolist(), strict=True):
        board = board_of(moves)
        scores = [score for column, score in zip(board, row, strict=True) if len(column) < 6]
        assert all(score == -100 for column, score in zip(board, row, strict=True) if len(column) == 6)
        assert all(-21 <= score <= 21 for score in scores)
        outcomes = {(score > 0) - (score < 0) for score in scores}
        assert len(outcomes) >= 2 and max(scores) >= 0, moves


def test_frozen_states_are_those_after_their_moves(frozen):
    for row in rows_at_random(frozen, 200):
        position = after(frozen.names[row])
        assert not position.terminal
        assert position.state.tolist() == frozen.states[row].tolist()
        assert position.legal_mask.tolist() == (frozen.scores[row] != NO_SCORE).tolist()


def check_scores(frozen: Labelled, solver: Solver, rows: np.ndarray) -> None:
    assert np.array_equal(solver.column_scores_all(frozen.states[rows]), frozen.scores[rows])
    assert np.array_equal(solver.solve_all(frozen.value_states[rows]), frozen.value_scores[rows])


def test_frozen_scores_are_the_solvers(frozen, solver):
    check_scores(frozen, solver, rows_at_random(frozen, 50, first_ply=16))
    early = np.flatnonzero(plies_of(frozen) < 8)
    check_scores(frozen, solver, np.random.default_rng(2).permutation(early)[:8])


@pytest.mark.slow
def test_500_frozen_scores_are_the_solvers_without_its_book(frozen):
    check_scores(frozen, Solver(threads=1, book=False), rows_at_random(frozen, 500, first_ply=12))
    check_scores(frozen, Solver(threads=1), rows_at_random(frozen, 500))


def test_value_positions_are_children_with_wins_draws_and_losses(frozen, solver):
    assert len(frozen.value_states) == len(frozen.value_scores) > 6900
    _, terminal, _ = solver._kernels.describe_all(frozen.value_states)
    assert not terminal.any()
    shares = np.bincount(np.sign(frozen.value_scores) + 1) / len(frozen.value_scores)
    assert len(shares) == 3 and shares.min() > 0.05
    children = np.load(FROZEN_FILE)["children"]
    for row in np.flatnonzero(children >= 0)[:300]:
        value_row = int((children[:row] >= 0).sum())
        child = after(frozen.names[row]).play(int(children[row]))
        assert child.state.tolist() == frozen.value_states[value_row].tolist()
        assert frozen.scores[row, children[row]] == -frozen.value_scores[value_row]
    assert np.bincount(children + 1)[1:].min() > 500  # any column, not always the first


def test_a_second_solver_agrees_with_500_frozen_positions(frozen):
    bitbully = pytest.importorskip("bitbully")
    agent = bitbully.BitBully("12-ply-dist")
    for i, row in enumerate(rows_at_random(frozen, 500)):
        columns = [int(move) - 1 for move in frozen.names[row]]
        scores = frozen.scores[row]
        assert agent.mtdf(bitbully.Board(columns)) == scores.max(), frozen.names[row]
        if i % 4 == 0 and len(columns) >= 10:  # every column that does not win at once
            for column in np.flatnonzero((scores != NO_SCORE) & (scores < 21 - len(columns) // 2)).tolist():
                assert agent.mtdf(bitbully.Board([*columns, column])) == -scores[column], (frozen.names[row], column)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1, 1, 2, 3, 4, 5, 6], False),
        ([-1, -1, -2, -3, -4, -5, -6], False),
        ([0, 0, 0, 0, 0, 0, 0], False),
        ([0, 0, 0, 0, 0, 0, 1], True),
        ([0, 0, 0, -1, 0, 0, 0], True),
        ([NO_SCORE, NO_SCORE, -3, NO_SCORE, -4, -5, -3], False),
        ([NO_SCORE, NO_SCORE, 3, NO_SCORE, NO_SCORE, NO_SCORE, NO_SCORE], False),
        ([NO_SCORE, NO_SCORE, 3, NO_SCORE, -3, NO_SCORE, NO_SCORE], True),
    ],
)
def test_decisive_is_about_outcomes_of_columns_that_can_be_played(scores, expected):
    row = np.array([scores], np.int8)
    assert decisive(row).tolist() == [expected]


# --- making it ---


def make(folder: Path, *settings: int, threads: int = 2) -> bytes:
    main(["--threads", str(threads)], folder, *settings)
    return (folder / "labelled.npz").read_bytes()


def test_the_same_seed_makes_the_same_file_on_any_number_of_threads(tmp_path, solver):
    first = make(tmp_path, 30, threads=1)
    assert first == make(tmp_path, 30)
    assert first != make(tmp_path, 30, 1)
    made = load_frozen(tmp_path)
    assert len(made.names) == 30 and made.names == sorted(made.names, key=lambda moves: (len(moves), moves))
    assert np.array_equal(made.scores, solver.column_scores_all(made.states))
    assert np.array_equal(made.value_scores, solver.solve_all(made.value_states))
    assert decisive(made.scores).all()


def test_a_position_whose_every_child_is_over_has_no_value_position():
    actions = np.array([[5, 0, -1], [5, 0, 1]], np.int8)
    # after two plies 20 is a win at once, so the first row's only other column is the last one; the second has none
    scores = np.full((2, 7), NO_SCORE, np.int8)
    scores[0, [2, 6]] = 20, -3
    scores[1, [2, 6]] = 20, 20
    children = module._pick_children(actions, scores, np.random.default_rng(1))
    assert children.tolist() == [6, -1]
    last_square = np.array([[NO_SCORE] * 3 + [0] + [NO_SCORE] * 3])
    assert module._pick_children(np.zeros((1, 41), np.int8), last_square, np.random.default_rng(1)).tolist() == [-1]


@pytest.mark.slow
def test_the_frozen_set_can_be_made_anew(tmp_path):
    assert make(tmp_path) == FROZEN_FILE.read_bytes()
