"""Strength from results: the interval on a match score, and the Elo difference it stands for."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from scipy.special import stdtrit

Z_95 = 1.959963984540054
"""Normal quantile of a two-sided 95% interval."""


def score_interval(wins: int, draws: int, losses: int) -> tuple[float, float]:
    """95% interval `(low, high)` on the expected score in [0, 1]; (0, 1) if no game was played.

    Wilson's score interval (1927) carried over from two outcomes to three: it holds every mean m whose distance to the
    observed score is at most z standard errors *under m*, the rate of draws being the likeliest one given m. That is
    the interval of Tango (1998), "Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design", Statistics in Medicine 17, 891-908, for wins less losses; without draws it is Wilson's.
    It takes the games as independent.
    """
    if wins + draws + losses == 0:
        return 0.0, 1.0
    return _lower_limit(wins, draws, losses), 1.0 - _lower_limit(losses, draws, wins)


def _lower_limit(wins: int, draws: int, losses: int) -> float:
    """The smallest mean that the results do not rule out, by bisection to the last bit that counts."""
    num_games = wins + draws + losses
    score = (wins + draws / 2) / num_games
    low, high = 0.0, score
    for _ in range(60):
        mean = (low + high) / 2
        ruled_out = num_games * (score - mean) ** 2 > Z_95**2 * _variance(mean, wins, draws, losses)
        low, high = (mean, high) if ruled_out else (low, mean)
    return (low + high) / 2


def _variance(mean: float, wins: int, draws: int, losses: int) -> float:
    """Variance of one game's score if `mean` is its expectation.

    With a rate of draws d it is mean (1 - mean) - d / 4. The likeliest d is the smaller root of
    n d^2 - (2 D + W b + L a) d + D a b = 0 with a = 2 mean, b = 2 - 2 mean, which is where the derivative of
    W log(mean - d / 2) + D log d + L log(1 - mean - d / 2) vanishes.
    """
    a, b = 2 * mean, 2 - 2 * mean
    rate_of_draws = 0.0
    if draws:
        half = draws + (wins * b + losses * a) / 2
        root = math.sqrt(max(0.0, half**2 - (wins + draws + losses) * draws * a * b))
        rate_of_draws = draws * a * b / (half + root)
    return max(0.0, mean * (1 - mean) - rate_of_draws / 4)


def elo_difference(score: float, num_games: int) -> float:
    """Elo points that `score` in [0, 1] out of `num_games` stands for; 400 log10(score / (1 - score)).

    Finite: a clean sweep counts as half a game less than that, and one game alone as a quarter less.
    """
    margin = 0.5 / max(2, num_games)
    return _elo(min(max(score, margin), 1 - margin))


def elo_interval(low: float, high: float) -> tuple[float, float]:
    """The interval on a score in [0, 1] in Elo points: minus infinity for a limit of 0, infinity for 1."""
    return _elo(low), _elo(high)


def finite(limits: Iterable[float]) -> list[float | None]:
    """Limits for JSON, which has no infinity: None in its place."""
    return [limit if math.isfinite(limit) else None for limit in limits]


def _elo(score: float) -> float:
    return 400 * math.log10(score / (1 - score)) if 0 < score < 1 else math.copysign(math.inf, score - 0.5)


def superiority(wins: int, losses: int) -> float:
    """Likelihood, in [0, 1], that the winner of so many games is the stronger player; draws say nothing of it.

    The normal approximation that matches of chess engines are reported by: Phi((wins - losses) / sqrt(wins + losses)).
    """
    return 0.5 * (1 + math.erf((wins - losses) / math.sqrt(2 * max(1, wins + losses))))


def show_share(share: float) -> str:
    """A share of 1 in percent, where only what is certain is 0% or 100%."""
    text = f"{share:.1%}"
    return ">99.9%" if text == "100.0%" and share < 1 else "<0.1%" if text == "0.0%" and share > 0 else text


def share_with_interval(right: np.ndarray | None) -> tuple[float | None, list[float] | None]:
    """The share of True in `bool[n]` with its 95% interval `[low, high]`; None for both if there are none."""
    if right is None or not len(right):
        return None, None
    count = int(right.sum())
    return count / len(right), list(score_interval(count, 0, len(right) - count))


def mean_with_interval(numbers: np.ndarray | None) -> tuple[float | None, list[float] | None]:
    """The mean of n numbers with its 95% interval `[low, high]`, by Student's t.

    One number has no interval, and no number has no mean either: None.
    """
    if numbers is None or not len(numbers):
        return None, None
    mean = float(numbers.mean())
    if len(numbers) == 1:
        return mean, None
    margin = float(stdtrit(len(numbers) - 1, 0.975) * numbers.std(ddof=1)) / math.sqrt(len(numbers))
    return mean, [mean - margin, mean + margin]
