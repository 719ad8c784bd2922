"""Matches of games for one: both play each game with the same dice, and who has more points wins it."""

from pathlib import Path

import numpy as np
import pytest

import alphazero as az
from alphazero.game.kernels import Kernels
from alphazero.game.record import read_records, write_records
from alphazero.matches.arena import Arena
from alphazero.matches.result import as_json, describe
from alphazero.players.baselines import GreedyPlayer, RandomPlayer
from alphazero.players.player import Player
from tests.search.test_alone import CLIMB

KERNELS = Kernels(CLIMB)


class Always(Player):
    """Plays one action."""

    def __init__(self, action: int):
        self.name, self.action = f"always {action}", action

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        return np.full(len(states), self.action)


def test_who_has_more_points_wins_and_equal_players_draw_every_game():
    result = Arena(KERNELS, Always(0), Always(1), 40, seed=1).play()
    assert result.numbers == tuple(range(40)) and result.num_games == 40
    for actions, others, outcome, (mine, theirs) in zip(
        result.actions, result.others, result.outcomes, result.earned, strict=True
    ):
        assert CLIMB.position(actions).points == mine == 10  # six sure points, and two lives
        assert CLIMB.position(others).terminal and CLIMB.position(others).points == theirs
        assert outcome == np.sign(mine - theirs)
    assert 0 < result.wins < 40 and result.moves[0] == 240 > result.moves[1]
    same = Arena(KERNELS, Always(1), Always(1), 40, seed=1).play()
    assert same.draws == 40 and same.actions == same.others == result.others
    assert Arena(KERNELS, Always(1), Always(1), 40, seed=2).play().actions != same.actions


def test_a_game_alone_is_the_one_in_the_match():
    players = RandomPlayer(KERNELS, 1), GreedyPlayer(KERNELS, 2)
    whole = Arena(KERNELS, *players, 6, seed=3).play()
    one = Arena(KERNELS, *players, 6, seed=3, numbers=[4]).play()
    assert (one.actions, one.others, one.earned) == (whole.actions[4:5], whole.others[4:5], whole.earned[4:5])


def test_greedy_takes_the_points_at_hand():
    """A throw brings 1.75 on average at once, a step one point."""
    assert set(GreedyPlayer(KERNELS, 0).select_actions(*_starts(5))) == {1}


def _starts(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return KERNELS.start_states(count), np.arange(count), np.zeros(count, np.int64)


def test_the_report_has_the_mean_points_of_both_with_intervals():
    result = Arena(KERNELS, Always(0), Always(1), 40, seed=1).play()
    points = np.array([theirs for _, theirs in result.earned])
    mean, error = points.mean(), 1.96 * points.std(ddof=1) / 40**0.5
    assert result.mean_points(0) == (10.0, 0.0) and result.mean_points(1) == pytest.approx((mean, error))
    assert f"and {mean:.1f} ± {error:.1f} (points, 95% interval)" in describe(CLIMB, ("a", "b"), result)
    assert as_json("climb", 1, ("a", "b"), result)["contestants"][1]["points"] == pytest.approx(mean)


def test_saved_games_replay_for_both(tmp_path: Path):
    match = az.match("random", "greedy", CLIMB, games=5, seed=1)
    write_records(tmp_path / "games.jsonl", match.games)
    records = read_records(tmp_path / "games.jsonl")
    assert records == list(match.games)
    for record, outcome, earned in zip(records, match.outcomes, match.earned, strict=True):
        mine, theirs = (record.positions(CLIMB, second)[-1].points for second in (False, True))
        swapped = record.contestants != ("random", "greedy")
        assert ((theirs, mine) if swapped else (mine, theirs)) == earned
        assert record.result == {1: "1-0", -1: "0-1", 0: "1/2-1/2"}[-outcome if swapped else outcome]
