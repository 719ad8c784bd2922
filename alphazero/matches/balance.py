"""Which positions are balanced: by what the game knows, or by a search of the net that comes with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InvalidSetting
from alphazero.game.spec import AreBalanced
from alphazero.invocation import option
from alphazero.players.contestants import load_net, make_player

JUDGE = "best"
"""The shipped net that judges positions in games that know no exact values of early ones."""
SIMULATIONS = 100
"""Simulations of its search."""
EVEN = 0.1
"""A position is balanced if its value lies between -EVEN and EVEN: an expected score of 45 to 55%."""
LEAST_PLIES = 8
"""The least plies of openings that a net chooses."""


@dataclass(frozen=True)
class Balance:
    """The condition that balanced openings fulfil."""

    are_balanced: AreBalanced
    """`bool[n]` of `states uint64[n, K]`."""
    words: str
    """The end of the sentence that begins with "random plies to"."""
    by_net: bool
    """A shipped net judges, else the game's solver."""

    @property
    def least_plies(self) -> int:
        """Openings have at least so many plies; a net's choice is longer, to lead to all kinds of games."""
        return LEAST_PLIES if self.by_net else 2


def find_balance(loaded: LoadedGame) -> Balance:
    """The balance of a game; raises InvalidSetting if nothing tells it."""
    if loaded.make_balance is not None:
        return Balance(loaded.make_balance(loaded.game), describe_balance(loaded), by_net=False)
    if JUDGE in loaded.nets:
        return Balance(_by_net(loaded), describe_balance(loaded), by_net=True)
    raise InvalidSetting(
        f"nothing tells which openings of {loaded.game.name} are balanced, since it has no solver and no shipped net: "
        f"choose {option('openings', 'random')}"
    )


def describe_balance(loaded: LoadedGame) -> str:
    """The end of the sentence that begins with "random plies to"."""
    if loaded.make_balance is not None:
        return "a position that neither player wins if both are perfect"
    return (
        f"a position whose expected score is {50 * (1 - EVEN):.0f} to {50 * (1 + EVEN):.0f}% "
        f"by the shipped net with {SIMULATIONS} simulations"
    )


def _by_net(loaded: LoadedGame) -> AreBalanced:
    """Asks a search of the shipped net. Its library and threads are fixed, so that a seed has the same openings."""
    net = load_net(JUDGE, loaded, "cpu")
    net.use_inference("torch")
    judge = make_player(net, loaded, simulations=SIMULATIONS)

    def are_balanced(states: np.ndarray) -> np.ndarray:
        same = np.zeros(len(states), np.int64)  # the number of a game decides ties alone
        values = judge.assess(states, same, same).values
        assert values is not None
        return np.abs(values) <= EVEN

    return are_balanced
