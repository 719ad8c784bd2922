"""Positions as values: copies that are as immutable as the original, and which positions are equal."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from alphazero.game import Game, Position
from games.connect4.game import Connect4
from games.tictactoe.game import TicTacToe
from tests.catalogue.test_foreign_games import SharedSums

VALUE_OF_THREE = TicTacToe.rules.terminal_value


def value(state):
    return -VALUE_OF_THREE(state)


class ThreeLoses(TicTacToe):
    """Another game under the same name."""

    rules = replace(TicTacToe.rules, terminal_value=value)


class OtherNotation(TicTacToe):
    """The same rules, and other words for actions."""

    def format_action(self, action: int, state: np.ndarray) -> str:
        return f"action {action}"


def sent(position: Position) -> Position:
    """As another process gets it."""
    return pickle.loads(pickle.dumps(position))


@pytest.mark.parametrize("again", [sent, copy.copy, copy.deepcopy])
def test_a_copy_is_read_only(again):
    position = Connect4().position("4453")
    assert position.legal_mask.any() and position.observation.any() and not position.terminal  # kept by the original
    copied = again(position)
    for name in ("state", "legal_mask", "observation"):
        np.testing.assert_array_equal(getattr(copied, name), getattr(position, name))
        with pytest.raises(ValueError, match="read-only"):
            getattr(copied, name)[...] = 1
    assert (copied.to_play, copied.actions) == (position.to_play, position.actions)


def test_a_copy_in_the_same_process_is_of_the_same_game():
    """A game that is made anew is compiled anew."""
    position = Connect4().position("4453")
    assert copy.deepcopy(position).game is position.game is copy.copy([position])[0].game
    assert copy.deepcopy([position, position.play(0)])[1].game is position.game


@pytest.mark.parametrize("again", [sent, copy.deepcopy, lambda position: Connect4().position(position.actions)])
def test_equal_positions_are_one_key(again):
    position = Connect4().position("4453")
    other = again(position)
    assert other == position and hash(other) == hash(position) and {position: "answer"}[other] == "answer"


def test_the_way_to_a_position_does_not_count():
    first, second = TicTacToe().position("a1 b2 c3"), TicTacToe().position("c3 b2 a1")
    assert first.actions != second.actions and first == second and len({first, second}) == 1


OTHERS = {
    "state": lambda position: position.play(0),
    "player": lambda position: Position(position.game, position.state, 1 - position.to_play, position.actions),
    "rules": lambda position: ThreeLoses().position(position.actions),
    "notation": lambda position: OtherNotation().position(position.actions),
    "no position": lambda position: position.actions,
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_other_positions_are_not_equal(make):
    position = TicTacToe().position("b2 c3")
    assert make(position) != position and position == TicTacToe().position("b2 c3")


def test_positions_of_foreign_games_are_equal_within_one_object():
    """Nobody can see what differs between two objects of a wrapped library."""
    one, other = SharedSums(), SharedSums()
    assert one.position([0]) == one.position([0]) != other.position([0])


def test_a_game_that_was_asked_for_equal_positions_reaches_another_process():
    game: Game = TicTacToe()
    assert game.start() == TicTacToe().start() == sent(game.start())
    assert vars(sent(game.start()).game) == {}
