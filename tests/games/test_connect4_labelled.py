"""The frozen set of labelled Connect Four positions, the command that makes it, and files of one's own."""

import json
from pathlib import Path

import numpy as np
import pytest

from alphazero.commands.shared import run_command
from alphazero.errors import InputError
from games.connect4.solver import NO_SCORE, Solver
from games.connect4.solver import labelled as module
from games.connect4.solver.confirmation import confirm
from games.connect4.solver.labelled import FROZEN_FILE, Labelled, best_scores, decisive, load_file, load_frozen, main
from games.connect4.solver.notation import GAME

SOLVED = Path(__file__).parent / "connect4_scores.json"

MOVES = "2252576253462244111563365343671351441"
SCORES = [None, None, None, None, None, -1, -2]  # after MOVES, where five columns are full
LINE = json.dumps({"moves": MOVES, "scores": SCORES})
OPEN_LINE = '{"moves": "121212", "scores": [18, -2, -2, -2, -2, -2, -2]}'


@pytest.fixture(scope="module")
def frozen() -> Labelled:
    return load_frozen()


@pytest.fixture(scope="module")
def solver() -> Solver:
    return Solver(threads=1)


def state_after(moves: str) -> np.ndarray:
    return GAME.position([int(move) - 1 for move in moves]).state


def rows_at_random(labelled: Labelled, count: int, first_ply: int = 0) -> np.ndarray:
    rows = [row for row, moves in enumerate(labelled.moves) if len(moves) >= first_ply]
    return np.random.default_rng(1).permutation(rows)[:count]


def board_of(moves: str) -> tuple[str, ...]:
    """Seven texts of X and O, from the bottom up."""
    board = [""] * 7
    for ply, move in enumerate(moves):
        board[int(move) - 1] += "XO"[ply % 2]
    return tuple(board)


# --- the frozen set ---


def test_the_frozen_set_has_7000_positions_distinct_also_up_to_mirroring(frozen):
    boards = {min(board, board[::-1]) for board in map(board_of, frozen.moves)}
    assert len(boards) == len(frozen.moves) == 7000
    assert frozen.states.shape == (7000, 2) and frozen.states.dtype == np.uint64
    assert frozen.column_scores.shape == (7000, 7) and frozen.column_scores.dtype == np.int8


def test_the_frozen_set_is_spread_over_plies_0_to_35(frozen):
    counts = np.bincount([len(moves) for moves in frozen.moves])
    assert len(counts) == 36 and counts.min() >= 1 and counts.max() <= 240


def test_every_frozen_position_is_decisive_and_none_is_lost(frozen):
    for moves, row in zip(frozen.moves, frozen.column_scores.tolist(), strict=True):
        board = board_of(moves)
        scores = [score for column, score in zip(board, row, strict=True) if len(column) < 6]
        assert all(score == -100 for column, score in zip(board, row, strict=True) if len(column) == 6)
        assert all(-21 <= score <= 21 for score in scores)
        outcomes = {(score > 0) - (score < 0) for score in scores}
        assert len(outcomes) >= 2 and max(scores) >= 0, moves


def test_frozen_states_are_those_after_their_moves(frozen):
    for row in rows_at_random(frozen, 200):
        position = GAME.position([int(move) - 1 for move in frozen.moves[row]])
        assert not position.terminal
        assert position.state.tolist() == frozen.states[row].tolist()
        assert position.legal_mask.tolist() == (frozen.column_scores[row] != NO_SCORE).tolist()
        assert state_after(frozen.value_moves[row]).tolist() == frozen.value_states[row].tolist()


def test_no_position_of_the_frozen_set_is_over(frozen):
    for states in (frozen.states, frozen.value_states):
        own, opponent = (states[:, i] for i in range(2))
        for stones in (own, opponent):
            for line in (1, 7, 6, 8):
                ones = [stones >> np.uint64(line * i) for i in range(4)]
                assert not np.bitwise_and.reduce(ones).any()
        assert np.bitwise_count(own | opponent).max() < 42


def check_scores(frozen: Labelled, solver: Solver, rows: np.ndarray) -> None:
    assert np.array_equal(solver.column_scores_all(frozen.states[rows]), frozen.column_scores[rows])
    assert np.array_equal(solver.solve_all(frozen.value_states[rows]), frozen.value_scores[rows])


def test_frozen_scores_are_the_solvers(frozen, solver):
    check_scores(frozen, solver, rows_at_random(frozen, 150, first_ply=16))
    early = np.flatnonzero([len(moves) < 8 for moves in frozen.moves])
    check_scores(frozen, solver, np.random.default_rng(2).permutation(early)[:20])


@pytest.mark.slow
def test_500_frozen_scores_are_the_solvers_without_its_book(frozen):
    check_scores(frozen, Solver(threads=1, book=False), rows_at_random(frozen, 500, first_ply=12))
    check_scores(frozen, Solver(threads=1), rows_at_random(frozen, 500))


def test_every_value_position_is_a_child_of_its_labelled_position(frozen):
    assert len(frozen.value_moves) == len(frozen.value_states) == len(frozen.value_scores) > 6900
    parents = dict(zip(frozen.moves, frozen.column_scores.tolist(), strict=True))
    for moves, score in zip(frozen.value_moves, frozen.value_scores.tolist(), strict=True):
        assert parents[moves[:-1]][int(moves[-1]) - 1] == -score


def test_value_positions_have_wins_draws_and_losses_and_come_after_good_and_bad_actions(frozen):
    shares = np.bincount(np.sign(frozen.value_scores) + 1) / len(frozen.value_scores)
    assert len(shares) == 3 and shares.min() > 0.05
    columns = np.array([int(moves[-1]) for moves in frozen.value_moves])
    assert np.bincount(columns)[1:].min() > 500  # any column, not always the first


def test_the_frozen_file_is_small():
    assert FROZEN_FILE.stat().st_size < 200_000


def test_a_second_solver_agrees_with_500_frozen_positions(frozen):
    bitbully = pytest.importorskip("bitbully")
    agent = bitbully.BitBully("12-ply-dist")
    for i, row in enumerate(rows_at_random(frozen, 500)):
        columns = [int(move) - 1 for move in frozen.moves[row]]
        scores = frozen.column_scores[row]
        assert agent.mtdf(bitbully.Board(columns)) == scores.max(), frozen.moves[row]
        if i % 4 == 0 and len(columns) >= 10:  # every column that does not win at once
            for column in np.flatnonzero((scores != NO_SCORE) & (scores < 21 - len(columns) // 2)).tolist():
                assert agent.mtdf(bitbully.Board([*columns, column])) == -scores[column], (frozen.moves[row], column)


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
    assert best_scores(row).tolist() == [max(scores)]


# --- making it ---


def make(path: Path, *arguments) -> bytes:
    assert run_command(main, [*map(str, arguments), "--output", str(path)]) == 0
    return path.read_bytes()


def test_the_same_seed_makes_the_same_file_on_any_number_of_threads(tmp_path, capsys):
    first = make(tmp_path / "a.npz", "--positions", 150, "--threads", 1)
    assert f"150 positions in {tmp_path / 'a.npz'}, {len(first):,} bytes" in capsys.readouterr().out
    assert first == make(tmp_path / "b.npz", "--positions", 150, "--threads", 2)
    make(tmp_path / "c.npz", "--positions", 150, "--seed", 1)
    actions = [np.load(tmp_path / name)["actions"] for name in ("a.npz", "c.npz")]
    assert not np.array_equal(*actions)


def test_a_made_file_loads_as_the_frozen_set_does(tmp_path, monkeypatch, solver):
    make(tmp_path / "a.npz", "--positions", 150, "--seed", 5)
    monkeypatch.setattr(module, "FROZEN_FILE", tmp_path / "a.npz")
    made = load_frozen()
    assert len(made.moves) == 150
    assert list(made.moves) == sorted(made.moves, key=lambda moves: (len(moves), moves))
    assert np.array_equal(made.column_scores, solver.column_scores_all(made.states))
    assert np.array_equal(made.value_scores, solver.solve_all(made.value_states))
    assert decisive(made.column_scores).all()


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
    assert make(tmp_path / "a.npz") == FROZEN_FILE.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--positions", "0"], "between 1 and 7,000"),
        (["--positions", "7001"], "between 1 and 7,000"),
        (["--positions", "many"], "--positions takes a whole number, not 'many'"),
        (["--threads", "0"], "--threads must lie between 1 and 1,024"),
        (["--seed", "-1"], "--seed must lie between 0 and"),
        (["--position", "5"], "did you mean --positions"),
        (
            ["--positions", "1", "--output", "missing/a.npz"],
            "--output takes a file in a folder that exists, not 'missing/a.npz'",
        ),
        (["5"], "unknown argument '5'"),
    ],
)
def test_wrong_settings_end_with_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_command(main, [*arguments, "--threads", "1"] if "--threads" not in arguments else arguments) == 2
    output, errors = capsys.readouterr()
    assert output == "" and errors.startswith("error: ") and errors.count("\n") == 1
    assert message in errors


# --- files of one's own ---


def write(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "positions.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def same(one: Labelled, other: Labelled) -> bool:
    return (
        list(one.moves) == list(other.moves)
        and list(one.value_moves) == list(other.value_moves)
        and all(
            np.array_equal(getattr(one, name), getattr(other, name))
            for name in ("states", "column_scores", "value_states", "value_scores")
        )
    )


def test_a_file_of_moves_and_scores(tmp_path, solver):
    loaded = load_file(write(tmp_path, f"{MOVES} -1", "", "  121212   18 "), solver)
    assert list(loaded.moves) == list(loaded.value_moves) == [MOVES, "121212"]
    assert np.array_equal(loaded.states, [state_after(MOVES), state_after("121212")])
    assert np.array_equal(loaded.value_states, loaded.states)
    assert loaded.column_scores[0].tolist() == [-100, -100, -100, -100, -100, -1, -2]
    assert loaded.column_scores[1, 0] == 18 and loaded.column_scores[1, 1:].max() < 18
    assert loaded.value_scores.tolist() == [-1, 18]
    assert loaded.column_scores.dtype == loaded.value_scores.dtype == np.int8


def test_a_file_of_boards_with_and_without_scores(tmp_path, solver):
    """Of the positions after 121212 and 4453, a score of which is -2 (Pascal Pons' convention)."""
    grid = "\n".join(["......."] * 3)
    spaced = " ".join(grid.replace("\n", "/")) + " / X O . . . . . / X O . . . . . / X O . . . . . X 18"
    loaded = load_file(write(tmp_path, "7/7/7/XO5/XO5/XO5", "7/7/7/7/3O3/2OXX2 X -2", "4453 -2", spaced), solver)
    assert list(loaded.moves) == ["", "", "4453", ""]
    assert np.array_equal(loaded.states, [state_after(text) for text in ("121212", "4453", "4453", "121212")])
    assert loaded.value_scores.tolist() == [18, -2, -2, 18]
    with pytest.raises(InputError, match="write their moves, or leave the program out"):
        confirm(loaded, "cat")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("7/7/7/7/3O3/2OXX2 -1", "line 1, column 19: the score is -2, not -1; correct the line"),
        ("7/7/7/7/3O3/2OXX2 40", "line 1, column 19: 40 is an impossible score; after 4 moves it lies between"),
        ("7/7/7/7/7/3XX2", "line 1: this is no board: X begins"),
        ("7/7/X6/XO5/XO5/XO5", "line 1: the game is over here; there is nothing to solve"),
    ],
)
def test_wrong_boards_are_refused_with_their_line(line, said, tmp_path, solver):
    with pytest.raises(InputError) as caught:
        load_file(write(tmp_path, line), solver)
    assert said in str(caught.value)


def test_a_file_of_json_lines(tmp_path, solver):
    loaded = load_file(write(tmp_path, "", LINE, OPEN_LINE), solver)
    assert list(loaded.moves) == list(loaded.value_moves) == [MOVES, "121212"]
    assert np.array_equal(loaded.states, [state_after(MOVES), state_after("121212")])
    assert loaded.column_scores.tolist() == [
        [-100, -100, -100, -100, -100, -1, -2],
        [18, -2, -2, -2, -2, -2, -2],
    ]
    assert loaded.value_scores.tolist() == [-1, 18]
    assert loaded.column_scores.dtype == loaded.value_scores.dtype == np.int8


def test_json_lines_may_have_other_keys_in_any_order_and_spacing(tmp_path, solver):
    other = json.dumps({"id": [1, 2], "scores": SCORES, "note": MOVES[:3], "moves": MOVES}, separators=(" ,", " : "))
    assert same(load_file(write(tmp_path, other), solver), load_file(write(tmp_path, LINE), solver))


def test_keys_may_be_written_with_escapes(tmp_path, solver):
    escaped = LINE.replace('"scores"', '"s\\u0063ores"')
    assert same(load_file(write(tmp_path, escaped), solver), load_file(write(tmp_path, LINE), solver))


@pytest.mark.parametrize(
    ("line", "column", "score"),
    [("4453 -1", 6, -2), (f"{MOVES} 0", 39, -1), ("121212 -18", 8, 18), ("  4453\t -1 ", 9, -2), ("4453 1", 6, -2)],
)
def test_a_wrong_score_is_refused_where_it_stands(line, column, score, tmp_path, solver):
    path = write(tmp_path, "121212 18", line)
    with pytest.raises(InputError) as caught:
        load_file(path, solver)
    expected = f"{path}, line 2, column {column}: the score is {score}, not {line.split()[1]}; correct the line"
    assert str(caught.value) == expected


def json_line(moves: object = "121212", scores: object = (18, -2, -2, -2, -2, -2, -2)) -> str:
    return json.dumps({"moves": moves, "scores": scores})


# a line, the text at whose beginning the culprit stands, and what is said; "" = the beginning of the line
WRONG_LINES = {
    "not JSON": ('{"moves": "121212", "scores": [18, -2, x]}', "x]", "this is not JSON"),
    "JSON that does not end": ('{"moves": "121212", "scores": [18', None, "this is not JSON"),
    "moves and score": ("121212 18", "8", "this is not JSON"),
    "a list": ("[1, 2]", "", "it must be names and values, moves, scores"),
    "no moves": ('{"scores": [18, -2, -2, -2, -2, -2, -2]}', "", "moves is missing"),
    "no scores": ('{"moves": "121212"}', "", "scores is missing, which must be 7 whole numbers or null"),
    "moves that are a number": (json_line(moves=121212), "", "moves must be a text"),
    "scores that are a text": (json_line(scores="18"), "", "scores must be 7 whole numbers or null, not '18'"),
    "6 scores": (json_line(scores=[18, -2, -2, -2, -2, -2]), "", "7 whole numbers or null"),
    "8 scores": (json_line(scores=[18, -2, -2, -2, -2, -2, -2, -2]), "", "7 whole numbers or null"),
    "a float": (json_line(scores=[18, -2, -2.0, -2, -2, -2, -2]), "", "7 whole numbers or null"),
    "not a number": (json_line(scores=[18, -2, float("nan"), -2, -2, -2, -2]), "NaN", "this is not JSON"),
    "true": (json_line(scores=[18, True, -2, -2, -2, -2, -2]), "", "7 whole numbers or null"),
    "a text": (json_line(scores=[18, "-2", -2, -2, -2, -2, -2]), "", "7 whole numbers or null"),
    "null for an open column": (json_line(scores=[18, -2, -3, None, -5, -6, -7]), "null", "column 4 of the board"),
    "null for the first column": (json_line(scores=[None, -2, -2, -2, -2, -2, -2]), "null", "column 1 of the board"),
    "a number for a full column": (
        json_line(MOVES, [None, None, 2, None, None, -1, -2]), "2, null", "column 3 of the board is full",
    ),
    "a score too high": (json_line(scores=[18, -2, -3, -4, -5, 19, -7]), "19", "19 is an impossible score"),
    "a score too low": (json_line(scores=[18, -2, -3, -4, -5, -6, -19]), "-19", "between -18 and 18"),
    "a huge score": (json_line(scores=[18, -2, -3, -4, 10**30, -6, -7]), "1000", "is an impossible score"),
    "moves after the end": (json_line(moves="12121212"), '2", "sc', "the game was over after 7 moves"),
    "moves that end the game": (json_line(moves="1212121"), '1", "sc', "this move ends the game"),
    "a full column": (json_line(moves="11111121"), '1", "sc', "column 1 is full"),
    "a column that is not there": (json_line(moves="12821"), "821", "'8' is no column"),
    "a letter": (json_line(moves="a"), 'a",', "'a' is no column"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG_LINES)
def test_a_wrong_json_line_is_refused_where_it_is_wrong(what, tmp_path, solver):
    line, culprit, message = WRONG_LINES[what]
    path = write(tmp_path, LINE, "", line)
    with pytest.raises(InputError) as caught:
        load_file(path, solver)
    said = str(caught.value)
    column = len(line) + 1 if culprit is None else line.rindex(culprit) + 1 if culprit else 1
    before = column - 1 if line[column - 2 : column - 1] == " " else column  # an item of a list, or the space before it
    assert any(said.startswith(f"{path}, line 3, column {number}: ") for number in (column, before)), (said, column)
    assert message in said and "\n" not in said


def test_the_column_points_at_the_move_also_when_its_text_stands_elsewhere(tmp_path, solver):
    line = '{"id": 1212121, "moves": "1212121", "scores": [18, -2, -2, -2, -2, -2, -2]}'
    with pytest.raises(InputError) as caught:
        load_file(write(tmp_path, line), solver)
    column = line.index('1", "scores"') + 1
    assert f"line 1, column {column}: this move ends the game" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "place"),
    [(b"", "line 1, column 1"), (b"\n \n", "line 1, column 1"), (b"\xff\xfe\x00", "line 1, column 1")],
)
def test_a_file_without_positions_is_refused(content, place, tmp_path, solver):
    path = tmp_path / "positions.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=place):
        load_file(path, solver)
    with pytest.raises(InputError, match="there is no file"):
        load_file(tmp_path / "missing.txt", solver)


def test_json_lines_and_moves_with_scores_give_the_same_of_solved_positions(tmp_path, solver):
    solved = json.loads(SOLVED.read_text())
    values = [{"moves": moves, "scores": scores} for part in ("middle", "end") for moves, scores in solved[part]]
    assert len(values) > 100
    as_json = load_file(write(tmp_path, *map(json.dumps, values)), solver)
    pons = [f"{value['moves']} {max(s for s in value['scores'] if s is not None)}" for value in values]
    assert same(as_json, load_file(write(tmp_path, *pons), solver))
    expected = [[-100 if score is None else score for score in value["scores"]] for value in values]
    assert as_json.column_scores.tolist() == expected


def test_the_frozen_file_holds_what_the_loader_needs():
    arrays = np.load(FROZEN_FILE)
    assert {name: array.dtype for name, array in arrays.items()} == {
        "actions": np.int8,
        "column_scores": np.int8,
        "children": np.int8,
    }
