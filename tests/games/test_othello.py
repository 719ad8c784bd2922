"""Othello against positions drawn by hand, published counts, and the lines that solved it."""

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import IllegalAction
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from games.othello.game import Othello
from tests.game.perft import count_games
from tests.games.othello_facts import FACTS

OTHELLO, OTHELLO6 = (registry.load(name).game for name in ("othello", "othello6"))
KERNELS = {game.name: Kernels(game) for game in (OTHELLO, OTHELLO6)}
each_size = pytest.mark.parametrize("game", [OTHELLO, OTHELLO6], ids=["8x8", "6x6"])


def from_drawing(drawing: str, mover: str, game: Othello = OTHELLO) -> Position:
    """The position of a drawn board: X, O and dots, row by row."""
    rows = drawing.split()
    words = [0, 0]
    for row, line in enumerate(rows):
        for col, mark in enumerate(line):
            if mark != ".":
                words[mark != mover] |= 1 << 8 * row + col
    assert len(rows) == game.size and all(len(line) == game.size for line in rows)
    return Position(game, np.array(words, np.uint64), "XO".index(mover), ())


def drawn(position: Position) -> str:
    """The board as in the drawings: rows without their numbers."""
    return " ".join(line[1:].replace(" ", "") for line in str(position).splitlines()[1:-1])


def legal(position: Position) -> str:
    return " ".join(position.format(action) for action in position.legal_actions)


EMPTY_ROW = "........"
STAR = "X..X..X. .O.O.O.. ..OOO... XOO.OOOX ..OOO... .O.O.O.. X..O..X. ...X...."


def test_the_start():
    start = OTHELLO.start()
    assert drawn(start) == " ".join([EMPTY_ROW] * 3 + ["...OX...", "...XO..."] + [EMPTY_ROW] * 3)
    assert legal(start) == "d3 c4 f5 e6"
    assert drawn(OTHELLO6.start()) == "...... ...... ..OX.. ..XO.. ...... ......"
    assert legal(OTHELLO6.start()) == "c2 b3 e4 d5"


def test_a_disc_turns_over_all_lines_in_eight_directions_and_nothing_else():
    after = from_drawing(STAR, "X").play(OTHELLO.parse_action("d4", np.zeros(2, np.uint64)))
    assert drawn(after) == "X..X..X. .X.X.X.. ..XXX... XXXXXXXX ..XXX... .X.X.X.. X..X..X. ...X...."
    assert after.to_play == 1


def test_a_line_without_an_own_disc_at_its_end_is_not_turned():
    position = from_drawing("XO.OOOOO " + " ".join([EMPTY_ROW] * 7), "X")
    after = position.play(position.parse("c1"))
    assert drawn(after).startswith("XXXOOOOO")  # to the right the line meets the edge


def test_lines_do_not_wrap_round_the_edge():
    """h1 and a2 are neighbours as bits, not on the board."""
    position = from_drawing("......XO OX...... " + " ".join([EMPTY_ROW] * 6), "X")
    assert legal(position) == "pass"  # X would enclose h1 and a2 if rows went on into each other
    assert legal(from_drawing("......XO X....... " + " ".join([EMPTY_ROW] * 6), "O")) == "f1"


def test_who_cannot_move_must_pass_and_the_board_stays():
    position = from_drawing("OX...... " + " ".join([EMPTY_ROW] * 7), "X")
    assert legal(position) == "pass"
    after = position.play(64)
    assert after.to_play == 1 and drawn(after) == drawn(position) and legal(after) == "c1"
    with pytest.raises(IllegalAction, match=r"is not legal here \(legal: c1\)"):
        after.play(64)


@pytest.mark.parametrize(
    ("drawing", "outcome"),
    [
        (" ".join(["XXXXXXXX"] * 4 + ["OOOOOOOO"] * 4), 0),
        (" ".join(["XXXXXXXX"] * 3 + ["OOOOOOOO"] * 5), -1),
        (" ".join(["XXX....."] + [EMPTY_ROW] * 7), 1),  # all discs are of one colour
        (" ".join(["XX....OO"] + [EMPTY_ROW] * 7), 0),  # nobody can move
    ],
)
def test_the_end(drawing: str, outcome: int):
    for mover in "XO":
        position = from_drawing(drawing, mover)
        assert position.terminal and position.legal_actions == []
        assert position.outcome == outcome


def test_the_network_sees_discs_moves_and_the_board():
    planes = OTHELLO.position("d3").observation
    assert [int(plane.sum()) for plane in planes] == [1, 4, 3, 3, 0, 64]
    assert planes[0, 4, 4] == 1  # e5, all that O has left
    assert {(int(r), int(c)) for r, c in np.argwhere(planes[2])} == {(2, 2), (2, 4), (4, 2)}  # c3, e3, c5
    assert {(int(r), int(c)) for r, c in np.argwhere(planes[3])} == {(4, 5), (5, 4), (5, 5)}  # f5, e6, f6 for X


@each_size
def test_the_network_sees_what_wins_at_once(game: Othello):
    """As trying all moves says: the game is over then, and the other one, to move there, has lost."""
    rng, seen = np.random.default_rng(0), 0
    for _ in range(40):
        position = game.start()
        while not position.terminal:
            after = {action: position.play(action) for action in position.legal_actions if action < game.size**2}
            wins = {a for a, end in after.items() if end.terminal and end.outcome == (-1 if position.to_play else 1)}
            assert set(np.flatnonzero(position.observation[4]).tolist()) == wins
            seen += len(wins)
            position = position.play(int(rng.choice(position.legal_actions)))
    assert seen > 10


@each_size
def test_notation(game: Othello):
    state = game.start().state
    for action in range(game.num_actions):
        assert game.parse_action(game.format_action(action, state).upper(), state) == action
    for wrong in ("", "a", "a0", f"a{game.size + 1}", "z1", "a11", "passs"):
        with pytest.raises(ValueError):
            game.parse_action(wrong, state)


def count_without_passes(game: Othello, depth: int) -> list[int]:
    """Perft where a pass is no ply and a game that is over counts once at every deeper depth, by layers of states."""
    kernels, counts = KERNELS[game.name], []
    states, ways = kernels.start_states(1), np.ones(1, np.int64)
    finished = 0
    while True:
        masks, terminal, _ = kernels.describe_all(states)
        finished += int(ways[terminal].sum())
        states, ways, masks = states[~terminal], ways[~terminal], masks[~terminal]
        passing = np.flatnonzero(masks[:, -1])
        turned = states[passing]
        kernels.play(turned, np.zeros(len(turned), np.int8), np.full(len(turned), game.num_actions - 1))
        states[passing], masks[passing] = turned, kernels.describe_all(turned)[0]
        counts.append(int(ways @ masks.sum(axis=1)) + finished)
        if len(counts) == depth:  # the last layer, which is several times as large, need not be made
            return counts
        rows, actions = np.nonzero(masks)
        states, ways = states[rows], ways[rows]
        kernels.play(states, np.zeros(len(states), np.int8), actions)
        states, inverse = np.unique(states, axis=0, return_inverse=True)
        ways = np.bincount(inverse.ravel(), weights=ways).astype(np.int64)


@each_size
def test_perft_with_passes_as_plies(game: Othello):
    published = FACTS[f"othello_{game.size}x{game.size}_perft_pass_counts_as_ply"]
    for depth in range(1, 10):  # no game is over before its ninth ply
        assert count_games(KERNELS[game.name], depth) == published[str(depth)]


@each_size
def test_perft_without_passes(game: Othello):
    published = FACTS[f"othello_{game.size}x{game.size}_perft_pass_free"]
    assert count_without_passes(game, 9) == [published[str(depth)] for depth in range(1, 10)]


@pytest.mark.slow
def test_deeper_perft_without_passes():
    published = FACTS["othello_8x8_perft_pass_free"]
    assert count_without_passes(OTHELLO, 11) == [published[str(depth)] for depth in range(1, 12)]


def play_line(game: Othello, squares: list[str]) -> tuple[Position, int]:
    """The position after discs on the squares, with passes where they are forced; and how many passes."""
    position, passes = game.start(), 0
    for square in squares:
        if legal(position) == "pass":
            position, passes = position.play(game.num_actions - 1), passes + 1
        position = position.play(position.parse(square))
    return position, passes


def test_the_line_of_perfect_play_ends_32_to_32():
    """Takizawa 2023, "Othello is solved"."""
    line = FACTS["othello_8x8_value"]["optimal_line"]
    position, passes = play_line(OTHELLO, [line[i : i + 2] for i in range(0, len(line), 2)])
    assert position.terminal and position.outcome == 0 and passes == 0
    assert "X 32, O 32" in str(position)


def test_the_line_of_perfect_play_on_6x6_ends_16_to_20():
    """Feinstein 1993; he writes the board as the middle of an 8 x 8 one, b2-g7."""
    line = FACTS["othello_6x6_value"]["optimal_line_bcdefg_234567"].split()
    squares = [chr(ord(square[0]) - 1) + str(int(square[1]) - 1) for square in line]
    position, passes = play_line(OTHELLO6, squares)
    assert position.terminal and position.outcome == -1 and passes == 1
    assert "X 16, O 20" in str(position)
