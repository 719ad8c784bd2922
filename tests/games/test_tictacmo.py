"""Tic-tac-mo beside plain rules on cells, and its exact values."""

from fractions import Fraction

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game import Position
from alphazero.game.kernels import Kernels
from alphazero.players.baselines import NO_SCORE, RandomPlayer, ScorePlayer
from games.tictacmo.benchmark import load_frozen, make_benchmark
from games.tictacmo.game import COLUMNS, ROWS
from games.tictacmo.solver import list_positions, place_of, stones_of, tables

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


def test_the_line_that_won_is_shown():
    won = GAME.position("a1 b1 e2 b2 d1 a2 c3")
    assert won.winners == (0,) and [GAME.board.cells[cell].name for cell in won.view.winning] == ["a1", "b2", "c3"]


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


def plain_value(position: Position, known: dict[bytes, list[Fraction]]) -> list[Fraction]:
    """The results of each player, the first player's first, by trying everything, as fractions."""
    key = position.state.tobytes()
    if key not in known:
        if position.terminal:
            known[key] = [Fraction(result) for result in position.results]
        else:
            children = [plain_value(position.play(action), known) for action in position.legal_actions]
            best = max(child[position.to_play] for child in children)
            equal = [child for child in children if child[position.to_play] == best]
            known[key] = [sum((child[i] for child in equal), Fraction(0)) / len(equal) for i in range(3)]
    return known[key]


def test_the_frozen_scores_are_those_of_trying_everything():
    """Of positions with at most six squares left."""
    states, scores = load_frozen()
    late = np.flatnonzero(np.bitwise_count(states).sum(axis=1) >= 9)
    assert len(states) == 2000 and len(late) > 500
    for row in late[::20]:
        player = int(np.bitwise_count(states[row]).sum()) % 3
        position, known = Position(GAME, states[row].copy(), player, ()), dict[bytes, list[Fraction]]()
        for action in position.legal_actions:
            value = plain_value(position.play(action), known)[player]
            assert scores[row, action] == pytest.approx(float(value), abs=1e-6)
        assert (scores[row] == NO_SCORE).sum() == 15 - len(position.legal_actions)


def test_places_number_the_positions_of_as_many_stones():
    """The solver's tables: each position of four stones has a place of its own, in order."""
    places, counts = tables()
    number = counts[15, 1] * counts[14, 1] * counts[13, 2]
    positions = np.empty((number, 3), np.int32)
    list_positions(1, 1, 2, positions)
    assert [place_of(*position, places, counts) for position in positions[::97].tolist()] == list(range(0, number, 97))
    assert stones_of(4) == (1, 1, 2)


def test_the_benchmark_knows_the_best_actions():
    states, scores = load_frozen()
    judge, rows = make_benchmark(GAME), {tuple(state): row for row, state in enumerate(states.tolist())}

    def known(asked: np.ndarray) -> np.ndarray:
        return scores[[rows[tuple(state)] for state in asked.tolist()]]

    best = ScorePlayer("best", 0, known)
    assert judge(best) == {"exact_accuracy": 1.0, "exact_loss": 0.0}
    assert judge(RandomPlayer(Kernels(GAME), 1))["exact_accuracy"] < 0.7
