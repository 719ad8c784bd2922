"""Ratings of many players from their games with each other: the likeliest ones, with errors.

Bradley and Terry (1952) with draws after Davidson (1970), "On extending the Bradley-Terry model to accommodate ties in
paired comparison experiments", JASA 65, 317-328, and the right to begin after Davidson and Beaver (1977), "On extending
the Bradley-Terry model to incorporate within-pair order effects", Biometrics 33, 693-702. With strengths r in natural
units, an advantage a of the first player and a weight v of draws, the first player's

    win : draw : loss  =  exp(d / 2) : v : exp(-d / 2),    d = r_first - r_second + a

It is a logistic model with three outcomes, so there is one maximum, and at it every player has as many points as is
expected of him, a draw being half a point.

A natural unit is s 400 / ln 10 Elo points, s = 2 / (2 + v) being the share of decisive games between equals. Without
draws that is Elo's scale, 400 points for ten wins to one loss; with them it keeps what a point means between players
close to each other: 1 / (1 + 10^(-points / 400)) of the score, as in a match of two. (R. Coulom's BayesElo does so.)

Where the games do not fix a rating (no game between two groups, or nothing but wins) a weak prior does: every
parameter is normal about 0, the mean of the players, with a standard deviation of `PRIOR` points. Over 100 games it
moves a rating by some thousandth of its distance from the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components
from scipy.special import logsumexp, ndtr, softmax

from alphazero.errors import listed
from alphazero.matches.intervals import Z_95

ELO = 400 / math.log(10)
"""Elo points of a natural unit, if there are no draws."""
PRIOR = 1000.0
"""Standard deviation of the prior of each parameter, in such points."""
PRECISION = (ELO / PRIOR) ** 2
"""Its precision, in natural units."""
FEW = 6
"""Names that a warning lists in full."""
WIN, DRAW, LOSS = 0, 1, 2
"""Outcomes, seen by the first player."""
SIGNS = np.array([[1.0], [-1.0], [1.0]])
"""The signs in d of the first player's strength, the second's, and the advantage."""


@dataclass(frozen=True)
class Ratings:
    """Ratings of n players, in Elo points throughout."""

    elo: np.ndarray
    """`float64[n]`, with the anchor at 0, or the mean if there is none."""
    covariance: np.ndarray
    """`float64[n, n]` of the ratings; only differences are known well, so use it for those."""
    errors: np.ndarray
    """`float64[n]`: half the width of a 95% interval on the distance from the level of the field.

    That level is the mean rating weighted by how much is known of each, so that one player who lost everything does
    not blur all others. The anchor is uncertain by its own error.
    """
    advantage: float
    """Elo points that moving first is worth."""
    advantage_error: float
    """Half the width of its 95% interval."""
    draw_rate: float
    """Probability of a draw between equal players, the advantage left out."""
    _model: _Model

    def evidence(self, i: int, j: int) -> float:
        """The evidence that i is better than j, in standard errors: the signed root of the ratio of two likelihoods.

        The other likelihood is that of the best ratings at which i and j are equal; twice the logarithm of the ratio is
        chi-squared with one degree of freedom if they are (Wilks 1938). The distance divided by its error is no such
        measure: where one of two has won every game, both grow without end, and the error grows faster (Hauck and
        Donner 1977).
        """
        model, found = self._model, self._model.parameters
        merged = np.arange(len(found)) - (np.arange(len(found)) > j)  # j becomes i, and all after it move up
        merged[j] = merged[i]
        start, precision = np.delete(found, j), np.delete(np.full(len(found), PRECISION), j)
        start[merged[i]], precision[merged[i]] = (found[i] + found[j]) / 2, 2 * PRECISION
        _, loss = model.fit(merged[model.places], start, precision)
        return math.copysign(math.sqrt(max(0.0, 2 * (loss - model.loss))), found[i] - found[j])

    def superiority(self, i: int, j: int) -> float:
        """Probability that i is better than j; never 1, which no games show."""
        return min(float(ndtr(self.evidence(i, j))), math.nextafter(1.0, 0.0))


def rate(games: np.ndarray, anchor: int | None = None) -> Ratings:
    """The likeliest ratings for `games int64[n, n, 3]`: wins, draws and losses of i beginning against j.

    Standard errors are those of the observed information (the curvature of the log-likelihood, with the prior's), where
    draws are as rare as the games allow. They take the games as independent; of two games from one opening with the
    colours swapped that is not true, which makes the errors too large rather than too small.
    """
    model, n = _Model(games), len(games)
    found, draws = model.parameters, model.draw_weight(model.parameters)
    points = ELO * 2 / (2 + draws) * found[: n + 1]
    if draws:
        # Errors in points grow with s, the share of decisive games, which is known badly if there are few of them: with
        # the likeliest s, three players with nothing but draws would have errors near 0. So this s is that of
        # z^2 = 3.84 more decisive games between equals; after draws alone it is the upper limit of Wilson's interval.
        # N games of equals give ln v the variance 1 / (N s (1 - s)), and with the additional games
        # v' = v / (1 + z^2 / (N s)), which is v / (1 + z^2 (1 - s) variance).
        variance, found = model.covariance(found)[-1, -1], found.copy()
        found[-1] -= math.log1p(Z_95**2 * draws / (2 + draws) * variance)
    rarer = model.draw_weight(found)
    slope = np.eye(n + 1, len(found))  # of the points, over their scale, with the parameters
    if draws:
        slope[:, -1] = -rarer / (2 + rarer) * found[: n + 1]
    slope *= ELO * 2 / (2 + rarer)
    covariance = slope @ model.covariance(found) @ slope.T
    # what the games say of each rating if all others were known
    known = np.diagonal(model.curvature(model.places, found))[:n]
    weights = known / known.sum() if known.any() else np.full(n, 1 / n)
    to_level, of_ratings = np.eye(n) - weights, covariance[:n, :n]
    variances = np.einsum("ij,jk,ik->i", to_level, of_ratings, to_level)
    return Ratings(
        elo=points[:n] - (points[:n].mean() if anchor is None else points[anchor]),
        covariance=of_ratings,
        errors=Z_95 * np.sqrt(np.maximum(variances, 0.0)),
        advantage=float(points[n]),
        advantage_error=Z_95 * math.sqrt(covariance[n, n]),
        draw_rate=draws / (2 + draws),
        _model=model,
    )


class _Model:
    """The likeliest parameters `[k]`, in natural units: n ratings, the advantage, and ln v if there are draws."""

    def __init__(self, games: np.ndarray):
        """`games`: as for `rate`."""
        first, second = np.nonzero(games.sum(axis=2))
        self.places = np.stack([first, second, np.full(len(first), len(games))])
        """`int64[3, m]`: of each of m pairs the places of the parameters that make d, with the signs SIGNS."""
        self._counts = games[first, second].T.astype(np.float64)
        self._weights, self._has_draws = self._counts.sum(axis=0), bool(self._counts[DRAW].any())
        count = len(games) + 1 + self._has_draws
        self.parameters, self.loss = self.fit(self.places, np.zeros(count), np.full(count, PRECISION))

    def draw_weight(self, x: np.ndarray) -> float:
        """The weight v of draws; 0 if there are none."""
        return math.exp(x[-1]) if self._has_draws else 0.0

    def fit(self, places: np.ndarray, start: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, float]:
        """The likeliest parameters `[r]` at such places, with priors of that precision, and their loss."""

        def loss(x: np.ndarray) -> float:
            logits = self._logits(places, x)
            return float(
                self._weights @ logsumexp(logits, axis=0) - (self._counts * logits).sum() + precision @ x**2 / 2
            )

        def gradient(x: np.ndarray) -> np.ndarray:
            surplus = self._weights * softmax(self._logits(places, x), axis=0) - self._counts
            slope = _at(places, (surplus[WIN] - surplus[LOSS]) / 2, len(x)) + precision * x
            slope[-1] += self._has_draws * surplus[DRAW].sum()
            return slope

        def curvature(x: np.ndarray) -> np.ndarray:
            return self.curvature(places, x) + np.diag(precision)

        found = minimize(loss, start, jac=gradient, hess=curvature, method="trust-exact", options={"gtol": 1e-8})
        return found.x, float(found.fun)

    def covariance(self, x: np.ndarray) -> np.ndarray:
        """`float64[k, k]` of the parameters x."""
        found: np.ndarray = np.linalg.inv(self.curvature(self.places, x) + PRECISION * np.eye(len(x)))
        return found

    def curvature(self, places: np.ndarray, x: np.ndarray) -> np.ndarray:
        """`float64[r, r]`: the games' part of the second derivatives of the loss."""
        shares, found = softmax(self._logits(places, x), axis=0), np.zeros((len(x), len(x)))
        lead, decisive = shares[WIN] - shares[LOSS], shares[WIN] + shares[LOSS]
        by_distance = self._weights * (decisive - lead**2) / 4
        np.add.at(found, (places[:, None], places[None]), SIGNS[:, None] * SIGNS[None] * by_distance)
        if self._has_draws:
            mixed = _at(places, -self._weights * shares[DRAW] * lead / 2, len(x))
            found[-1] += mixed
            found[:, -1] += mixed
            found[-1, -1] += self._weights @ (shares[DRAW] * decisive)
        return found

    def _logits(self, places: np.ndarray, x: np.ndarray) -> np.ndarray:
        """`float64[3, m]` of each outcome; draws have none to speak of if there are none."""
        half = (SIGNS * x[places]).sum(axis=0) / 2
        return np.stack([half, np.full(len(half), x[-1] if self._has_draws else -1e9), -half])


def _at(places: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """`float64[count]`: the sums of `values [m]`, with the signs SIGNS, at their places `[3, m]`."""
    return np.bincount(places.ravel(), (SIGNS * values).ravel(), count)


def warnings(games: np.ndarray, names: Sequence[str]) -> list[str]:
    """Reasons to doubt the ratings of `games int64[n, n, 3]`, one sentence each; empty if there are none.

    The likeliest ratings are finite if and only if no division of the players in two has one part without a point
    against the other (Ford 1957).
    """
    points = 2 * games[:, :, WIN] + games[:, :, DRAW] + (2 * games[:, :, LOSS] + games[:, :, DRAW]).T
    met = points + points.T
    num_groups, group = connected_components(met, directed=False)
    if num_groups > 1:
        parts = " | ".join(
            listed([name for name, its in zip(names, group, strict=True) if its == g], FEW) for g in range(num_groups)
        )
        return [f"{num_groups} groups have played no game with each other, so ratings compare within a group: {parts}"]
    num_parts, part = connected_components(points, connection="strong")
    if num_parts == 1:
        return []
    largest = np.bincount(part).argmax()
    apart = [name for name, its in zip(names, part, strict=True) if its != largest]
    return [
        f"{listed(apart, FEW)}: nothing but wins or nothing but losses against the others, so the true distance may be "
        "larger, and its number is a guess; add contestants of a strength in between"
    ]
