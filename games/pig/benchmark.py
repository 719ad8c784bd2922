"""Scores a player by its games against the exact player, computed over all positions instead of played."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alphazero.game import Game
from alphazero.players.player import Player
from games.pig.game import GOAL, ROLL, SIDES
from games.pig.solver import SHAPE, exact_values, score_against, states_of

POSITIONS_PER_CALL = 1 << 13


def ask_policy(player: Player) -> tuple[np.ndarray, float | None]:
    """The table of a player: 1 where it rolls; and the mean error of its values as probabilities, if it has some.

    Only the positions are asked that it can reach: from the smallest turn up, those to which it has rolled.
    """
    rolls, errors = np.zeros(SHAPE), list[np.ndarray]()
    reached = np.zeros(SHAPE, bool)
    own = np.arange(GOAL)[:, None]
    rolls[:, :, 0], reached[:, :, 0] = 1.0, True
    for turn in range(2, GOAL):
        sources = range(max(0, turn - SIDES), turn - 1)
        came = [reached[:, :, source] & (rolls[:, :, source] > 0.0) for source in sources]
        reached[:, :, turn] = np.any(came, axis=0) & (own + turn < GOAL)
        mine, theirs = np.nonzero(reached[:, :, turn])
        for start in range(0, len(mine), POSITIONS_PER_CALL):
            at = mine[start : start + POSITIONS_PER_CALL], theirs[start : start + POSITIONS_PER_CALL]
            states = states_of(*at, np.full(len(at[0]), turn))
            answer = player.assess(states, at[0] * GOAL + at[1], np.full(len(states), turn))
            rolls[*at, turn] = answer.actions == ROLL
            if answer.values is not None:
                errors.append(np.abs((1.0 + answer.values) / 2.0 - exact_values()[*at, turn]))
    return rolls, float(np.concatenate(errors).mean()) if errors else None


def make_benchmark(game: Game) -> Callable[[Player], dict[str, float]]:
    """Gives the share of games that a player wins against the exact one, by seat, too; and the error of its values."""

    def judge(player: Player) -> dict[str, float]:
        rolls, error = ask_policy(player)
        first, second = score_against(rolls)
        figures = {"exact_score": (first + second) / 2.0, "first_score": first, "second_score": second}
        return figures | ({} if error is None else {"value_error": error})

    return judge
