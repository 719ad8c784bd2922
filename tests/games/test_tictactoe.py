"""Tic-tac-toe against positions drawn by hand and the counts of the whole game."""

from collections import Counter

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from alphazero.players.baselines import action_values
from tests.game.perft import count_games

GAME = registry.load("tictactoe").game
KERNELS = Kernels(GAME)

# name: (squares played, the board they lead to, winner)
FINISHED = {
    "top row": ("a1 a2 b1 b2 c1", "XXX OO. ...", "X"),
    "middle row": ("a1 a2 b1 b2 c3 c2", "XX. OOO ..X", "O"),
    "bottom row": ("a3 a1 b3 b1 c3", "OO. ... XXX", "X"),
    "left column": ("b1 a1 b2 a2 c3 a3", "OX. OX. O.X", "O"),
    "middle column": ("b1 a1 b2 a2 b3", "OX. OX. .X.", "X"),
    "right column": ("a1 c1 b2 c2 a3 c3", "X.O .XO X.O", "O"),
    "falling diagonal": ("a1 b1 b2 c1 c3", "XOO .X. ..X", "X"),
    "rising diagonal": ("a1 a3 b1 b2 c3 c1", "XXO .O. O.X", "O"),
    "the last square": ("a1 b1 c1 a2 b2 c2 b3 a3 c3", "XOX OXO OXX", "X"),
    "two lines at once": ("a1 b1 c1 c2 c3 a2 a3 b3 b2", "XOX OXO XOX", "X"),
    "a full board": ("a1 b1 c1 b2 a2 a3 b3 c3 c2", "XOX XOX OXO", ""),
}


def play(text: str) -> Position:
    return GAME.position(text)


def drawn(position: Position) -> str:
    """The board as in the drawings above: three rows from the top, less their numbers."""
    return " ".join(line[2:].replace(" ", "") for line in str(position).splitlines()[:-1])


@pytest.mark.parametrize(("squares", "board", "winner"), FINISHED.values(), ids=FINISHED)
def test_wins_and_draws(squares: str, board: str, winner: str):
    before, final = play(squares.rpartition(" ")[0]), play(squares)
    assert drawn(final) == board
    assert not before.terminal
    assert final.terminal
    assert final.outcome == {"X": 1, "O": -1, "": 0}[winner]
    assert final.legal_actions == []


def test_the_network_sees_own_and_other_stones():
    planes = play("a1 c2 b3").observation
    np.testing.assert_array_equal(planes[0], [[0, 0, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(planes[1], [[1, 0, 0], [0, 0, 0], [0, 1, 0]])


def test_perft():
    """Sequences of squares that do not go on after the end: 9!/(9-d)! to ply 5, then fewer."""
    counts = [count_games(KERNELS, depth) for depth in range(10)]
    assert counts == [1, 9, 72, 504, 3024, 15120, 54720, 148176, 200448, 127872]


@pytest.fixture(scope="module")
def whole_game() -> dict[bytes, tuple[int, bool, int]]:
    """Every position: in how many ways it is reached, whether it is over, its outcome for the first player."""
    found = {}
    layer = Counter({KERNELS.start_states(1).tobytes(): 1})
    for ply in range(10):
        states = np.frombuffer(b"".join(layer), np.uint64).reshape(-1, 2)
        masks, terminal, values = KERNELS.describe_all(states)
        following: Counter[bytes] = Counter()
        for i, (key, ways) in enumerate(layer.items()):
            found[key] = ways, bool(terminal[i]), int(values[i]) * (1 if ply % 2 == 0 else -1)
            children = states[i].repeat(masks[i].sum()).reshape(2, -1).T.copy()
            KERNELS.play(children, np.zeros(len(children), np.int8), np.flatnonzero(masks[i]))
            for child in children:
                following[child.tobytes()] += ways
        layer = following
    assert not layer
    return found


def test_the_whole_game_has_5478_positions_and_958_ends(whole_game: dict[bytes, tuple[int, bool, int]]):
    ends = Counter(outcome for _, terminal, outcome in whole_game.values() if terminal)
    assert len(whole_game) == 5478
    assert ends == {1: 626, -1: 316, 0: 16}
    assert ends.total() == 958


def test_255168_games_can_be_played(whole_game: dict[bytes, tuple[int, bool, int]]):
    games_by_outcome: Counter[int] = Counter()
    for ways, terminal, outcome in whole_game.values():
        if terminal:
            games_by_outcome[outcome] += ways
    assert games_by_outcome == {1: 131184, -1: 77904, 0: 46080}
    assert games_by_outcome.total() == 255168


def test_765_positions_up_to_symmetry(whole_game: dict[bytes, tuple[int, bool, int]]):
    states = np.frombuffer(b"".join(whole_game), np.uint64).reshape(-1, 2).copy()
    assert len(np.unique(KERNELS.canonical(states)[0], axis=0)) == 765


def test_perfect_play_is_a_draw():
    np.testing.assert_array_equal(action_values(KERNELS, 9)(KERNELS.start_states(1)), np.zeros((1, 9)))


def test_answering_the_corner_with_an_edge_loses():
    """After a1 only b2 draws; the others lose, and the mistake is punished."""
    values = action_values(KERNELS, 8)(play("a1").state[None].copy())[0]
    assert [GAME.format_action(int(action), play("a1").state) for action in np.flatnonzero(values == 0)] == ["b2"]
    assert (values[[1, 2, 3, 5, 6, 7, 8]] < 0).all()
    assert values[0] == -1e9


def test_a_position_tells_where_the_game_is():
    game = registry.load("tictactoe").game
    assert repr(game.position("b2 a1")) == "<tictactoe after 2 plies: player 1 to move>"
    assert repr(game.position("a1 a2 b1 b2 c1")) == "<tictactoe after 5 plies: the game is over>"
