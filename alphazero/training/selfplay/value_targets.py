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
from alphazero.training.config import SelfPlayConfig


class Recordings(NamedTuple):
    """n recordings of T plies each, game after game. Every array is `[n, T]`; signs are those of the ply's player."""

    to_play: np.ndarray
    """`int8`: the player who made the ply, 0 or 1."""
    done: np.ndarray
    """`bool`: the ply ended its game."""
    rewards: np.ndarray
    """`float32`: the game's result where `done`, else 0."""
    values: np.ndarray
    """`float32`: the search's value of the position."""
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
    returns = np.zeros(games.done.shape, np.float32)
    # what is handed back from ply to ply, seen by `player`
    target, player = np.zeros(len(returns)), np.zeros(len(returns), np.int8)
    for ply in reversed(range(games.done.shape[1])):
        mover, value, known = games.to_play[:, ply], games.values[:, ply], games.known[:, ply]
        target = np.where(games.done[:, ply], games.rewards[:, ply], np.where(mover == player, target, -target))
        if td_lambda < 1:
            target = np.where(known, (1 - td_lambda) * value + td_lambda * target, 0.0)
        target = np.where(games.explored[:, ply] & known, value, target)
        returns[:, ply], player = target, mover
    return returns


def check_targets(targets: Any, games: Recordings) -> np.ndarray:
    """The targets as `float32`; raises InvalidSetting if their shape or a known one of them is not allowed."""
    with contextlib.suppress(TypeError, ValueError):
        array = np.asarray(targets, np.float32)
        if array.shape == games.done.shape and (np.abs(array[games.known]) <= 1.0 + 1e-6).all():  # not if one is nan
            return array
    raise InvalidSetting(
        f"the value target gave {quote(targets)}: it must give one number between -1 and 1 for each ply of the "
        f"recordings, here {games.done.shape}"
    )
