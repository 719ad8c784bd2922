"""Templates for the module of a game with dice, which `engine` binds."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from alphazero.game.randomness import CHANCE, make_key
from alphazero.search.expansion import go_on


class Dice(NamedTuple):
    """The arrays of a game with dice; the page reads all but the last."""

    chances: Annotated[np.ndarray, "float32[C]"]  # the probabilities of the die that is due, 0 first if none is
    outcomes: Annotated[np.ndarray, "int32[D]"]  # what the dice of the last throw have shown, -1 behind them
    probabilities: Annotated[np.ndarray, "float64[C]"]


def describe_with_die():
    """The same in a game with dice: where one is due, no action is legal, and the chances are written."""
    here, given, over = page(), dice(), describe()
    due = 0 if over else chance(here.state, given.probabilities)
    for outcome in range(len(given.chances)):
        given.chances[outcome] = given.probabilities[outcome] if outcome < due else 0.0
    if due > 0:
        here.legal_mask[:] = False
    return over


def settle_die(outcome):
    """Puts an outcome of the die that is due into effect."""
    here = page()
    settle(here.state, outcome)
    here.to_play[0] = mover(here.state, here.to_play[0])


def throw(seed, ply):
    """Throws all dice that are due, as `Kernels.roll` does in game 0, and writes what they show."""
    here, given = page(), dice()
    key = make_key(np.int64(seed), 0, np.int64(ply), CHANCE)
    here.to_play[0] = roll_dice(here.state, here.to_play[0], key, given.probabilities, given.outcomes)


def reach_leaf_through_dice(one_tree, own, given, steps):
    """The same where dice may be due on the way."""
    asked = 0
    while steps.parents[0] >= 0:
        asked = advance_to_die(
            one_tree.states[0], one_tree.to_play[0], steps.parents, steps.actions, steps.children, steps.terminal,
            steps.results, own.leaf_states, given.legal_masks, steps.chances, dice().probabilities,
        )  # fmt: skip
        if steps.chances[0, 0] == 0.0:
            break
        go_on(one_tree, 0, 0, steps)
    return asked
