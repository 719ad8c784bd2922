"""Intervals and Elo differences against numbers from outside."""

import math

import numpy as np
import pytest
from scipy.stats import beta, binomtest

from alphazero.matches.intervals import (
    elo_difference,
    elo_interval,
    finite,
    mean_with_interval,
    score_interval,
    show_share,
    superiority,
)


@pytest.mark.parametrize(("wins", "losses"), [(0, 1), (0, 10), (3, 4), (10, 0), (55, 45), (700, 300)])
def test_without_draws_it_is_wilsons_interval(wins, losses):
    wilson = binomtest(wins, wins + losses).proportion_ci(method="wilson")
    assert score_interval(wins, 0, losses) == pytest.approx((wilson.low, wilson.high), abs=1e-9)


def test_only_what_is_certain_is_shown_as_certain():
    shares = (0, 1e-9, 0.0004, 0.001, 0.5, 0.9994, 0.99951, 1)
    assert [show_share(share) for share in shares] == [
        "0.0%", "<0.1%", "<0.1%", "0.1%", "50.0%", "99.9%", ">99.9%", "100.0%"
    ]  # fmt: skip


def test_with_draws_it_is_tangos_interval():
    # Fagerland, Lydersen, Laake (2014), Statistics in Medicine 33, 2850-2875, table V, Tango's asymptotic score
    # interval for the pairs (1, 1, 7, 12): the difference lies in (-0.517, -0.026)
    low, high = score_interval(1, 13, 7)
    assert (2 * low - 1, 2 * high - 1) == pytest.approx((-0.517, -0.026), abs=5e-4)


def test_by_hand():
    # nothing but draws: the likeliest rate of draws under mean m < 1/2 is 2m, the variance m (1/2 - m), and
    # n (1/2 - m)^2 = z^2 m (1/2 - m) gives m = n / (2 (n + z^2)); for n = 2, z^2 = 3.8415: 0.17119
    assert score_interval(0, 2, 0) == pytest.approx((0.17119, 0.82881), abs=1e-5)
    # a clean sweep of n wins: n (1 - m)^2 = z^2 m (1 - m) gives m = n / (n + z^2); for n = 10: 0.72247
    assert score_interval(10, 0, 0) == pytest.approx((0.72247, 1.0), abs=1e-5)


def test_the_likelihood_of_superiority():
    """20 wins and 10 losses are 10 / sqrt(30) = 1.826 standard deviations: 96.6% by a table of the normal."""
    assert superiority(20, 10) == pytest.approx(0.966, abs=5e-4)
    assert superiority(10, 20) == pytest.approx(0.034, abs=5e-4)
    assert superiority(0, 0) == superiority(7, 7) == 0.5
    # exactly, with all strengths equally likely before: P(strength > 1/2) after 60 wins and 45 losses
    assert superiority(60, 45) == pytest.approx(beta(61, 46).sf(0.5), abs=0.003)


@pytest.mark.parametrize("results", [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (2, 1, 0), (0, 500, 1), (1, 0, 9999)])
def test_the_interval_holds_the_score_and_mirrors(results):
    wins, draws, losses = results
    low, high = score_interval(wins, draws, losses)
    score = (wins + draws / 2) / sum(results) if sum(results) else 0.5
    assert 0.0 <= low <= score <= high <= 1.0
    assert low < high
    assert score_interval(losses, draws, wins) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@pytest.mark.parametrize("num_games", [10, 40])
@pytest.mark.parametrize("rates", [(0.5, 0.0, 0.5), (0.3, 0.5, 0.2), (0.05, 0.9, 0.05), (0.9, 0.05, 0.05)])
def test_it_covers_the_truth_in_about_95_percent(rates, num_games):
    counts = np.random.default_rng(1).multinomial(num_games, rates, size=2000)
    different, times = np.unique(counts, axis=0, return_counts=True)
    truth = rates[0] + rates[1] / 2
    intervals = [score_interval(*(int(count) for count in row)) for row in different]
    covered = sum(n for (low, high), n in zip(intervals, times, strict=True) if low <= truth <= high) / 2000
    assert 0.91 < covered <= 1.0


def test_elo_by_hand():
    assert elo_difference(0.5, 100) == 0.0
    assert elo_difference(10 / 11, 1000) == pytest.approx(400.0)  # ten to one are 400 points, by definition
    assert elo_difference(0.75, 100) == pytest.approx(190.85, abs=0.01)
    assert elo_difference(0.25, 100) == pytest.approx(-190.85, abs=0.01)


def test_elo_of_a_clean_sweep_is_finite():
    assert elo_difference(1.0, 100) == pytest.approx(elo_difference(0.995, 100))
    assert elo_difference(0.0, 100) == pytest.approx(-elo_difference(1.0, 100))
    assert math.isfinite(elo_difference(1.0, 0))
    assert elo_difference(1.0, 1) == pytest.approx(elo_difference(0.75, 1)) and elo_difference(0.0, 1) < 0


def test_limits_are_not_cut_as_a_clean_sweep_is():
    # 99 of 100: Wilson's limits 0.94555 and 0.99823 by hand, 400 log10(p / (1 - p))
    low, high = elo_interval(*score_interval(99, 0, 1))
    assert (low, high) == (pytest.approx(495.9, abs=0.5), pytest.approx(1100.6, abs=1))
    low, high = elo_interval(*score_interval(100, 0, 0))
    assert low == pytest.approx(566.4, abs=0.5) and high == math.inf
    assert elo_interval(*score_interval(0, 0, 7)) == (
        -math.inf,
        pytest.approx(-elo_interval(*score_interval(7, 0, 0))[0]),
    )
    assert finite(elo_interval(0.0, 0.5)) == [None, 0.0]


@pytest.mark.parametrize(("strength", "num_games"), [(0.98, 20), (0.97, 10)])
def test_the_interval_in_elo_covers_strong_contestants(strength, num_games):
    truth = elo_difference(strength, 10**6)
    wins = np.random.default_rng(2).binomial(num_games, strength, size=500)
    limits = [elo_interval(*score_interval(int(won), 0, num_games - int(won))) for won in wins]
    assert np.mean([low <= truth <= high for low, high in limits]) > 0.9


def test_the_interval_of_a_mean_by_hand():
    mean, interval = mean_with_interval(np.array([1.0, 3.0]))  # variance 2, standard error 1, one degree of freedom
    assert mean == 2.0 and interval == pytest.approx([2 - 12.706, 2 + 12.706], abs=1e-3)
    _, interval = mean_with_interval(np.array([1.0, 2.0, 3.0] * 7))  # variance 0.7, 20 degrees
    assert interval == pytest.approx([2 - 2.086 * (0.7 / 21) ** 0.5, 2 + 2.086 * (0.7 / 21) ** 0.5], abs=1e-3)
    assert mean_with_interval(np.array([0.5])) == (0.5, None)
    assert mean_with_interval(np.empty(0)) == mean_with_interval(None) == (None, None)
