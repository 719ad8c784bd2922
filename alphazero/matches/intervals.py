"""Strength from results: the interval on a match score, the Elo difference it stands for, and the sequential test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from alphazero.errors import InvalidSetting, quote
from alphazero.settings import check_ranges

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


def mean_with_interval(numbers: np.ndarray | None) -> tuple[float | None, list[float] | None]:
    """The mean of n numbers with its 95% interval `[low, high]`: by Student's t, or of `bool[n]` by `score_interval`.

    One number has no interval, and no number has no mean either: None.
    """
    if numbers is None or not len(numbers):
        return None, None
    if numbers.dtype == bool:
        yes = int(numbers.sum())
        return float(numbers.mean()), list(score_interval(yes, 0, len(numbers) - yes))
    mean, margin = mean_with_margin(numbers)
    return mean, None if margin == math.inf else [mean - margin, mean + margin]


def mean_with_margin(numbers: np.ndarray) -> tuple[float, float]:
    """The mean of n > 0 numbers, and half of its 95% interval by Student's t: infinity for one number."""
    mean, n = float(numbers.mean()), len(numbers)
    if n == 1:
        return mean, math.inf
    from scipy.special import stdtrit  # half as long to import as all else that a match needs

    return mean, float(stdtrit(n - 1, 0.975) * numbers.std(ddof=1)) / math.sqrt(n)


# --- is one player stronger? -----------------------------------------------------------------------------------------

ERROR = 0.05
BOUND = math.log((1 - ERROR) / ERROR)
"""The log-likelihood ratio at which H1 is accepted; at its negative H0 is."""
PAIR_SCORES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""The scores that a pair can have, in points per game."""
LITTLE = 1e-3
"""Pairs added to each result that never came, so that no likelihood is 0."""


@dataclass(frozen=True)
class Sprt:
    """The test of H0 "at most `elo0` points stronger" against H1 "at least `elo1`", which ends as soon as it is clear.

    Wald (1945), "Sequential tests of statistical hypotheses", in the generalised form that chess engines are tested by
    (Van den Bergh, "The generalized maximum likelihood ratio for the expectation value of a distribution"): the
    likelihood of the results under the likeliest distribution whose mean is that of the one hypothesis, against the
    other's. A result is that of a *pair* of games from one opening with the colours swapped, since such two games are
    not independent. It accepts H1 with a probability of `ERROR` although the difference is `elo0`, and H0 although it
    is `elo1`.
    """

    elo0: float
    elo1: float

    def __post_init__(self) -> None:
        check_ranges(self, "the SPRT's", elo0=(-2000, 2000), elo1=(-2000, 2000))
        if self.elo0 >= self.elo1:
            raise InvalidSetting(
                f"an SPRT takes two Elo differences, the smaller first, as 0,20, not {self.elo0:g},{self.elo1:g}"
            )

    @classmethod
    def parse(cls, text: str) -> Sprt:
        """The test that `--sprt 0,20` asks for; raises InvalidSetting."""
        try:
            elo0, elo1 = (float(word) for word in text.split(","))
        except ValueError:
            raise InvalidSetting(f"--sprt takes two Elo differences, as in --sprt 0,20, not {quote(text)}") from None
        return cls(elo0, elo1)

    def log_likelihood_ratio(self, pairs: Sequence[int]) -> float:
        """The log-likelihood ratio of H1 over H0; `pairs`: how many pairs brought 0, 1/2, 1, 3/2 and 2 points."""
        if sum(pairs) == 0:
            return 0.0
        counts = np.where(np.asarray(pairs) > 0, pairs, LITTLE)
        shares = counts / counts.sum()
        low, high = (_likeliest(shares, expected_score(elo)) for elo in (self.elo0, self.elo1))
        return float(counts.sum() * (shares * np.log(high / low)).sum())

    def verdict(self, pairs: Sequence[int]) -> str | None:
        """`H0` or `H1`, or None while it is open."""
        ratio = self.log_likelihood_ratio(pairs)
        return "H0" if ratio <= -BOUND else "H1" if ratio >= BOUND else None


def expected_score(elo: float) -> float:
    """Points a game, in (0, 1), of a player who is `elo` points stronger."""
    return 1 / (1 + 10 ** (-elo / 400))


def _likeliest(shares: np.ndarray, mean: float) -> np.ndarray:
    """The distribution of mean `mean` under which results with these shares are likeliest.

    It is p_i = shares_i / (1 + t (a_i - mean)) with the t that makes its mean `mean` (Van den Bergh, proposition 1.1).
    """
    from scipy.optimize import brentq  # likewise

    distances = PAIR_SCORES - mean
    # every denominator must stay above 0
    low, high = -1 / distances.max(), -1 / distances.min()
    margin = 1e-9 * (high - low)

    def excess(t: float) -> float:
        return float((shares * distances / (1 + t * distances)).sum())

    return shares / (1 + brentq(excess, low + margin, high - margin, xtol=1e-15) * distances)
