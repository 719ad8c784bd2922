"""The sequential test: its likelihoods against a plain optimiser, its error rates by planted players."""

import json
import math

import numpy as np
import pytest
from scipy import optimize

from alphazero.catalogue import registry
from alphazero.commands import pit
from alphazero.commands.shared import run_command
from alphazero.errors import InvalidSetting
from alphazero.game.kernels import kernels_of
from alphazero.game.record import read_records
from alphazero.matches.arena import Arena
from alphazero.matches.intervals import BOUND, PAIR_SCORES, Sprt, expected_score
from alphazero.matches.result import MatchResult
from alphazero.players.player import Player

KERNELS = kernels_of(registry.load("tictactoe").game)


def log_likelihood(counts: np.ndarray, mean: float) -> float:
    """The largest log-likelihood of the counts among all distributions over the five results with that mean."""
    constraints = (
        {"type": "eq", "fun": lambda p: p.sum() - 1},
        {"type": "eq", "fun": lambda p: p @ PAIR_SCORES - mean},
    )
    found = optimize.minimize(
        lambda p: -(counts * np.log(p)).sum() / counts.sum(), np.full(5, 0.2), bounds=[(1e-9, 1)] * 5,
        constraints=constraints, method="SLSQP", options={"maxiter": 1000, "ftol": 1e-14},
    )  # fmt: skip
    assert found.success
    return -found.fun * counts.sum()


@pytest.mark.parametrize("pairs", [(5, 9, 30, 12, 8), (1, 2, 3, 4, 50), (40, 3, 20, 3, 30), (7, 1, 1, 1, 1)])
@pytest.mark.parametrize("elos", [(0, 20), (-30, 5), (10, 200)])
def test_the_ratio_is_that_of_the_likeliest_distributions(pairs, elos):
    counts = np.array(pairs, float)
    expected = log_likelihood(counts, expected_score(elos[1])) - log_likelihood(counts, expected_score(elos[0]))
    assert Sprt(*elos).log_likelihood_ratio(pairs) == pytest.approx(expected, abs=2e-3)


def test_two_results_alone_by_hand():
    """With only lost and won pairs it is Wald's test of a coin: W log(p1 / p0) + L log(q1 / q0)."""
    p0, p1 = 0.5, 10 ** (100 / 400) / (1 + 10 ** (100 / 400))
    expected = 60 * math.log(p1 / p0) + 40 * math.log((1 - p1) / (1 - p0))
    # the little that is added for results that never came tells against none of the two
    assert Sprt(0, 100).log_likelihood_ratio((40, 0, 0, 0, 60)) == pytest.approx(expected, abs=0.01)


def test_more_of_the_same_gives_more_certainty_and_the_mirror_image_the_opposite():
    test = Sprt(-10, 10)
    ratios = [test.log_likelihood_ratio([n * k for k in (5, 10, 20, 15, 10)]) for n in (1, 2, 4)]
    assert ratios[1] == pytest.approx(2 * ratios[0]) and ratios[2] == pytest.approx(4 * ratios[0])
    assert ratios[0] > 0 and test.log_likelihood_ratio((10, 15, 20, 10, 5)) == pytest.approx(-ratios[0])
    assert test.log_likelihood_ratio((0, 0, 0, 0, 0)) == 0
    assert pytest.approx(2.944, abs=1e-3) == BOUND


def verdicts(win: float, draw: float, matches: int) -> list[str | None]:
    """Of matches between players who win and draw single games so often, looked at after every eighth pair."""
    rng, test, found = np.random.default_rng(1), Sprt(0, 20), []
    for _ in range(matches):
        points = rng.choice([2, 1, 0], p=[win, draw, 1 - win - draw], size=(6000, 2)).sum(axis=1)
        counts, verdict = np.zeros(5, int), None
        for begin in range(0, len(points), 8):
            counts += np.bincount(points[begin : begin + 8], minlength=5)
            verdict = test.verdict(counts)
            if verdict:
                break
        found.append(verdict)
    return found


@pytest.mark.parametrize(("matches", "most"), [(50, 6), pytest.param(200, 18, marks=pytest.mark.slow)])
def test_a_player_who_scores_60_percent_passes_and_an_equal_one_fails(matches, most):
    """At the stated error rates of 5%: so many are within three standard errors of them."""
    assert verdicts(0.55, 0.1, matches).count("H1") == matches
    equal = verdicts(0.4, 0.2, matches)
    assert equal.count("H1") <= most and equal.count("H0") >= matches - most


@pytest.mark.parametrize("elos", [(20, 0), (5, 5), (0, 1e9), (float("nan"), 3)])
def test_wrong_hypotheses_are_refused(elos):
    with pytest.raises(
        InvalidSetting, match="two Elo differences, the smaller first|the SPRT's elo[01] must lie between"
    ):
        Sprt(*elos)


def test_pairs_count_in_order_up_to_the_first_that_is_open():
    games = {0: 1, 1: 1, 2: 0, 3: -1, 4: 1, 6: 1, 7: 1}
    result = MatchResult(tuple(games), tuple((game,) for game in games), tuple(games.values()), (0, 0), (0.0, 0.0))
    assert result.pairs == (0, 1, 0, 0, 1)  # 2 points, then 1/2; the third pair is open, so the fourth waits
    assert result.whole_pairs().numbers == (0, 1, 2, 3) and result.whole_pairs().score == 2.5 / 4 != result.score
    assert result.whole_pairs().whole_pairs() == result.whole_pairs()


class InOrder(Player):
    """Takes the first legal action in an order of its own, as a network does that plays by its policy."""

    def __init__(self, *order: int):
        self._order = np.array([*order, *(action for action in range(9) if action not in order)])

    def select_actions(self, states, games, plies):
        legal_masks, _, _ = KERNELS.describe_all(states)
        return self._order[legal_masks[:, self._order].argmax(axis=1)]


def test_the_same_two_games_count_once_however_often_they_are_played():
    result = Arena(KERNELS, InOrder(0, 1, 2), InOrder(3, 4, 8), 200, seed=1, opening_plies=0).play()
    assert result.wins == 200 and result.distinct_games == 2
    assert result.pairs == (0, 0, 0, 0, 1) and Sprt(0, 20).verdict(result.pairs) is None
    returning = Arena(KERNELS, InOrder(0, 1, 2), InOrder(3, 4, 8), 200, seed=1, opening_plies=1).play()
    assert sum(returning.pairs) <= 9


class Dice(Player):
    """Takes the first free cell or any cell, each time anew."""

    def __init__(self, share: float):
        self._rng, self._share = np.random.default_rng(0), share

    def select_actions(self, states, games, plies):
        legal_masks, _, _ = KERNELS.describe_all(states)
        weights = self._rng.random(legal_masks.shape) * legal_masks
        return np.where(self._rng.random(len(states)) < self._share, legal_masks.argmax(axis=1), weights.argmax(axis=1))


def test_all_pairs_count_if_chance_decides(monkeypatch):
    """Pairs that repeat are the likely ones: without them one that scored 31% had 33, and tests took wrong sides."""
    result = Arena(KERNELS, Dice(0.9), Dice(0.5), 2000, seed=1, opening_plies=1).play()
    assert sum(result.pairs) == 1000 > 1.5 * result.distinct_games / 2
    assert np.dot(result.pairs, PAIR_SCORES) / 1000 == pytest.approx(result.score)


def test_a_match_stops_when_it_is_clear(tmp_path, capsys):
    report = tmp_path / "result.json"
    games = tmp_path / "games.jsonl"
    argv = ["minimax:3", "random", "--game", "tictactoe", "--sprt", "0,50", "--json", str(report)]
    assert run_command(pit.main, [*argv, "--save-games", str(games)]) == 0
    said = capsys.readouterr().out
    assert "H1 accepted: minimax:3 is stronger by more than 0 points" in said
    written = json.loads(report.read_text())
    assert written["sprt"]["verdict"] == "H1" and written["games"] < 2000
    assert sum(written["sprt"]["pairs"]) <= written["games"] // 2
    # those that ended first would be the short ones, which favour whoever wins quickly
    assert [record.number for record in read_records(games)] == list(range(written["games"]))
    warning = "The test ended the match, so the score leans towards the verdict"
    assert warning in said and written["sprt"]["ended_the_match"] is True
    argv = ["random", "random", "--game", "tictactoe", "--sprt", "0,1", "--games", "20", "--json", str(report)]
    assert run_command(pit.main, [*argv, "--overwrite"]) == 0
    said = capsys.readouterr().out
    assert "not decided: give it more --games" in said and warning not in said
    assert json.loads(report.read_text())["sprt"]["ended_the_match"] is False


@pytest.mark.parametrize("words", ["--sprt=20", "--sprt=a,b", "--sprt=20,0", "--sprt=", "--sprt=0,20 --openings=none"])
def test_a_wrong_test_gets_one_sentence(words, capsys):
    assert run_command(pit.main, ["random", "greedy", *words.split()]) == 2
    errors = capsys.readouterr().err
    assert "--openings" in errors or "SPRT" in errors.upper()
    assert errors.count("\n") == 1
