"""Connect Four against positions drawn by hand, an independent reading of the board, and counts from elsewhere."""

import itertools

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import IllegalAction
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from games.connect4.game import has_four
from tests.game.perft import count_games

GAME = registry.load("connect4").game
KERNELS = Kernels(GAME)

# name: (columns played, the board they lead to, winner); the last stone makes the four
FINISHED = {
    "up from the left bottom": (
        "1616161",
        """
        .......
        .......
        X......
        X....O.
        X....O.
        X....O.
        """,
        "X",
    ),
    "rising to the right top": (
        "76657455777765641624",
        """
        ......O
        .....OX
        ....OXO
        ...OOXX
        ...OXXX
        XX.OOOX
        """,
        "O",
    ),
    "falling to the right bottom": (
        "5746564544",
        """
        .......
        .......
        ...O...
        ...XO..
        ...XXO.
        ...XXOO
        """,
        "O",
    ),
    "seven in one row": (
        "223173171115212622763777665663535345544",
        """
        OOO.XXO
        XXO.OOX
        OXO.XOO
        XXXXXXX
        XOOOXOO
        OXXXOOX
        """,
        "X",
    ),
    "with the last stone of a full board": (
        "225462267577722457476556314544163363111313",
        """
        XXOOOXO
        XOOXXOO
        OXOXOOX
        XOOXXXO
        XOXOOOX
        OXXOXXX
        """,
        "O",
    ),
    "nobody on a full board": (
        "721327737112271335112373255555466666644444",
        """
        OXOOOXX
        XXOXXOO
        XXXOOXX
        XOOXXOX
        OXOOOXO
        XOOXOOX
        """,
        "",
    ),
}

# four squares that follow each other in a layout of six bits a column, but are no line on the board
UNFINISHED = {
    "up, two and two": (
        "33463643343",
        """
        ..X....
        ..X....
        ..O....
        ..XO...
        ..OX.O.
        ..XX.O.
        """,
    ),
    "rising": (
        "327333166337765",
        """
        ..X....
        ..O....
        ..O....
        ..X..OX
        ..O..XO
        XOX.XOX
        """,
    ),
    "falling": (
        "32222322114333",
        """
        .O.....
        .XO....
        .XX....
        .OO....
        OXO....
        XOXX...
        """,
    ),
    "across": (
        "5111617",
        """
        .......
        .......
        O......
        O......
        X......
        O...XXX
        """,
    ),
}


def play(columns: str) -> Position:
    return GAME.position([int(column) - 1 for column in columns])


def drawn(position: Position) -> list[str]:
    """The rows of the board from the top, as in the drawings above."""
    return [line.replace(" ", "") for line in str(position).splitlines()[:-1]]


@pytest.mark.parametrize(("columns", "board", "winner"), FINISHED.values(), ids=FINISHED)
def test_wins_and_draws(columns: str, board: str, winner: str):
    before, final = play(columns[:-1]), play(columns)
    assert drawn(final) == board.split()
    assert not before.terminal
    assert final.terminal
    assert final.outcome == {"X": 1, "O": -1, "": 0}[winner]
    assert final.legal_actions == []
    with pytest.raises(IllegalAction, match="over"):
        final.play(0)


@pytest.mark.parametrize(("columns", "board"), UNFINISHED.values(), ids=UNFINISHED)
def test_lines_do_not_wrap_round_the_edge(columns: str, board: str):
    position = play(columns)
    assert drawn(position) == board.split()
    assert not position.terminal


def test_the_network_sees_own_and_other_stones_with_the_top_row_first():
    planes = play("445").observation
    own, other = np.zeros((6, 7)), np.zeros((6, 7))
    own[4, 3] = 1  # O's stone, on top of X's; O is to move
    other[5, 3] = other[5, 4] = 1
    np.testing.assert_array_equal(planes[:4], [own, other, np.zeros((6, 7)), np.zeros((6, 7))])
    np.testing.assert_array_equal(planes[5], np.ones((6, 7)))


@pytest.mark.parametrize(
    ("moves", "rows"),
    [("", [1, 3, 5]), ("4", [2, 4, 6]), ("44", [1, 3, 5]), ("1122334", [2, 4, 6]), ("12345671", [1, 3, 5])],
)
def test_the_network_sees_the_rows_that_are_the_movers_when_columns_fill_up_in_turns(moves, rows):
    """The first player gets the odd rows, counted from below, the second the even ones (Allis 1988)."""
    plane = play(moves).observation[4]
    for row in range(1, 7):
        np.testing.assert_array_equal(plane[6 - row], np.full(7, row in rows))


def test_the_network_sees_the_empty_squares_that_would_complete_four():
    """Against the geometry of the board, on random positions of every ply."""
    rng = np.random.default_rng(0)
    lines = lines_of_four()
    num_seen = 0
    for _ in range(30):
        position = GAME.start()
        while not position.terminal:
            own, other = (position.observation[i].astype(bool) for i in range(2))
            for stones, plane in ((own, position.observation[2]), (other, position.observation[3])):
                expected = np.zeros((6, 7))
                for line in lines:
                    filled = [stones[5 - row, column] for column, row in line]
                    if sum(filled) == 3:
                        column, row = line[filled.index(False)]
                        expected[5 - row, column] = not (own[5 - row, column] or other[5 - row, column])
                np.testing.assert_array_equal(plane, expected)
                num_seen += int(expected.sum())
            position = position.play(int(rng.choice(position.legal_actions)))
    assert num_seen > 100


def test_the_network_sees_the_lines_that_can_still_become_four():
    """Against the geometry of the board, on random positions of every ply; one by hand."""
    planes = play("1").observation[6:]  # one stone of the opponent's, in the corner
    expected = np.zeros((18, 6, 7))
    expected[3, 2:, 0] = expected[9, 5, :4] = 1  # up, across
    expected[15, [5, 4, 3, 2], [0, 1, 2, 3]] = 1  # diagonally
    np.testing.assert_array_equal(planes, expected)
    rng = np.random.default_rng(1)
    lines = lines_of_four()
    assert len(lines) == 69
    largest = np.zeros(18)
    for _ in range(30):
        position = GAME.start()
        while True:
            sides = position.observation[:2]
            expected = np.zeros((18, 6, 7))
            for line in lines:
                (column, row), (next_column, next_row) = line[:2]
                direction = 0 if next_column == column else 1 if next_row == row else 2
                own, other = (int(sum(stones[5 - row, column] for column, row in line)) for stones in sides)
                for side, mine, theirs in ((0, own, other), (1, other, own)):
                    if 0 < mine < 4 and theirs == 0:
                        for column, row in line:
                            expected[6 * direction + 3 * side + mine - 1, 5 - row, column] += 1
            np.testing.assert_array_equal(position.observation[6:], expected)
            largest = np.maximum(largest, expected.max(axis=(1, 2)))
            if position.terminal:
                break
            position = position.play(int(rng.choice(position.legal_actions)))
    assert largest.min() > 0


def lines_of_four() -> list[tuple[tuple[int, int], ...]]:
    """The (column, row) squares of every line of four, from the geometry of the board alone."""
    steps = [(0, 1), (1, 0), (1, 1), (1, -1)]
    lines = [
        tuple((column + i * right, row + i * up) for i in range(4))
        for column, row, (right, up) in itertools.product(range(7), range(6), steps)
    ]
    return [line for line in lines if all(0 <= column < 7 and 0 <= row < 6 for column, row in line)]


def stones_of(squares) -> np.uint64:
    return np.uint64(sum(1 << 7 * column + row for column, row in squares))


def test_all_69_lines_win_and_three_stones_do_not():
    lines = lines_of_four()
    assert len(lines) == 69
    for line in lines:
        assert has_four(stones_of(line))
        for missing in line:
            assert not has_four(stones_of(square for square in line if square != missing))


# distinct positions: OEIS A212693; to ply 6 no game is over, so perft is 7^n
PERFT = [1, 7, 49, 343, 2401, 16807, 117649, 823536, 5673234, 39394572]
DISTINCT = [1, 7, 49, 238, 1120, 4263, 16422, 54859]


@pytest.mark.parametrize("depth", range(8))
def test_perft(depth: int):
    assert count_games(KERNELS, depth) == PERFT[depth]


@pytest.mark.slow
@pytest.mark.parametrize("depth", [8, 9])
def test_deep_perft(depth: int):
    assert count_games(KERNELS, depth) == PERFT[depth]


def test_distinct_positions():
    states = KERNELS.start_states(1)
    for ply, expected in enumerate(DISTINCT):
        assert len(states) == expected, f"after {ply} plies"
        masks, _, _ = KERNELS.describe_all(states)
        rows, actions = np.nonzero(masks)
        states = states[rows]
        KERNELS.play(states, np.zeros(len(states), np.int8), actions)
        states = np.unique(states, axis=0)
