"""Tic-tac-toe with 270 actions, of which 0, 30, 60, ... are its squares: a game of many actions, few of them legal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from alphazero.game import Game
from games.tictactoe.game import TicTacToe

APART = 30
PLAIN = TicTacToe()
_legal, _step = PLAIN.rules.legal, PLAIN.rules.step


def legal(state, legal_mask):
    legal_mask[:] = False
    _legal(state, legal_mask[::APART])


def step(state, action):
    _step(state, action // APART)


def spread(actions: Any) -> np.ndarray:
    """Permutations of the squares as permutations of all actions."""
    return (APART * np.asarray(actions)[..., None] + np.arange(APART)).reshape(*np.shape(actions)[:-1], -1)


class ManyActions(Game):
    """`state` is (own squares, the opponent's)."""

    name = "many_actions"
    num_actions, state_words, max_plies = 9 * APART, 2, 9
    mean_legal = 3
    observation_shape = (2, 3, 3)
    rules: Any = replace(PLAIN.rules, legal=legal, step=step)

    @property
    def symmetries(self) -> Any:
        cells, actions = PLAIN.symmetries
        return cells, spread(actions)


MANY = ManyActions()
