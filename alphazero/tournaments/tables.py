"""Tables of a game for more than two: each contestant has a seat of its own, and all seatings are played.

A group of as many contestants as the game has players plays its games with the same opening and the same dice, one for
each seating. Up to four players take all orders of the group; more take turns in the order of the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from alphazero.errors import IllegalAction, InvalidSetting, count_of
from alphazero.game import Position
from alphazero.game.kernels import Kernels, check_length
from alphazero.matches.arena import SIDE_BY_SIDE
from alphazero.matches.intervals import Z_95, mean_with_margin
from alphazero.matches.openings import choose_openings
from alphazero.players.player import Player
from alphazero.tournaments.bradley_terry import ELO, PRECISION

ALL_ORDERS = 4
"""The most players of whom all orders are played; of more there are too many."""


@dataclass(frozen=True)
class Tables:
    """The games of m contestants at tables of n."""

    owners: np.ndarray
    """`int64[games, n]`: the contestant in each seat."""
    shares: np.ndarray
    """`float64[games, n]`: 1 for the seat with the best result; seats that share it share the 1."""
    groups: np.ndarray
    """`int64[games]`: games with the same opening and dice have the same number."""

    def share(self, contestant: int) -> tuple[float, float]:
        """A contestant's mean share of its games, and half of its 95% interval, by its groups; nan without a game."""
        mine = self.owners == contestant  # one seat of each game that it plays
        shares, groups = self.shares[mine], self.groups[mine.any(axis=1)]
        found = np.array([shares[groups == group].mean() for group in np.unique(groups)])
        return mean_with_margin(found) if len(found) else (math.nan, math.inf)

    def rate(self, num_contestants: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`(elo float64[m], errors float64[m], seats float64[n])`: ratings with mean 0, half their 95% intervals, and
        what each seat is worth.

        The likeliest ratings of a model in which contestant i at seat s has the best result with a probability in
        proportion to exp(r_i + a_s) (Plackett 1975; Luce 1959), on Elo's scale: of two, one that is 400 points better
        wins ten times as often. A shared result counts as that share of a win. The prior is that of `bradley_terry`.
        """
        num_seats = self.owners.shape[1]
        places = np.eye(num_contestants + num_seats)[self.owners]
        places[:, np.arange(num_seats), num_contestants + np.arange(num_seats)] = 1.0  # [games, seats, parameters]

        def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            utilities = places @ parameters
            value = (logsumexp(utilities, axis=1) - (self.shares * utilities).sum(axis=1)).sum()
            slope = np.einsum("gs,gsp->p", softmax(utilities, axis=1) - self.shares, places)
            return value + PRECISION / 2 * (parameters**2).sum(), slope + PRECISION * parameters

        start = np.zeros(num_contestants + num_seats)
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-9}).x
        chances = softmax(places @ found, axis=1)
        means = np.einsum("gs,gsp->gp", chances, places)
        curvature = np.einsum("gs,gsp,gsq->pq", chances, places, places) - means.T @ means
        covariance = np.linalg.inv(curvature + PRECISION * np.eye(len(found)))[:num_contestants, :num_contestants]
        to_mean = np.eye(num_contestants) - 1 / num_contestants
        errors = Z_95 * np.sqrt(np.diagonal(to_mean @ covariance @ to_mean))
        ratings, seats = found[:num_contestants], found[num_contestants:]
        return ELO * (ratings - ratings.mean()), ELO * errors, ELO * (seats - seats.mean())


def seatings_of(group: Sequence[int]) -> list[tuple[int, ...]]:
    """The orders in which a group of contestants sits down."""
    if len(group) <= ALL_ORDERS:
        return list(permutations(group))
    return [(*group[first:], *group[:first]) for first in range(len(group))]


def choose_groups(num_contestants: int, num_seats: int, num_groups: int, seed: int) -> list[tuple[int, ...]]:
    """The contestants of each group: all groups that there are in turn, in an order that lets all play equally often.

    Each next group is the one whose members have played least so far, drawn among equal ones.
    """
    rng, left, played = np.random.default_rng(seed), np.zeros((0, num_seats), int), np.zeros(num_contestants, int)
    found: list[tuple[int, ...]] = []
    while len(found) < num_groups:
        if len(left) == 0:
            left = rng.permutation(np.array(list(combinations(range(num_contestants), num_seats))))
        at = int(np.lexsort((played[left].sum(axis=1), played[left].max(axis=1)))[0])
        found.append(tuple(sorted(left[at].tolist())))
        played[left[at]] += 1
        left = np.delete(left, at, axis=0)
    return found


def play_tables(kernels: Kernels, players: Sequence[Player], num_games: int, seed: int) -> Iterator[Tables]:
    """The games so far, after each batch of groups; at least `num_games` of them, in whole groups.

    Raises InvalidSetting for fewer contestants than the game has players.
    """
    num_seats = kernels.game.num_players
    if num_seats <= 2:
        raise InvalidSetting("tables are for games of three or more players: take pit or tournament")
    if len(players) < num_seats:
        seats = count_of(num_seats, "seat")
        raise InvalidSetting(f"a table of {kernels.game.name} has {seats}, and needs as many contestants or more")
    each = len(seatings_of(range(num_seats)))
    num_groups = -(-num_games // each)
    choices = choose_groups(len(players), num_seats, num_groups, seed)
    openings, at_once = choose_openings(kernels.game, num_groups, seed), max(1, SIDE_BY_SIDE // each)
    parts: list[Tables] = []
    for first in range(0, num_groups, at_once):
        numbers = range(first, min(num_groups, first + at_once))
        owners = np.array([order for number in numbers for order in seatings_of(choices[number])])
        groups = np.repeat(np.array(numbers), each)
        starts = [openings.of_pair(int(group)) for group in groups]
        results = _play(kernels, players, owners, groups, starts, seed, first * each)
        best = results == results.max(axis=1, keepdims=True)
        parts.append(Tables(owners, best / best.sum(axis=1, keepdims=True), groups))
        yield Tables(*(np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])))


def _play(
    kernels: Kernels, players: Sequence[Player], owners: np.ndarray, groups: np.ndarray, starts: Sequence[Position],
    seed: int, first_game: int,
) -> np.ndarray:  # fmt: skip
    """Plays games side by side to their ends; the results `float32[games, n]`, the first seat's first."""
    rows, plies = np.arange(len(owners)), np.array([at.ply for at in starts])
    states, to_play = np.array([at.state for at in starts]), np.array([at.to_play for at in starts], np.int8)
    while True:
        kernels.roll(states, to_play, seed, groups, plies)
        legal, terminal, values = kernels.describe_all(states)
        if terminal.all():
            seats = (rows[: owners.shape[1]] - to_play[:, None]) % owners.shape[1]
            return np.take_along_axis(values, seats, axis=1)
        check_length(kernels.game, int(plies[~terminal].max()))
        actions = np.full(len(rows), -1)
        for contestant in np.unique(owners):
            mine = np.flatnonzero(~terminal & (owners[rows, to_play] == contestant))
            if len(mine):
                actions[mine] = players[contestant].select_actions(states[mine], first_game + mine, plies[mine])
        chosen = actions.clip(0, legal.shape[1] - 1)
        if not (terminal | (legal[rows, chosen] & (chosen == actions))).all():
            raise IllegalAction("a contestant chose an action that is not legal")
        kernels.play(states, to_play, actions)
        plies += ~terminal
