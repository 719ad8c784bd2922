"""Files of positions with their exact scores: Connect Four's, as Pascal Pons' test files, and Othello's, as Edax'."""

from pathlib import Path

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import InputError
from alphazero.matches.judge import load_file, read_positions
from games.connect4.solver import NO_SCORE, Solver
from games.othello.solver import Solver as OthelloSolver

GAMES = {name: registry.load(name).game for name in ("connect4", "othello")}
SOLVE = {"connect4": Solver(1).column_scores_all, "othello": OthelloSolver(GAMES["othello"], 1).move_scores}

LATE = "2252576253462244111563365343671351441"  # five columns are full; those left score -1 and -2
# FForum's problem 1 as a line of fforum-1-19.obf, which comes with Edax (abulmo/edax-reversi, commit 75848c8)
BOARD = "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO--"
FFO_1 = f"{BOARD} X; G8:+18; H1:+12; H7:+6; A2:+6; A3:+4; B1:-4; A4:-22; G2:-24;"


def write(folder: Path, content: str) -> Path:
    (folder / "positions").write_text(content)
    return folder / "positions"


def test_a_file_of_moves_and_scores_boards_and_remarks(tmp_path: Path):
    spaced = " ".join("/".join(["......."] * 3)) + " / X O . . . . . / X O . . . . . / X O . . . . . X 18"
    path = write(tmp_path, f"\ufeff{LATE} -1\r\n\n  121212   18 \n% a remark\n7/7/7/7/3O3/2OXX2 X -2\n4453\n{spaced}\n")
    found = load_file(path, GAMES["connect4"], SOLVE["connect4"])
    assert found.names == ["line 1", "line 3", "line 5", "line 6", "line 7"]
    moves = [LATE, "121212", "4453", "4453", "121212"]
    assert found.states.tolist() == [GAMES["connect4"].position(text).state.tolist() for text in moves]
    assert found.value_scores.tolist() == [-1, 18, -2, -2, 18] and np.array_equal(found.value_states, found.states)
    assert found.scores[0].tolist() == [NO_SCORE] * 5 + [-1, -2]


def test_a_file_of_boards_with_the_scores_of_their_moves(tmp_path: Path):
    """A line of moves besides, from the game that Takizawa's solution ends with (arXiv:2310.19387v3, figure 1)."""
    moves = "F5D6C3D3C4F4F6F3E6E7D7C5B6D8C6C7D2B5A5A6A7G5E3B4C8G6G4C2E8D1F7E2G3H4F1E1F2G1B1F8G8B3H3B2H5B7A3A4A1A2C1H2"
    path = write(tmp_path, f"{FFO_1}\n{FFO_1.lower().replace('x;', 'x ; ')}\n{moves} 0\n")
    found = load_file(path, GAMES["othello"], SOLVE["othello"])
    assert found.value_scores.tolist() == [18, 18, 0] and (found.states[0] == found.states[1]).all()
    [known, *_] = read_positions(path, GAMES["othello"])
    assert {int(found.scores[0, action]) for action in known.move_scores} == {18, 12, 6, 4, -4, -22, -24}


def test_only_wanted_positions_are_solved(tmp_path: Path):
    path = write(tmp_path, "4453\n121212\n")
    found = load_file(path, GAMES["connect4"], SOLVE["connect4"], lambda position: position.ply > 5)
    assert found.names == ["line 2"]
    with pytest.raises(InputError, match="too far"):
        load_file(path, GAMES["connect4"], SOLVE["connect4"], lambda position: False)


@pytest.mark.parametrize(
    ("game", "content", "words"),
    [
        ("connect4", "4453 -2\n4453 -1", "line 2: the score is -2, not -1"),
        ("connect4", "4453 19", "line 1: the score is -2, not 19"),
        ("connect4", "44444444 1", "line 1: '4' is not a legal action"),
        ("connect4", "44x3 1", "line 1: 'x' is not a legal action"),
        ("connect4", "1212121 1", "line 1: the game is over"),
        ("connect4", "7/7/7/7/7/3XX2", "line 1: .*X begins"),
        ("connect4", "\n \r\n% nothing\n", "holds no positions"),
        ("connect4", "\x00\x01\ufffd", "line 1: "),
        ("othello", "--XXXXX--OOOXX-O X", "line 1: .* 64 cells"),
        ("othello", f"\n{BOARD} X; G8:+18; H1:+10", "line 2: the score of h1 is 12, not 10"),
        ("othello", f"{BOARD} X; E4:+18", "line 1: 'E4' is not a legal action"),
        ("othello", f"{'X' * 64} X", "line 1: the game is over"),
        ("othello", "[1]", "line 1: "),
    ],
)
def test_wrong_files_are_refused_with_their_line(game: str, content: str, words: str, tmp_path: Path):
    with pytest.raises(InputError, match=words):
        load_file(write(tmp_path, content), GAMES[game], SOLVE[game])
    with pytest.raises(InputError, match="there is no file"):
        read_positions(tmp_path / "missing", GAMES[game])
