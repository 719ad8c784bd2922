"""Tic-tac-mo beside plain rules on cells."""

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game.kernels import Kernels
from games.tictacmo.game import COLUMNS, ROWS

GAME = registry.load("tictacmo").game


def plain_winner(cells: list[int | None]) -> int | None:
    """Who has three in a row, by looking along each line."""
    for start in range(ROWS * COLUMNS):
        for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
            places = [(start // COLUMNS + i * down, start % COLUMNS + i * right) for i in range(3)]
            if all(row < ROWS and 0 <= column < COLUMNS for row, column in places):
                owners = {cells[row * COLUMNS + column] for row, column in places}
                if len(owners) == 1 and None not in owners:
                    return owners.pop()
    return None


def test_random_games_are_those_of_plain_rules():
    rng, ends = np.random.default_rng(0), []
    for _ in range(300):
        position, cells = GAME.start(), [None] * (ROWS * COLUMNS)
        while not position.terminal:
            assert plain_winner(cells) is None
            assert position.legal_actions == [square for square, owner in enumerate(cells) if owner is None]
            assert position.to_play == position.ply % 3
            action = int(rng.choice(position.legal_actions))
            cells[action] = position.to_play
            position = position.play(action)
            own = [stones for stones in range(3) for square in range(15) if int(position.state[stones]) >> square & 1]
            assert len(own) == position.ply
        winner = plain_winner(cells)
        expected = [0.0] * 3 if winner is None else [1.0 if player == winner else -0.5 for player in range(3)]
        assert list(position.results) == expected
        assert position.winners == ((0, 1, 2) if winner is None else (winner,))
        ends.append(winner)
    assert set(ends) == {None, 0, 1, 2}


def test_moves_are_squares_by_column_and_row():
    position = GAME.position("a1 e3 c2")
    assert position.actions == (0, 14, 7) and position.format(14) == "e3"
    assert str(position).splitlines() == ["1 X . . . .", "2 . . T . .", "3 . . . . O", "  a b c d e"]
    with pytest.raises(ValueError, match="unpack|index|substring"):
        GAME.parse_action("f1", position.state)


def test_the_network_sees_the_players_from_the_mover_on():
    position = GAME.position("a1 b1 c1 d1")
    planes = Kernels(GAME).observations(position.state[None])[0]
    assert [np.flatnonzero(plane).tolist() for plane in planes] == [[1], [2], [0, 3]]
