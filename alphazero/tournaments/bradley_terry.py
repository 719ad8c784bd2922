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
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array, eye_array
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
        return self._model.evidence(i, j)

    def difference(self, i: int, j: int) -> tuple[float, float]:
        """The rating of i less that of j, and half the width of its 95% interval."""
        variance = self.covariance[i, i] + self.covariance[j, j] - 2 * self.covariance[i, j]
        return float(self.elo[i] - self.elo[j]), Z_95 * math.sqrt(max(0.0, variance))

    def superiority(self, i: int, j: int) -> float:
        """Probability that i is better than j; never 1, which no games show."""
        return min(float(ndtr(self.evidence(i, j))), math.nextafter(1.0, 0.0))


def rate(games: np.ndarray, anchor: int | None = None) -> Ratings:
    """The likeliest ratings for `games int64[n, n, 3]`: wins, draws and losses of i beginning against j.

    Standard errors are those of the observed information (the curvature of the log-likelihood, with the prior's), where
    draws are as rare as the games allow: see `_rarer_draws`. They take the games as independent; of two games from one
    opening with the colours swapped that is not true, which makes the errors too large rather than too small.
    """
    first, second = np.nonzero(games.sum(axis=2))
    num_players = len(games)
    model = _Model(first, second, games[first, second].astype(np.float64), num_players)
    parameters = model.parameters
    draw_weight = math.exp(parameters[-1]) if model.has_draws else 0.0  # without draws their weight v is 0
    points, slope = _in_elo(parameters, draw_weight, num_players + 1)
    if draw_weight > 0:
        parameters = _rarer_draws(parameters, draw_weight, model.covariance(parameters)[-1, -1])
        _, slope = _in_elo(parameters, math.exp(parameters[-1]), num_players + 1)
    covariance = model.covariance(parameters)
    covariance, elo = slope @ covariance @ slope.T, points[:num_players]
    of_ratings = covariance[:num_players, :num_players]
    return Ratings(
        elo=elo - (elo.mean() if anchor is None else elo[anchor]),
        covariance=of_ratings,
        errors=_errors(of_ratings, model.information(parameters)[:num_players]),
        advantage=float(points[num_players]),
        advantage_error=Z_95 * math.sqrt(covariance[num_players, num_players]),
        draw_rate=draw_weight / (2 + draw_weight),
        _model=model,
    )


def _rarer_draws(parameters: np.ndarray, draw_weight: float, variance: float) -> np.ndarray:
    """The parameters with a smaller weight of draws, for the errors; `variance` is that of ln v.

    Errors in points grow with s, the share of decisive games, which is known badly if there are few of them: with the
    likeliest s, three players with nothing but draws would have errors near 0. So this s is that of z^2 = 3.84 more
    decisive games between equals; after draws alone it is the upper limit of Wilson's interval. N games of equals give
    ln v the variance 1 / (N s (1 - s)), and with the additional games v' = v / (1 + z^2 / (N s)), which is
    v / (1 + z^2 (1 - s) variance).
    """
    draw_rate = draw_weight / (2 + draw_weight)
    rarer = parameters.copy()
    rarer[-1] -= math.log1p(Z_95**2 * draw_rate * variance)
    return rarer


def _in_elo(parameters: np.ndarray, draw_weight: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `count` parameters in Elo points, and how these change with all parameters `[count, k]`."""
    scale = ELO * 2 / (2 + draw_weight)
    slope = scale * np.eye(count, len(parameters))
    if draw_weight > 0:
        slope[:, -1] = -scale * draw_weight / (2 + draw_weight) * parameters[:count]
    return scale * parameters[:count], slope


class _Model:
    """The likeliest parameters `[k]`, in natural units: n ratings, the advantage, and ln v if there are draws."""

    def __init__(self, first: np.ndarray, second: np.ndarray, counts: np.ndarray, num_players: int):
        """`counts float64[m, 3]`: outcomes of the games in which `first` begins against `second`, both `int64[m]`."""
        self._counts, self._weights, self.has_draws = counts, counts.sum(axis=1), bool(counts[:, DRAW].any())
        rows, ones = np.arange(len(first)), np.ones(len(first))
        self._signs = csr_array(
            (
                np.concatenate([ones, -ones, ones]),
                (np.tile(rows, 3), np.concatenate([first, second, np.full(len(first), num_players)])),
            ),
            (len(first), num_players + 1 + self.has_draws),
        )
        """`[m, k]`: d follows so from the parameters."""
        count = self._signs.shape[1]
        self.parameters, self._loss = self._fit(eye_array(count, format="csr"), np.zeros(count))

    def _fit(self, basis: Any, start: np.ndarray) -> tuple[np.ndarray, float]:
        """The likeliest x `[r]` for the parameters `basis [k, r]` times x, with ln v last, and its loss."""
        signs, prior = self._signs @ basis, PRECISION * (basis.T @ basis).toarray()

        def loss(x: np.ndarray) -> float:
            logits = self._logits(signs, x)
            return float(self._weights @ logsumexp(logits, axis=1) - self._logit_sum(logits) + x @ prior @ x / 2)

        def gradient(x: np.ndarray) -> np.ndarray:
            surplus = self._weights[:, None] * self._shares(signs, x) - self._counts
            slope: np.ndarray = signs.T @ ((surplus[:, WIN] - surplus[:, LOSS]) / 2) + prior @ x
            slope[-1] += self.has_draws * surplus[:, DRAW].sum()
            return slope

        def curvature(x: np.ndarray) -> np.ndarray:
            return self._curvature(signs, x) + prior

        found = minimize(loss, start, jac=gradient, hess=curvature, method="trust-exact", options={"gtol": 1e-8})
        return found.x, float(found.fun)

    def evidence(self, i: int, j: int) -> float:
        """As `Ratings.evidence`."""
        start, basis = self.parameters.copy(), np.eye(len(self.parameters))
        basis[j, i], start[i] = 1.0, (start[i] + start[j]) / 2
        others = np.arange(len(start)) != j
        _, loss = self._fit(csr_array(basis[:, others]), start[others])
        return math.copysign(math.sqrt(max(0.0, 2 * (loss - self._loss))), self.parameters[i] - self.parameters[j])

    def covariance(self, x: np.ndarray) -> np.ndarray:
        """`float64[k, k]` of the parameters x."""
        found: np.ndarray = np.linalg.inv(self._curvature(self._signs, x) + PRECISION * np.eye(len(x)))
        return found

    def information(self, x: np.ndarray) -> np.ndarray:
        """`float64[k]`: what the games say of each parameter if all others were known."""
        return np.diagonal(self._curvature(self._signs, x))

    def _logits(self, signs: Any, x: np.ndarray) -> np.ndarray:
        """`float64[m, 3]` of each outcome; minus infinity for draws if there are none."""
        half = signs @ x / 2
        draw = x[-1] if self.has_draws else -np.inf
        return np.stack([half, np.full(len(half), draw), -half], axis=1)

    def _logit_sum(self, logits: np.ndarray) -> float:
        """The sum of the logits of all outcomes that came."""
        came = self._counts > 0
        return float(self._counts[came] @ logits[came])

    def _shares(self, signs: Any, x: np.ndarray) -> np.ndarray:
        """Probability of each outcome, `float64[m, 3]`."""
        shares: np.ndarray = softmax(self._logits(signs, x), axis=1)
        return shares

    def _curvature(self, signs: Any, x: np.ndarray) -> np.ndarray:
        """`float64[r, r]`: the games' part of the second derivatives of the loss."""
        shares = self._shares(signs, x)
        lead, decisive = shares[:, WIN] - shares[:, LOSS], shares[:, WIN] + shares[:, LOSS]
        by_distance = signs.multiply((self._weights * (decisive - lead**2) / 4)[:, None]).tocsr()
        found: np.ndarray = (signs.T @ by_distance).toarray()
        if self.has_draws:
            mixed = signs.T @ (-self._weights * shares[:, DRAW] * lead / 2)
            found[-1] += mixed
            found[:, -1] += mixed
            found[-1, -1] += self._weights @ (shares[:, DRAW] * decisive)
        return found


def _errors(covariance: np.ndarray, information: np.ndarray) -> np.ndarray:
    """`Ratings.errors`, from the ratings' covariance `[n, n]` and the weight `[n]` of each in the field's level."""
    total = information.sum()
    weights = information / total if total > 0 else np.full(len(information), 1 / len(information))
    contrast = np.eye(len(covariance)) - weights[None, :]
    variances = np.einsum("ij,jk,ik->i", contrast, covariance, contrast)
    return Z_95 * np.sqrt(np.maximum(variances, 0.0))


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
