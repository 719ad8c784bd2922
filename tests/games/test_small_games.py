"""Gomoku, hex, breakthrough, dots and boxes, and nim against positions drawn by hand and what is known of them."""

import functools
import itertools
import operator

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import IllegalAction
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from alphazero.players.baselines import action_values
from tests.game.perft import count_games


def play(game: str, text: str) -> Position:
    return registry.load(game).game.position(text)


def drawn(position: Position) -> str:
    return "\n".join(line.strip() for line in str(position).splitlines())


@pytest.mark.parametrize("name", ["gomoku", "gomoku15", "hex", "hex_swap", "breakthrough", "dots_and_boxes", "nim"])
def test_notation_goes_both_ways_and_refuses_what_is_none(name: str):
    rng, position = np.random.default_rng(0), registry.load(name).game.start()
    for _ in range(30):
        if position.terminal:
            break
        for action in position.legal_actions:
            assert position.parse(position.format(action)) == action
        for wrong in ("", "x", "a0", "z9", "99-1", "1-99", "a1-a1", "swop", "-1"):
            with pytest.raises(IllegalAction):
                position.parse(wrong)
        position = position.play(int(rng.choice(position.legal_actions)))


# --- gomoku ---

FIVES = {
    "across": ("a1 a9 b1 b9 c1 c9 d1 d9 e1", 1),
    "down": ("i5 a1 i6 a2 i7 a3 i8 a4 i9", 1),
    "falling": ("a9 a1 b9 b2 a8 c3 b8 d4 a7 e5", -1),
    "rising": ("a9 a1 b8 a2 c7 a3 d6 a4 e5", 1),
    "closed in the middle": ("a1 a9 b1 b9 d1 c9 e1 e9 c1", 1),
    "six": ("a1 a9 b1 c9 c1 e9 e1 g9 f1 i9 d1", 1),
}


@pytest.mark.parametrize(("moves", "outcome"), FIVES.values(), ids=FIVES)
def test_five_in_a_row_win(moves: str, outcome: int):
    before, after = play("gomoku", moves.rpartition(" ")[0]), play("gomoku", moves)
    assert not before.terminal
    assert after.terminal and after.outcome == outcome and after.legal_actions == []


def test_a_row_does_not_go_on_at_the_other_edge():
    assert not play("gomoku", "h1 a9 i1 b9 a2 d9 b2 f9 c2").terminal
    assert not play("gomoku15", "n1 a9 o1 b9 a2 d9 b2 f9 c2").terminal


def test_a_full_board_is_a_draw():
    """Pairs of stones alternate along each row and start two cells later in the next: no five stand in line."""
    cells = np.arange(81)
    crosses = (cells % 9 + 2 * (cells // 9)) % 4 < 2
    order = np.empty(81, np.int64)
    order[::2], order[1::2] = cells[crosses], cells[~crosses]
    position = registry.load("gomoku").game.start()
    for cell in order:
        assert not position.terminal
        position = position.play(int(cell))
    assert position.terminal and position.outcome == 0


# --- hex ---


def test_hex_is_won_from_side_to_side():
    down = play("hex", "d1 a1 d2 a2 d3 a3 d4 a4 c5 a5 c6 a6")  # d4 touches c5
    assert not down.terminal
    assert down.play(down.parse("c7")).outcome == 1
    across = play("hex", "a1 a4 b1 b4 c1 c4 d1 d3 e1 e3 f1 f3 a7 g3")
    assert across.terminal and across.outcome == -1


def test_cells_that_slant_the_other_way_do_not_touch():
    """c4 and d5 have only b5/c5 and d4 between them."""
    assert not play("hex", "d1 a1 d2 a2 d3 a3 d4 a4 e5 a5 e6 a6 e7").terminal


def test_a_side_is_not_won_by_the_other_sides_owner():
    position = play("hex", "a1 a7 b1 b7 c1 c7 d1 d7 e1 e7 f1 f7 g1")  # the first player's row along the top
    assert not position.terminal


def test_every_full_hex_board_has_one_winner():
    """J. Nash's theorem, on random boards."""
    rng, game = np.random.default_rng(0), registry.load("hex").game
    for _ in range(30):
        position = game.start()
        for cell in rng.permutation(49):
            if position.terminal:
                break
            position = position.play(int(cell))
        assert position.terminal and position.outcome in (1, -1)


def test_the_swap_takes_the_stone_over_in_the_mirror_image_of_its_cell():
    position = play("hex_swap", "c1 swap")
    assert position.to_play == 0
    assert drawn(position).splitlines()[3] == "3 O . . . . . ."  # a3, the image of c1
    assert "X" not in "".join(drawn(position).splitlines()[1:8])
    for moves in ("", "c1 d4", "c1 swap", "c1 swap d4"):
        with pytest.raises(IllegalAction):
            play("hex_swap", moves).play(49)


# --- breakthrough ---


def test_breakthrough_starts_with_two_rows_each():
    start = registry.load("breakthrough").game.start()
    board = ["6 O O O O O O", "5 O O O O O O", "4 . . . . . .", "3 . . . . . .", "2 X X X X X X", "1 X X X X X X"]
    assert drawn(start).splitlines() == [*board, "a b c d e f"]
    assert len(start.legal_actions) == 16
    assert count_games(Kernels(start.game), 2) == 256


def test_pawns_take_on_the_slant_and_are_stopped_straight_on():
    position = play("breakthrough", "c2-c3 d5-d4")
    assert "c3xd4" in [position.format(action) for action in position.legal_actions]
    taken = position.play(position.parse("c3xd4"))
    assert drawn(taken).splitlines()[2] == "4 . . . X . ."
    assert "d5-d4" not in [taken.format(a) for a in taken.legal_actions]  # it went there before, and is gone
    assert "e5xd4" in [taken.format(a) for a in taken.legal_actions]
    facing = play("breakthrough", "c2-c3 c5-c4")
    assert not [text for text in map(facing.format, facing.legal_actions) if text.startswith("c3-c")]


def test_the_last_row_wins():
    first = play("breakthrough", "a2-a3 f5-f4 a3-a4 f4-f3 a4xb5 f6-f5")
    assert not first.terminal
    won = first.play(first.parse("b5xa6"))
    assert won.terminal and won.outcome == 1
    second = play("breakthrough", "a2-a3 f5-f4 a3-a4 f4-f3 b2-b3 f3xe2 b3-b4")
    lost = second.play(second.parse("e2xd1"))
    assert lost.terminal and lost.outcome == -1


# --- dots and boxes ---


def test_who_completes_a_box_owns_it_and_moves_again():
    position = play("dots_and_boxes", "0 12 3")
    assert position.to_play == 1
    after = position.play(13)
    assert after.to_play == 1
    assert drawn(after).endswith("player 1 owns 0 boxes, player 2 owns 1")
    assert after.play(1).to_play == 0


def test_one_line_can_complete_two_boxes():
    position = play("dots_and_boxes", "0 1 12 14 3 4")
    assert position.to_play == 0
    after = position.play(13)
    assert after.to_play == 0 and drawn(after).endswith("player 1 owns 2 boxes, player 2 owns 0")


def test_most_boxes_win():
    rng, game = np.random.default_rng(0), registry.load("dots_and_boxes").game
    for _ in range(20):
        position = game.start()
        while not position.terminal:
            position = position.play(int(rng.choice(position.legal_actions)))
        counts = [int(word) for word in drawn(position).replace(",", "").split() if word.isdigit()][-3:]
        first, second = counts[0], counts[-1]
        assert first + second == 9
        assert position.outcome == (1 if first > second else -1)


# --- nim ---


def test_nim_is_lost_where_the_exclusive_or_of_the_piles_is_zero():
    """C. L. Bouton 1901, at all 384 positions."""
    game = registry.load("nim").game
    piles = itertools.product(range(2), range(4), range(6), range(8))
    words = [a | b << 4 | c << 8 | d << 12 for a, b, c, d in piles if a + b + c + d]

    @functools.cache
    def wins(word: int) -> bool:
        position = Position(game, np.array([word], np.uint64), 0, ())
        return any(not wins(int(position.play(action).state[0])) for action in position.legal_actions)

    for word in words:
        sizes = [word >> 4 * pile & 15 for pile in range(4)]
        assert wins(word) == (functools.reduce(operator.xor, sizes) != 0)
    assert not wins(int(game.start().state[0]))
    values = action_values(Kernels(game), 6)(np.array([[1 | 2 << 4 | 3 << 8]], np.uint64))[0]
    assert (values < 0).all()  # all six plies lose from piles of 1, 2 and 3, and the others are not allowed


def test_the_last_object_wins():
    position = play("nim", "4-7 3-5 2-3 1-1")
    assert position.terminal and position.outcome == -1
