"""Pig solved exactly (T. Neller and C. Presser 2004): what every position is worth, and what a policy is worth.

Tables are `float64[100, 100, 101]` by the mover's points, the other player's and the turn's, with entries where own and
turn's points are below 100 together. Values are probabilities to win. That a game is drawn after MOST_ACTIONS is left
out: it changes none of them by 1e-6.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numba import njit

from alphazero.errors import InvalidSetting
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels, kernel
from alphazero.game.spec import ExactResult, Oracle
from alphazero.players.baselines import NO_SCORE, ScorePlayer
from alphazero.players.player import Player
from games.pig.game import GOAL, HOLD, OTHER, OWN, ROLL, SIDES, TURN

SHAPE = GOAL, GOAL, GOAL + 1
CLOSE = 1e-14
"""Values are found when they change by less."""


@njit
def value_of_roll(values, own, other, turn, handed_over):
    """The probability to win by a roll; `handed_over`: to win after the other player gets the die."""
    total = handed_over
    for number in range(2, SIDES + 1):
        total += 1.0 if own + turn + number >= GOAL else values[own, other, turn + number]
    return total / SIDES


@njit
def value_of_hold(values, own, other, turn):
    """The probability to win by holding; `values` are the other player's as mover."""
    return 1.0 - values[other, own + turn, 0]


@kernel
def solve(values):
    """Writes the values of perfect play for both.

    Holding makes the sum of both players' kept points larger, so positions of larger sums come first. A 1 keeps it: two
    positions, in which either player begins a turn, need each other's value and are found together by iteration.
    """
    for total in range(2 * GOAL - 2, -1, -1):
        for first in range(max(0, total - GOAL + 1), total // 2 + 1):
            change = 1.0
            while change > CLOSE:
                change = 0.0
                for own, other in ((first, total - first), (total - first, first)):
                    handed_over = 1.0 - values[other, own, 0]
                    for turn in range(GOAL - 1 - own, -1, -1):
                        value = value_of_roll(values, own, other, turn, handed_over)
                        if turn > 0:
                            value = max(value, value_of_hold(values, own, other, turn))
                        if turn == 0:
                            change = max(change, abs(value - values[own, other, 0]))
                        values[own, other, turn] = value


@kernel
def play_out(ours, theirs, our_values, their_values, slopes):
    """Writes what two players' probabilities to roll, `ours` and `theirs`, are worth for each as the mover.

    The value of every position is a + b x with the value x of the other player's turn after a 1; `a`, `b` are found
    from the largest turn down, and two such equations give x. `slopes float64[2, 101]` is scratch space for b.
    """
    for total in range(2 * GOAL - 2, -1, -1):
        for own in range(max(0, total - GOAL + 1), min(total, GOAL - 1) + 1):
            other = total - own
            # ours with `own` points to move, theirs with `other` points to move
            _lay_out(ours, our_values, their_values, own, other, slopes[0])
            _lay_out(theirs, their_values, our_values, other, own, slopes[1])
            a, b = our_values[own, other, 0], slopes[0, 0]
            c, d = their_values[other, own, 0], slopes[1, 0]
            # x = a + b (1 - y), y = c + d (1 - x): the value for who moves after a 1 is 1 less the other's
            x = (a + b * (1.0 - c - d)) / (1.0 - b * d)
            y = c + d * (1.0 - x)
            for turn in range(GOAL - own):
                our_values[own, other, turn] += slopes[0, turn] * (1.0 - y)
            for turn in range(GOAL - other):
                their_values[other, own, turn] += slopes[1, turn] * (1.0 - x)


@njit
def _lay_out(rolls, values, others, own, other, slopes):
    """Writes the constants of a player's turn into `values`, and the slopes: how much what comes after a 1 counts."""
    for turn in range(GOAL - 1 - own, -1, -1):
        constant, slope = 0.0, 1.0
        for number in range(2, SIDES + 1):
            if own + turn + number >= GOAL:
                constant += 1.0
            else:
                constant += values[own, other, turn + number]
                slope += slopes[turn + number]
        share = rolls[own, other, turn] if turn > 0 else 1.0
        hold = value_of_hold(others, own, other, turn) if turn > 0 else 0.0
        values[own, other, turn] = share * constant / SIDES + (1.0 - share) * hold
        slopes[turn] = share * slope / SIDES


@cache
def exact_values() -> np.ndarray:
    """The table of values of perfect play, read-only; found in a second."""
    values = np.zeros(SHAPE)
    solve(values)
    values.setflags(write=False)
    return values


@cache
def exact_rolls() -> np.ndarray:
    """The table of perfect play: 1 where the exact player rolls, 0 where it holds."""
    rolls = np.ones(SHAPE)
    own, other, turn = positions()
    roll, hold = values_of_actions(own, other, turn)
    rolls[own, other, turn] = roll >= hold
    rolls.setflags(write=False)
    return rolls


@cache
def positions() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Own points, the other's and the turn's, `int64[n]` each, of all positions in which there is a choice."""
    own, other, turn = np.indices(SHAPE).reshape(3, -1)
    choice = (turn >= 2) & (own + turn < GOAL)
    return own[choice], other[choice], turn[choice]


def values_of_actions(own: np.ndarray, other: np.ndarray, turn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The probabilities to win by a roll and by holding, `float64[n]` each, of positions that are not over."""
    values = exact_values()
    roll = 1.0 - values[other, own, 0]
    for number in range(2, SIDES + 1):
        reached = own + turn + number
        roll = roll + np.where(reached >= GOAL, 1.0, values[own, other, np.minimum(turn + number, GOAL)])
    return roll / SIDES, 1.0 - values[other, np.minimum(own + turn, GOAL - 1), 0]


def score_against(rolls: np.ndarray, opponent: np.ndarray | None = None) -> tuple[float, float]:
    """The shares of games that a player with this table of probabilities to roll wins, as the first and as the second.

    The `opponent` has a table, too; without one it is the exact player.
    """
    ours, theirs = np.zeros((2, *SHAPE))
    play_out(rolls, exact_rolls() if opponent is None else opponent, ours, theirs, np.empty((2, GOAL + 1)))
    return float(ours[0, 0, 0]), 1.0 - float(theirs[0, 0, 0])


def states_of(own: np.ndarray, other: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """`uint64[n, 1]`: the positions as the game has them, at the beginning of a game for its limit of actions."""
    fields = ((own, OWN), (other, OTHER), (turn, TURN))
    return np.bitwise_or.reduce([numbers.astype(np.uint64) << np.uint64(bit) for numbers, bit in fields])[:, None]


def fields_of(states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Own points, the other's and the turn's, `int64[n]` each, of `states uint64[n, 1]`."""
    own, other, turn = (
        ((states[:, 0] >> np.uint64(bit)) & np.uint64(127)).astype(np.int64) for bit in (OWN, OTHER, TURN)
    )
    return own, other, turn


def make_solver(kernels: Kernels, argument: str, settings: Mapping[str, str], *, seed: int, threads: int) -> Player:
    """Wins as often as anybody can."""
    if argument or settings:
        raise InvalidSetting("solver takes no argument and no settings; write solver")

    def score(states: np.ndarray) -> np.ndarray:
        own, other, turn = fields_of(states)
        scores = np.stack(values_of_actions(own, other, turn), axis=1)
        scores[turn == 0, HOLD] = NO_SCORE
        return scores

    return ScorePlayer("solver", seed, score)


def exact_results(position: Position) -> dict[int, ExactResult]:
    """The mean result of every action, the best first; none where a die is due."""
    own, other, turn = fields_of(position.state[None])
    chances = dict(zip((ROLL, HOLD), np.concatenate(values_of_actions(own, other, turn)).tolist(), strict=True))
    legal = [] if position.chances else sorted(position.legal_actions, key=lambda action: -chances[action])
    return {action: ExactResult(2 * chances[action] - 1) for action in legal}


def make_oracle(game: Game) -> Oracle:
    return Oracle(exact_results)
