"""The validator: wrong symmetries, and a transform that does not go with the rules, are caught."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from alphazero.errors import LawBroken
from alphazero.game import Game, Rules, validator
from alphazero.game.validator import validate
from games.tictactoe.game import TicTacToe
from tests.game.test_validator import GOOD, faulty


def with_symmetries(change: Callable[..., Any]) -> Game:
    class Faulty(TicTacToe):
        name = "faulty"
        rules: Rules = replace(TicTacToe().rules, transform=None)

        @property
        def symmetries(self):
            return change(*(part.copy() for part in TicTacToe().symmetries))

    return Faulty()


@pytest.mark.usefixtures("no_rules_are_called_slow")
def test_symmetries_are_checked_by_playing_where_there_is_no_transform():
    assert validate(with_symmetries(lambda cells, actions: (cells, actions)), num_games=5).warnings == []
    turned_board_alone = with_symmetries(lambda cells, actions: (cells, np.tile(np.arange(9), (len(cells), 1))))
    with pytest.raises(LawBroken, match="symmetry 1 must turn a game into a game that goes just like it") as caught:
        validate(turned_board_alone, num_games=5)
    assert caught.value.drawing.startswith("after ") and "mirror image" in caught.value.drawing
    exchanged = with_symmetries(lambda cells, actions: (cells[[0, 3]], actions[[0, 5]]))
    with pytest.raises(LawBroken, match="symmetry 1 must turn"):
        validate(exchanged, num_games=5)


def test_a_transform_must_go_with_the_plies():
    """Each image alone is right, but the game played on from it is another one."""

    def step(state, action):  # one who begins in the upper left gets the last square, too
        empty = state[0] | state[1] == 0
        GOOD.step(state, action)
        if empty and action in (0, 1):
            state[1] |= np.uint64(1 << 8)

    with pytest.raises(LawBroken, match="`transform` by symmetry . must go with `step`"):
        validate(faulty({"step": step}), num_games=50)


def test_a_transform_must_not_forget_a_word_that_the_planes_do_not_show():
    def init(state):
        state[:] = 0

    def step(state, action):
        GOOD.step(state, action)
        state[2] |= np.uint64(1 << action)  # all stones, which the transform leaves where they are

    class Faulty(TicTacToe):
        name = "faulty"
        state_words = 3
        rules: Rules = replace(GOOD, init=init, step=step)

    with pytest.raises(LawBroken, match="`transform` by symmetry . must go with `step`") as caught:
        validate(Faulty(), num_games=5)
    assert "a b c" in caught.value.drawing


def test_every_symmetry_is_checked_however_long_the_random_games_took(monkeypatch: pytest.MonkeyPatch):
    def exchange(cells, actions):
        return cells, actions[[0, 1, 2, 3, 4, 7, 6, 5]]

    monkeypatch.setattr(validator, "SECONDS", 0.0)
    with pytest.raises(LawBroken, match="symmetry [57] must turn a game into a game that goes just like it"):
        validate(with_symmetries(exchange), num_games=2)
    monkeypatch.setattr(validator, "SECONDS_WITH_SYMMETRIES", 0.0)
    warnings = validate(with_symmetries(lambda cells, actions: (cells, actions)), num_games=2).warnings
    assert [warning for warning in warnings if "no time to check symmetries 2, 3, 4, 5, 6, 7" in warning]


@pytest.mark.parametrize("change", [lambda cells, actions: 4, lambda cells, actions: (cells, actions, actions)])
def test_symmetries_of_another_form_are_caught(change: Callable[..., Any]):
    with pytest.raises(LawBroken, match="`symmetries` must be two arrays: rows of 9 cells, and rows of 9 actions"):
        validate(with_symmetries(change), num_games=2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda cells, actions: (cells.astype(float), actions), "whole numbers for the cells.*float64"),
        (lambda cells, actions: (cells, actions.astype(float)), "whole numbers for the actions.*float64"),
        (lambda cells, actions: (cells[:0], actions[:0]), "a row of 9 cells for each symmetry"),
        (
            lambda cells, actions: cells[99],
            r"`symmetries` raised IndexError: .* in line \d+ of test_validator_symmetries.py",
        ),
        (lambda cells, actions: 1 / 0, "`symmetries` raised ZeroDivisionError: division by zero in line"),
    ],
)
def test_symmetries_that_are_no_permutations_at_all_are_caught(change: Callable[..., Any], words: str):
    with pytest.raises(LawBroken, match=words):
        validate(with_symmetries(change), num_games=2)
