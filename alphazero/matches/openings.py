"""Openings of a match: mostly random plies, each opening played twice with the players swapped.

- `random`: any position that is not over, and where no action wins at once, as a pass does after a pass in Go.
- `balanced`: only positions that are balanced by the game's solver, or by its shipped net. Random plies mostly lead to
  positions that one player wins by force, and two games from there say little of who is stronger.
- `none`: the start position. Players without randomness then play the same two games again and again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InvalidSetting, UnknownName, count_of
from alphazero.game import Game, Position
from alphazero.game.functions import plain
from alphazero.game.kernels import kernels_of
from alphazero.game.python_game import PythonGame
from alphazero.game.randomness import OPENING, make_key, uniform
from alphazero.game.spec import AreBalanced
from alphazero.invocation import option
from alphazero.players.contestants import load_net, make_player

logger = logging.getLogger(__name__)

KINDS = ("random", "balanced", "none")
JUDGE = "best"
"""The shipped net that judges positions in games that know no exact values of early ones."""
SIMULATIONS = 100
"""Simulations of its search."""
EVEN = 0.1
"""A position is balanced if its value lies between -EVEN and EVEN: an expected score of 45 to 55%."""
LEAST_PLIES = 8
"""The least plies of openings that a net chooses: they lead to all kinds of games."""
AT_ONCE = 64
"""Positions that one call checks for balance, and pairs whose openings a net chooses before a match begins."""
_make_key, _uniform = plain(make_key), plain(uniform)
"""Compiling them takes half a second, and a match has few draws."""


class Balance(NamedTuple):
    """The condition that balanced openings fulfil."""

    are_balanced: AreBalanced
    """`bool[n]` of `states uint64[n, K]`."""
    by_net: bool
    """A shipped net judges, which takes about a second for each opening; else the game's solver."""


def balance_of(kind: str, loaded: LoadedGame) -> Balance | None:
    """The condition for openings of this kind, None if there is none; raises InputError if nothing tells it.

    Says that such openings are about to be chosen.
    """
    if kind not in KINDS:
        raise UnknownName("kind of openings", str(kind), KINDS)
    if kind != "balanced":
        return None
    if loaded.game.num_outcomes:
        raise InvalidSetting(f"games of {loaded.game.name} differ by their dice: choose {option('openings', 'random')}")
    if loaded.make_balance is None and JUDGE not in loaded.nets:
        raise InvalidSetting(
            f"nothing tells which openings of {loaded.game.name} are balanced, since it has no solver and no shipped "
            f"net: choose {option('openings', 'random')}"
        )
    logger.info("choosing balanced openings, which takes minutes if there are thousands of games")
    if loaded.make_balance is not None:
        return Balance(loaded.make_balance(loaded.game), by_net=False)
    net = load_net(JUDGE, loaded, "cpu")
    net.use_inference("torch")  # and one thread, so that a seed has the same openings everywhere
    judge = make_player(net, loaded, simulations=SIMULATIONS)

    def are_balanced(states: np.ndarray) -> np.ndarray:
        same = np.zeros(len(states), np.int64)  # the number of a game decides ties alone
        values = judge.assess(states, same, same).values
        assert values is not None
        return np.abs(values).reshape(len(states), -1).max(axis=1) <= EVEN

    return Balance(are_balanced, by_net=True)


def describe_openings(kind: str, plies: int, game: Game) -> str:
    """A sentence that says how the games of a match began; `plies` as in `MatchResult.opening_plies`."""
    if game.num_players == 1:
        begin = f"from the same {count_of(plies, 'random ply')}" if plies else "from the start position"
        return f"Both play each game by themselves, {'with the same dice, ply by ply' if game.num_outcomes else begin}."
    group, change = "The two games of each pair", "the players swap sides"
    if game.num_players > 2:
        group, change = f"The {2 * game.num_players} games of each group", "each contestant is alone in each seat once"
    if game.num_outcomes:
        return f"Every game begins at the start position. {group} have the same dice, ply by ply."
    if plies == 0:
        return "Every game begins at the start position, so players without randomness repeat their games."
    what = f"{plies} random {'ply' if plies == 1 else 'plies'}"
    if kind == "balanced" and registry.of(game).make_balance is not None:
        what += " to a position that neither player wins if both are perfect"
    elif kind == "balanced":
        what += (
            f" to a position whose expected score is {50 * (1 - EVEN):.0f} to {50 * (1 + EVEN):.0f}% by the shipped "
            f"net with {SIMULATIONS} simulations"
        )
    off = f"with {option('openings', 'none')} all games begin at the start position"
    return f"{group} begin with the same {what}, and {change}; {off}."


class Openings:
    """The openings of one length, drawn when they are asked for; those of fewer pairs are the first of more.

    None of them is terminal or, unless it is the start, won by one action. All are different, also up to the
    game's symmetries: nets answer for a mirror image as for the position itself, so two of them would play the same
    game twice.
    """

    def __init__(self, game: Game, plies: int, seed: int, balance: Balance | None = None):
        self.plies = plies
        self.drawn: list[Position] = []
        """The openings that have been asked for."""
        self._source = _draw_balanced(game, plies, seed, balance)

    def first(self, count: int) -> list[Position]:
        """So many openings; fewer if the game has no more."""
        self.drawn += islice(self._source, max(0, count - len(self.drawn)))
        return self.drawn[:count]

    def of_pair(self, pair: int) -> Position:
        """The opening of the pair of games of this number; the first ones come again if the game has no more.

        Raises InvalidSetting if it has none.
        """
        if not self.first(pair + 1):
            raise InvalidSetting(f"there is no opening of {count_of(self.plies, 'ply')}: choose fewer opening plies")
        return self.drawn[pair % len(self.drawn)]


MOST_USELESS = 10
"""Lengths in a row that bring no more openings than a shorter one; then no longer ones are tried."""


def choose_openings(game: Game, num_pairs: int, seed: int, balance: Balance | None = None) -> Openings:
    """Openings of the fewest plies, at least 2 or those that the balance needs, that give every pair of games its own.

    Players without randomness repeat a game whose opening repeats. In a game too small for that, those of the length
    with the most; raises InvalidSetting if none is balanced. A net chooses such long ones that they are many, and
    those of later pairs when these begin. With dice every game begins at the start position.
    """
    if game.num_outcomes:
        return Openings(game, 0, seed)
    best: Openings | None = None
    useless, least = 0, 2
    if balance is not None and balance.by_net:
        least, num_pairs = LEAST_PLIES, min(num_pairs, AT_ONCE)
    for plies in (*range(least, game.max_plies), *range(least - 1, -1, -1)):
        if plies > least and balance is None and useless > MOST_USELESS:
            continue
        found = Openings(game, plies, seed, balance)
        useless += 1
        if len(found.first(num_pairs)) > (len(best.drawn) if best else 0):
            best, useless = found, 0
        if not found.drawn:
            useless = MOST_USELESS + 1  # all games are over by then
        if len(found.drawn) == num_pairs:
            break
    if best is None:
        what = f"balanced opening: choose {option('openings', 'random')}" if balance else "position that is not over"
        raise InvalidSetting(f"{game.name} has no {what}")
    return best


def warn_of_few(num_openings: int, num_groups: int, game: Game) -> None:
    """Says so if a match has fewer openings than groups of games with the same one."""
    if num_openings < num_groups:
        noun, games = {1: ("game", ""), 2: ("pair", " of games")}.get(game.num_players, ("group", " of games"))
        logger.warning(
            "there are only %s for %s%s, so some are played again: players without randomness then repeat their games, "
            "and intervals become too narrow", count_of(num_openings, "different opening"),
            count_of(num_groups, noun), games,
        )  # fmt: skip


def _draw_balanced(game: Game, plies: int, seed: int, balance: Balance | None) -> Iterator[Position]:
    drawn = _draw_all(game, plies, seed)
    if balance is None:
        yield from drawn
    while balance and (piece := list(islice(drawn, AT_ONCE))):
        fits = balance.are_balanced(np.array([position.state for position in piece]))
        yield from (position for position, fit in zip(piece, fits, strict=True) if fit)


def _draw_all(game: Game, plies: int, seed: int) -> Iterator[Position]:
    """All positions of so many plies that no action wins at once, one of each set of mirror images, in random order.

    Every draw takes its actions at random among those that may still lead to a new one.
    """
    start, place = game.start(), _places(game)
    spent: set[tuple[int, bytes]] = set()  # places with no new opening behind them
    dead_ends: dict[tuple[int, bytes], set[int]] = {}  # the actions of a position, as it is, that lead to those
    while place(start) not in spent:
        position, draw = start, len(spent)
        while position.ply < plies and not position.terminal:
            avoided = dead_ends.setdefault((position.ply, position.state.tobytes()), set())
            choices = [action for action in position.legal_actions if action not in avoided]
            if not choices:
                break
            with np.errstate(over="ignore"):  # the hash of a key is meant to overflow
                share = _uniform(_make_key(seed, draw, position.ply, OPENING), len(choices))
            action = choices[int(share * len(choices))]
            child = position.play(action)
            if place(child) in spent:
                avoided.add(action)
            else:
                position = child
        spent.add(place(position))
        if position.ply == plies and not position.terminal and not (plies and _wins_at_once(position)):
            yield position


def _wins_at_once(position: Position) -> bool:
    """Whether an action of the player to move ends the game and wins it against another player."""
    kernels, actions = kernels_of(position.game), np.array(position.legal_actions)
    states, movers = np.repeat(position.state[None], len(actions), 0), np.full(len(actions), position.to_play, np.int8)
    kernels.play(states, movers, actions)
    _, ends, _ = kernels.describe_all(states)
    alone = position.game.num_players == 1
    return not alone and any(position.play(action).winners == (position.to_play,) for action in actions[ends])


def _places(game: Game) -> Callable[[Position], tuple[int, bytes]]:
    """A key for every position, which mirror images share.

    A state of a wrapped game is its moves, so two of them may be one position: there the observation is the key.
    """
    if isinstance(game, PythonGame):
        return lambda position: (position.ply, bytes([position.to_play]) + position.observation.tobytes())
    canonical = kernels_of(game).canonical
    return lambda position: (position.ply, canonical(position.state[None])[0].tobytes())
