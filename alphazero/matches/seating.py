"""Who has which seat in the games of a match, and which games are played alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from alphazero.game import Game
from alphazero.game.record import lone_seat


def boards_of(game: Game) -> int:
    """The times that each game of a match is played: in a game for one both contestants play it."""
    return 2 if game.num_players == 1 else 1


def group_of(game: Game, number: int) -> int:
    """The games with the same opening and the same dice have the same number here."""
    return number // 2 // (game.num_players if game.num_players > 2 else 1)


def whole_groups(game: Game, num_games: int) -> int:
    """So many games, or as many more as make each seat as frequent as another in a game for more than two."""
    each = 2 * game.num_players if game.num_players > 2 else 1
    return -(-num_games // each) * each


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
