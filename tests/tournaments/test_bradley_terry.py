"""Ratings of many: against formulas by hand, another library, and strengths that were planted."""

import math

import choix
import numpy as np
import pytest

from alphazero.matches.intervals import Z_95, elo_difference
from alphazero.tournaments.bradley_terry import DRAW, ELO, Ratings, rate, warnings


def table(num_players: int, rows: dict[tuple[int, int], tuple[int, int, int]]) -> np.ndarray:
    games = np.zeros((num_players, num_players, 3), np.int64)
    for (first, second), results in rows.items():
        games[first, second] = results
    return games


def difference(found: Ratings, i: int, j: int) -> tuple[float, float]:
    """The rating of i less that of j, and half the width of its 95% interval."""
    variance = found.covariance[i, i] + found.covariance[j, j] - 2 * found.covariance[i, j]
    return float(found.elo[i] - found.elo[j]), Z_95 * math.sqrt(variance)


def simulate(elo, advantage, draw_weight, games_a_side, rng) -> np.ndarray:
    """Results drawn from the model as the module's docstring has it, written down once more."""
    elo, advantage = np.array(elo) * (2 + draw_weight) / 2, advantage * (2 + draw_weight) / 2
    games = np.zeros((len(elo), len(elo), 3), np.int64)
    for first in range(len(elo)):
        for second in range(len(elo)):
            if first != second:
                odds = 10 ** ((elo[first] - elo[second] + advantage) / 400)
                weights = np.array([math.sqrt(odds), draw_weight, 1 / math.sqrt(odds)])
                games[first, second] = rng.multinomial(games_a_side, weights / weights.sum())
    return games


def test_two_players_by_hand():
    # two parameters of the strengths and one of the draws: W : D : L = e^(d/2) : v : e^(-d/2) fits both sides exactly
    # if D^2 / (W L) is the same for them: first d + a = ln(4000/1000), second -d + a = ln(2000/2000) = 0
    found = rate(table(2, {(0, 1): (40000, 20000, 10000), (1, 0): (20000, 20000, 20000)}))
    # v = 2000 / sqrt(4000 * 1000) = 1, so equals draw a third of their games, and a unit is 2/3 of 400 / ln 10
    distance = advantage = math.log(4) / 2 * 400 / math.log(10) * 2 / 3
    assert difference(found, 0, 1)[0] == pytest.approx(distance, abs=0.05)
    assert found.advantage == pytest.approx(advantage, abs=0.05)
    assert found.draw_rate == pytest.approx(1 / 3, abs=1e-4)
    assert found.elo == pytest.approx([distance / 2, -distance / 2], abs=0.05)


def test_errors_by_hand():
    # without draws and with a known advantage of 0 by symmetry, n games at p = 3/4 have the information n p (1 - p)
    # on the difference in natural units
    found = rate(table(2, {(0, 1): (150, 0, 50), (1, 0): (50, 0, 150)}))
    deviation = ELO / math.sqrt(400 * 0.75 * 0.25)
    assert difference(found, 0, 1) == pytest.approx((400 * math.log10(3), Z_95 * deviation), rel=5e-3)
    assert found.superiority(0, 1) > 0.999 and found.superiority(1, 0) < 0.001
    assert found.errors == pytest.approx([Z_95 * deviation / 2] * 2, rel=5e-3)
    assert found.draw_rate == 0.0


@pytest.mark.parametrize(("wins", "losses"), [(30, 10), (18, 22), (20, 20)])
def test_evidence_is_the_root_of_the_likelihood_ratio(wins, losses):
    """Of a coin: 2 N (p log p + q log q + log 2)."""
    games, won = np.zeros((2, 2, 3), np.int64), wins / (wins + losses)
    games[0, 1], games[1, 0] = (wins, 0, losses), (losses, 0, wins)
    entropy = won * math.log(won) + (1 - won) * math.log(1 - won)
    expected = math.copysign(math.sqrt(4 * (wins + losses) * (entropy + math.log(2))), wins - losses)
    assert rate(games).evidence(0, 1) == pytest.approx(expected, rel=0.02, abs=1e-3)
    assert rate(games).evidence(1, 0) == pytest.approx(-expected, rel=0.02, abs=1e-3)


def test_whoever_loses_every_game_is_weaker():
    """The distance of 1,013 points had an error of 923: an adaptive tournament played on between the clearest pairs."""
    games = np.zeros((3, 3, 3), np.int64)
    games[0, 1], games[1, 0] = (5, 1, 4), (5, 1, 4)
    games[:2, 2], games[2, :2] = (10, 0, 0), (0, 0, 10)
    found = rate(games)
    assert found.superiority(0, 2) > 0.9999 and found.superiority(2, 1) < 0.0001
    assert found.evidence(0, 1) == pytest.approx(0, abs=0.01)


def test_nothing_is_certain_after_any_number_of_games_and_draws_are_no_evidence():
    games = np.zeros((2, 2, 3), np.int64)
    games[0, 1, DRAW] = games[1, 0, DRAW] = 50
    assert rate(games).evidence(0, 1) == pytest.approx(0, abs=1e-3)
    games[0, 1], games[1, 0] = (9000, 0, 1000), (1000, 0, 9000)
    assert 0.9999 < rate(games).superiority(0, 1) < 1 and 0 <= rate(games).superiority(1, 0) < 0.0001


def test_without_draws_and_advantage_it_is_what_choix_finds():
    rng = np.random.default_rng(0)
    games, wins = np.zeros((6, 6, 3), np.int64), []
    for i in range(6):
        for j in range(i):
            won = int(rng.integers(5, 46))
            games[i, j] = games[j, i][::-1] = (won, 0, 50 - won)  # the same with both colours: no advantage
            games[j, i] = (50 - won, 0, won)
            wins += 2 * won * [(i, j)] + 2 * (50 - won) * [(j, i)]
    theirs = ELO * choix.opt_pairwise(6, wins, method="Newton-CG", tol=1e-9)
    ours = rate(games)
    assert ours.elo == pytest.approx(theirs - theirs.mean(), rel=3e-3, abs=0.1)
    assert ours.advantage == pytest.approx(0.0, abs=1e-4)
    choix_covariance = ELO**2 * choix.ep_pairwise(6, wins, 1e-3, model="logit")[1]
    for i, j in ((0, 1), (2, 5)):
        variance = choix_covariance[i, i] + choix_covariance[j, j] - 2 * choix_covariance[i, j]
        assert difference(ours, i, j)[1] == pytest.approx(Z_95 * math.sqrt(variance), rel=0.05)


def test_everyone_has_the_points_that_are_expected():
    games = simulate([0, 100, 250, -300], 60, 0.7, 40, np.random.default_rng(4))
    found = rate(games)
    weight = 2 * found.draw_rate / (1 - found.draw_rate)
    for player in range(4):
        points = expected = 0.0
        for other in set(range(4)) - {player}:
            for first, second in ((player, other), (other, player)):
                distance = found.elo[first] - found.elo[second] + found.advantage
                odds = 10 ** (distance / 400 / (1 - found.draw_rate))
                total = math.sqrt(odds) + weight + 1 / math.sqrt(odds)
                share = (math.sqrt(odds) + weight / 2) / total
                won, drawn, lost = games[first, second]
                points += (won if first == player else lost) + drawn / 2
                expected += 40 * (share if first == player else 1 - share)
        assert points == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("draws", [0, 100, 700])
def test_a_point_means_the_same_as_in_a_match_of_two(draws):
    # a share of draws of 0, 10 and 70 percent, and always 55% of the points
    wins, losses = (1100 - draws) // 2, (900 - draws) // 2
    games = table(2, {(0, 1): (wins, draws, losses), (1, 0): (losses, draws, wins)})
    assert difference(rate(games), 0, 1)[0] == pytest.approx(elo_difference(0.55, 2000), abs=0.5)


def test_planted_strengths_lie_in_the_intervals_at_the_stated_rate():
    truth, rng = np.array([400.0, 250, 100, 0, -250, -500]), np.random.default_rng(5)
    truth, covered, differences, advantages, repeats = truth - truth.mean(), 0, 0, 0, 300
    for _ in range(repeats):
        found = rate(simulate(truth, 35, 0.3, 25, rng))
        covered += int((np.abs(found.elo - truth) <= found.errors).sum())
        advantages += abs(found.advantage - 35) <= found.advantage_error
        for i in range(5):
            distance, error = difference(found, i, i + 1)
            differences += abs(distance - (truth[i] - truth[i + 1])) <= error
    assert 0.93 < covered / (6 * repeats) < 0.97
    assert 0.93 < differences / (5 * repeats) < 0.97
    assert 0.91 < advantages / repeats < 0.985


@pytest.mark.parametrize(("draw_rate", "games_a_side"), [(0.88, 10), (0.95, 10), (0.95, 20)])
def test_intervals_hold_the_truth_where_nearly_all_games_are_drawn(draw_rate, games_a_side):
    rng, covered, differences, repeats = np.random.default_rng(9), 0, 0, 60
    truth = 100 * (1 - draw_rate) * np.array([1.0, 0, -1])
    for _ in range(repeats):
        found = rate(simulate(truth, 0, 2 * draw_rate / (1 - draw_rate), games_a_side, rng))
        covered += int((np.abs(found.elo - truth) <= found.errors).sum())
        distance, error = difference(found, 0, 2)
        differences += abs(distance - (truth[0] - truth[2])) <= error
    assert covered / (3 * repeats) > 0.93 and differences / repeats > 0.93


def test_draws_alone_do_not_settle_a_rating():
    games = table(3, {(i, j): (0, 10, 0) for i in range(3) for j in range(3) if i != j})
    # the score of the 40 games of each is 1/2, and by Wilson's interval it may be 0.456 to 0.544: 31 Elo points
    assert rate(games).elo == pytest.approx([0] * 3, abs=1e-6) and (rate(games).errors > 15).all()
    for i in range(2):  # one who lost everything tells nothing of the draws between the others
        games[i, 2], games[2, i] = (20, 0, 0), (0, 0, 20)
    assert difference(rate(games), 0, 1)[1] > 50 and rate(games).errors[2] > 100


def test_the_anchor_is_zero_and_changes_nothing_else():
    games = simulate([0, 100, 300], 0, 0.2, 30, np.random.default_rng(6))
    plain, anchored = rate(games), rate(games, anchor=2)
    assert plain.elo.mean() == pytest.approx(0.0, abs=1e-9) and anchored.elo[2] == 0.0
    assert anchored.elo == pytest.approx(plain.elo - plain.elo[2])
    assert anchored.errors == pytest.approx(plain.errors)


def test_one_who_lost_everything_is_finite_said_and_blurs_nobody_else():
    games = simulate([0, 50, 100, 0], 0, 0.0, 50, np.random.default_rng(7))
    alone = rate(games[:3, :3]).errors
    for i in range(3):
        games[i, 3], games[3, i] = (50, 0, 0), (0, 0, 50)
    found = rate(games)
    assert np.isfinite(found.elo).all() and 500 < found.elo[:3].min() - found.elo[3] < 3000
    assert found.errors[3] > 300 and found.errors[:3] == pytest.approx(alone, rel=0.1)
    (sentence,) = warnings(games, "abcd")
    assert sentence.startswith("d: nothing but wins or nothing but losses")


def test_groups_that_never_met_are_finite_and_said():
    games = table(5, {(0, 1): (5, 0, 2), (1, 0): (3, 1, 4), (2, 3): (1, 0, 6), (3, 2): (6, 0, 1)})
    found = rate(games)
    assert np.isfinite(found.elo).all() and np.isfinite(found.errors).all()
    assert difference(found, 2, 4)[1] > 1000
    (sentence,) = warnings(games, "abcde")
    assert sentence.startswith("3 groups ") and sentence.endswith("a, b | c, d | e")


@pytest.mark.parametrize("results", [(0, 0, 0), (0, 9, 0), (9, 0, 0), (0, 0, 9)])
def test_strange_results_give_finite_numbers(results):
    found = rate(table(3, {(0, 1): results}))
    assert np.isfinite([*found.elo, *found.errors, found.advantage, found.advantage_error, found.draw_rate]).all()


def test_ordinary_results_bring_no_warning():
    games = simulate([0, 100, 300], 0, 0.2, 30, np.random.default_rng(8))
    assert warnings(games, "abc") == []
    # a beats b beats c beats a: everybody has lost something
    assert warnings(table(3, {(0, 1): (9, 0, 0), (1, 2): (9, 0, 0), (2, 0): (9, 0, 0)}), "abc") == []
