"""Is one player stronger than another? The sequential probability ratio test, which ends as soon as that is clear.

Wald (1945), "Sequential tests of statistical hypotheses", in the generalised form that chess engines are tested by
(Van den Bergh, "The generalized maximum likelihood ratio for the expectation value of a distribution"): the likelihood
of the results under the likeliest distribution whose mean is that of the one hypothesis, against the other's. A result
is that of a *pair* of games from one opening with the colours swapped, since such two games are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from alphazero.errors import InvalidSetting, quote
from alphazero.settings import check_ranges

ERROR = 0.05
BOUND = math.log((1 - ERROR) / ERROR)
"""The log-likelihood ratio at which H1 is accepted; at its negative H0 is."""
PAIR_SCORES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
"""The scores that a pair can have, in points per game."""
LITTLE = 1e-3
"""Pairs added to each result that never came, so that no likelihood is 0."""


@dataclass(frozen=True)
class Sprt:
    """The test of H0 "at most `elo0` points stronger" against H1 "at least `elo1`".

    It accepts H1 with a probability of `ERROR` although the difference is `elo0`, and H0 although it is `elo1`.
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
    distances = PAIR_SCORES - mean
    # every denominator must stay above 0
    low, high = -1 / distances.max(), -1 / distances.min()
    margin = 1e-9 * (high - low)

    def excess(t: float) -> float:
        return float((shares * distances / (1 + t * distances)).sum())

    return shares / (1 + brentq(excess, low + margin, high - margin, xtol=1e-15) * distances)
