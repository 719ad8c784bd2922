"""Who has which seat in the games of a match, and which games are played alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from alphazero.game import Game
from alphazero.game.record import lone_seat


def boards_of(game: Game) -> int:
    """The times that each game of a match is played: in a game for one both contestants play it."""
    return 2 if game.num_players == 1 else 1


def group_of(game: Game, number: Any) -> Any:
    """The games with the same opening and the same dice have the same number here.

    In a game for one both contestants play each game, so it is a group of its own.
    """
    return number // games_of_group(game)


def games_of_group(game: Game) -> int:
    """The games with the same opening and the same dice."""
    return {1: 1, 2: 2}.get(game.num_players, 2 * game.num_players)


def groups_of(game: Game, num_games: int) -> int:
    """The number of groups in a match, the last of which may not be whole."""
    return -(-num_games // games_of_group(game))


def whole_groups(game: Game, num_games: int) -> int:
    """So many games, or as many more as make each seat as frequent as another in a game for more than two."""
    return groups_of(game, num_games) * games_of_group(game) if game.num_players > 2 else num_games


def contestant_at(game: Game, number: Any, seat: Any) -> Any:
    """0 where the first contestant has the seat in a game of that number, 1 where the second has."""
    return (seat != lone_seat(game, number)) ^ (number & 1)


def outcome_of(game: Game, number: int, mover: int, value: np.ndarray) -> int:
    """+1 if the first contestant has won, -1 if the second; `value`: as of `Kernels.describe_all`, for the mover."""
    if value.ndim == 0:
        return int(np.sign(value)) * (1 - 2 * int(contestant_at(game, number, mover)))
    best = np.flatnonzero(value == value.max())
    owners = {int(contestant_at(game, number, seat)) for seat in (mover + best) % len(value)}
    return 1 - 2 * owners.pop() if len(owners) == 1 else 0
