"""Value targets: what the network should say about the positions of finished games.

The lambda-return is the default. Another target is a function such as `lambda games, settings: games.z`, which
`az.train` takes as `value_targets`, or which a game's module or SPEC holds under that name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from alphazero.errors import InvalidSetting, quote
from alphazero.game.kernels import kernel
from alphazero.training.config import SelfPlayConfig


class Recordings(NamedTuple):
    """n recordings of T plies each, game after game. Every array is `[n, T]`; signs are those of the ply's player.

    In a game for more than two, `rewards`, `values` and `z` are `[n, T, V]`, first the number of the ply's player: see
    `Game.value_shape`.
    """

    to_play: np.ndarray
    """`int8`: the player who made the ply, 0 for the first one."""
    done: np.ndarray
    """`bool`: the ply ended its game."""
    rewards: np.ndarray
    """`float32`: the game's result where `done`, else 0."""
    values: np.ndarray
    """`float32`: the search's value of the position; with the points so far, where a game has those along the way."""
    explored: np.ndarray
    """`bool`: the ply was played at random, so its result says nothing about the position."""
    known: np.ndarray
    """`bool`: the ply belongs to a finished game and was searched, unlike the random plies that the game begins with.
    Elsewhere targets are ignored, and `to_play` and `values` may be those of older games."""
    z: np.ndarray
    """`float32`: the game's result, or the search's value at the next ply that was played at random; 0 if not known."""


ValueTargets = Callable[[Recordings, SelfPlayConfig], np.ndarray]
"""Gives the value target of every ply, `float[n, T]` in [-1, 1], for the player who made it."""


def record(
    to_play: np.ndarray, done: np.ndarray, rewards: np.ndarray, values: np.ndarray, explored: np.ndarray
) -> Recordings:
    """The recordings with `known` and `z`."""
    known = np.logical_or.accumulate(done[:, ::-1], axis=1)[:, ::-1]
    recordings = Recordings(to_play, done, rewards, values, explored, known, np.empty(0))
    return recordings._replace(z=_returns(recordings, 1.0))


def lambda_returns(games: Recordings, settings: SelfPlayConfig) -> np.ndarray:
    """The lambda-return (1 - lambda) value + lambda * the next ply's target; the result after the last (Sutton 1988).

    It does not look past a ply that was played at random: there it is the search's value (Watkins 1989).
    """
    return _returns(games, settings.td_lambda)


def _returns(games: Recordings, td_lambda: float) -> np.ndarray:
    returns = np.zeros(games.values.shape, np.float32)
    hand = hand_back if returns.ndim == 2 else hand_back_seats
    hand(*games[:6], float(td_lambda), returns)
    return returns


@kernel
def hand_back(to_play, done, rewards, values, explored, known, td_lambda, returns):
    """Writes the lambda-returns `float32[n, T]`."""
    for i in range(len(returns)):
        target, player = 0.0, 0  # what is handed back from ply to ply, seen by `player`
        for ply in range(returns.shape[1] - 1, -1, -1):
            if done[i, ply]:
                target = float(rewards[i, ply])
            elif to_play[i, ply] != player:
                target = -target
            if td_lambda < 1.0:
                own = np.float32(1.0 - td_lambda) * np.float32(values[i, ply])
                target = own + td_lambda * target if known[i, ply] else 0.0
            if explored[i, ply] and known[i, ply]:
                target = float(values[i, ply])
            returns[i, ply], player = target, to_play[i, ply]


@kernel
def hand_back_seats(to_play, done, rewards, values, explored, known, td_lambda, returns):
    """Writes the lambda-returns `float32[n, T, V]`, first the number of the ply's player."""
    _, plies, seats = returns.shape
    for i in range(len(returns)):
        for ply in range(plies - 1, -1, -1):
            for seat in range(seats):
                own, target = float(values[i, ply, seat]), 0.0
                if done[i, ply]:
                    target = float(rewards[i, ply, seat])
                elif ply + 1 < plies:
                    target = float(returns[i, ply + 1, (seat + to_play[i, ply] - to_play[i, ply + 1]) % seats])
                target = (1.0 - td_lambda) * own + td_lambda * target if known[i, ply] else 0.0
                returns[i, ply, seat] = own if explored[i, ply] and known[i, ply] else target


def check_targets(targets: Any, games: Recordings, so_far: Any = 0.0) -> np.ndarray:
    """The targets as `float32`, without the value of the points so far; raises InvalidSetting if their shape or a known
    one of them is not allowed."""
    with contextlib.suppress(TypeError, ValueError):
        array = np.asarray(targets, np.float32)
        if np.any(so_far):  # the points may be more than the highest that count
            array = np.clip(array - so_far, -1.0, 1.0)
        if array.shape == games.values.shape and (np.abs(array[games.known]) <= 1.0 + 1e-6).all():  # not if one is nan
            return array
    raise InvalidSetting(
        f"the value target gave {quote(targets)}: it must give one number between -1 and 1 for each ply of the "
        f"recordings, here {games.values.shape}"
    )
