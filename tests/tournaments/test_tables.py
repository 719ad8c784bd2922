"""Tables of a game for more than two: seats, dice, shares and ratings."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from alphazero.commands import tables
from alphazero.commands.shared import run_command
from alphazero.errors import IllegalAction, InvalidSetting
from alphazero.game.kernels import Kernels
from alphazero.players.baselines import GreedyPlayer, RandomPlayer
from alphazero.players.player import Player
from alphazero.tournaments.bradley_terry import rate
from alphazero.tournaments.tables import Tables, choose_groups, play_tables, seatings_of
from tests.search.test_dice import RACE
from tests.search.test_seats import MO, Walk

ELO = 400 / math.log(10)


def simulated(elo: np.ndarray, groups: int, rng: np.random.Generator) -> Tables:
    """Tables of three at which a contestant wins in proportion to its strength."""
    choices = list(combinations(range(len(elo)), 3))
    owners = np.array([order for group in range(groups) for order in seatings_of(choices[group % len(choices)])])
    weights = 10 ** (elo[owners] / 400)
    winners = [rng.choice(3, p=row / row.sum()) for row in weights]
    return Tables(owners, np.eye(3)[winners], np.repeat(np.arange(groups), 6))


def test_ratings_recover_planted_strengths_within_their_errors():
    """Five contestants, 100 tournaments of 240 games: 95% intervals hold the truth about so often."""
    rng, elo = np.random.default_rng(0), np.array([-250.0, -100.0, 0.0, 100.0, 250.0])
    held, distances = 0, []
    for _ in range(100):
        found, errors, _ = simulated(elo, 40, rng).rate(5)
        assert abs(found.mean()) < 1e-9
        held += int((np.abs(found - elo) <= errors).sum())
        distances.append(found - elo)
    assert 0.92 <= held / 500 <= 0.98
    # the likeliest ratings of a few games lie a little too far out
    assert np.abs(np.mean(distances, axis=0)).max() < errors.min() / 3


def test_a_table_of_two_has_the_ratings_of_a_match():
    """Without draws the model is that of Bradley and Terry; with seats, that with the right to begin."""
    owners = np.array([[0, 1]] * 30 + [[1, 0]] * 30)
    first_wins = [1] * 22 + [0] * 8 + [1] * 14 + [0] * 16
    shares = np.array([[won, 1 - won] for won in first_wins], float)
    elo, errors, seats = Tables(owners, shares, np.arange(60)).rate(2)
    games = np.zeros((2, 2, 3), np.int64)
    games[0, 1], games[1, 0] = (22, 0, 8), (14, 0, 16)
    ratings = rate(games)
    assert elo == pytest.approx(ratings.elo, abs=0.5)
    assert errors == pytest.approx(ratings.errors, rel=0.02)
    assert seats[0] - seats[1] == pytest.approx(ratings.advantage, abs=0.5)


def test_shares_and_ratings_by_hand():
    """Of two groups the first contestant won all three games, and half of three: a mean share of 3/4."""
    owners = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]] * 2)
    shares = np.array([[1, 0, 0], [0, 0, 1], [0, 1, 0], [0.5, 0.5, 0], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    share, error = Tables(owners, shares, np.repeat([0, 1], 3)).share(0)
    assert share == 0.75 and error == pytest.approx(12.7062 * 0.25, rel=1e-5)  # Student's t with one degree of freedom


def test_all_seatings_of_a_group_have_the_same_opening_and_each_contestant_each_seat():
    kernels = Kernels(MO)
    players = [RandomPlayer(kernels, seed) for seed in range(4)]
    *_, found = play_tables(kernels, players, 40, seed=3)
    assert len(found.owners) == 42 and found.groups.tolist() == sorted([*range(7)] * 6)
    for group in range(7):
        seats = Counter(map(tuple, found.owners[found.groups == group].tolist()))
        assert len(seats) == 6 and len({owner for order in seats for owner in order}) == 3
    assert found.shares.sum(axis=1) == pytest.approx(np.ones(42))
    assert seatings_of((0, 1, 2, 3, 4))[1] == (1, 2, 3, 4, 0) and len(seatings_of((0, 1, 2, 3))) == 24


class Throws(Player):
    """Throws whenever it can."""

    name = "throws"

    def select_actions(self, states, games, plies):
        return np.ones(len(states), np.int64)


def test_all_seatings_have_the_same_dice_and_the_results_are_those_of_the_seats():
    kernels = Kernels(Walk())
    *_, found = play_tables(kernels, [Throws() for _ in range(4)], 48, seed=5)
    first, second = (found.shares[found.groups == group] for group in (0, 1))
    assert len(np.unique(first, axis=0)) == len(np.unique(second, axis=0)) == 1


def test_a_net_that_knows_nothing_shares_as_much_as_others():
    kernels = Kernels(MO)
    *_, found = play_tables(kernels, [RandomPlayer(kernels, seed) for seed in range(3)], 3000, seed=1)
    for contestant in range(3):
        share, error = found.share(contestant)
        assert abs(share - 1 / 3) <= 1.5 * error < 0.05


def test_better_players_share_more_and_are_rated_higher(capsys: pytest.CaptureFixture[str]):
    kernels = Kernels(MO)
    *_, found = play_tables(
        kernels, [GreedyPlayer(kernels, 1), RandomPlayer(kernels, 2), RandomPlayer(kernels, 3)], 60, 1
    )
    elo, errors, _ = found.rate(3)
    assert elo[0] - errors[0] > max(elo[1:]) and found.share(0)[0] > 0.5
    asked = ["greedy", "random", "mcts:10", "--game", "tictacmo", "--games", "12", "--inference", "torch"]
    assert run_command(tables.main, asked) == 0
    said = capsys.readouterr().out
    assert "3 contestants at tables of 3, 12 games" in said and said.index("greedy") < said.index("random")


def test_one_group_has_no_interval(tmp_path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "tables.json"
    asked = ["greedy", "random", "mcts:5", "--game", "tictacmo", "--games", "6", "--json", str(file)]
    assert run_command(tables.main, asked) == 0
    said, rows = capsys.readouterr().out, json.loads(file.read_text())["contestants"]
    assert "inf" not in said and [row["share_error"] for row in rows] == [None] * 3
    assert sum(row["share"] for row in rows) == pytest.approx(1)


def test_what_no_table_can_be_is_refused():
    two = Kernels(RACE)
    for kernels, count in ((Kernels(MO), 2), (two, 3)):
        with pytest.raises(InvalidSetting):
            next(play_tables(kernels, [RandomPlayer(kernels, 1)] * count, 6, 1))

    class Wrong(Throws):
        def select_actions(self, states, games, plies):
            return np.full(len(states), 99)

    kernels = Kernels(MO)
    with pytest.raises(IllegalAction):
        next(play_tables(kernels, [Wrong()] * 3, 6, 1))


def test_all_contestants_play_about_equally_often():
    for contestants, seats, groups in ((4, 3, 1), (9, 3, 20), (5, 4, 7), (3, 3, 4)):
        found = choose_groups(contestants, seats, groups, seed=1)
        assert len(found) == groups and all(len(set(group)) == seats for group in found)
        played = np.bincount(np.concatenate(found), minlength=contestants)
        assert played.max() - played.min() <= 1, (contestants, played)
    once = choose_groups(5, 3, 10, seed=2)
    assert sorted(once) == sorted(combinations(range(5), 3)) and once != sorted(once)


def test_who_has_not_played_has_no_share(tmp_path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "x.json"
    words = ["random", "greedy", "mcts:2", "mcts:3", "--game", "tictacmo", "--games", "6", "--json", str(file)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_command(tables.main, words) == 0
    assert "share - (no game: give it more games)" in capsys.readouterr().out
    assert sorted(row["share"] is None for row in json.loads(file.read_text())["contestants"]) == [False] * 3 + [True]


def test_the_intervals_of_few_groups_hold_the_truth_as_often_as_they_say():
    """Tables of four at the usual 120 games have five groups; by a normal distribution 88% were held."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(400):
        shares = np.repeat(rng.normal(0.25, 0.1, 5), 4)[:, None] * np.ones(4)
        mean, margin = Tables(np.tile(np.arange(4), (20, 1)), shares, np.repeat(np.arange(5), 4)).share(2)
        held += abs(mean - 0.25) <= margin
    assert 0.92 <= held / 400 <= 0.98
