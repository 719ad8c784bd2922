"""Matches of games for one: both play each game with the same dice, and who has more points wins it."""

from pathlib import Path

import numpy as np
import pytest

import alphazero as az
from alphazero.game.kernels import Kernels
from alphazero.game.record import read_records, write_records
from alphazero.matches.arena import Arena
from alphazero.matches.intervals import Sprt, mean_with_margin
from alphazero.matches.result import MatchResult, as_json, describe
from alphazero.players.baselines import GreedyPlayer, MinimaxPlayer, RandomPlayer, action_values
from alphazero.players.player import Player
from tests.search.row_game import ROW
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
    mean, error = points.mean(), 2.02269 * points.std(ddof=1) / 40**0.5  # Student's t with 39 degrees of freedom
    assert result.mean_points(0) == (10.0, 0.0) and result.mean_points(1) == pytest.approx((mean, error), rel=1e-5)
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


ROWS = Kernels(ROW)


def most_points(position: az.Position) -> float:
    return position.points if position.terminal else max(map(most_points, map(position.play, position.legal_actions)))


def test_minimax_looks_for_the_most_points_where_no_dice_fall():
    exact = {action: most_points(ROW.start().play(action)) for action in range(3)}
    (values,) = action_values(ROWS, 8)(ROW.start().state[None])
    assert values == pytest.approx([3 * exact[action] / 72 for action in range(3)], abs=1e-6)
    (values,) = action_values(ROWS, 2)(ROW.start().play(0).state[None])  # the points of the next two plies
    start = ROW.start().play(0)
    ahead = [max(int(start.play(a).play(b).state[2] - start.state[2]) for b in range(3)) for a in range(3)]
    assert values == pytest.approx([3 * points / 72 for points in ahead], abs=1e-6)
    match = Arena(ROWS, MinimaxPlayer(ROWS, 8, 1), RandomPlayer(ROWS, 1), 40, seed=1, opening_plies=0).play()
    assert {earned for earned, _ in match.earned} == {most_points(ROW.start())} and match.score > 0.9


def test_each_game_of_a_match_has_an_opening_of_its_own(caplog):
    result = az.match("greedy", "random", ROW, games=30)
    openings = [tuple(record.opening) for record in result.games]
    assert len(set(openings)) == 30 and not caplog.text
    assert all(a[: len(o)] == b[: len(o)] for a, b, o in zip(result.actions, result.others, openings, strict=True))


def test_a_game_is_what_both_have_played():
    """One who plays without chance and one who does not are the same match in either order."""
    results = []
    for first, second in ((Always(0), RandomPlayer(ROWS, 3)), (RandomPlayer(ROWS, 3), Always(0))):
        results.append(Arena(ROWS, first, second, 60, seed=1, opening_plies=0).play())
    there, back = results
    assert there.distinct_games == back.distinct_games > 50
    assert sum(there.pairs) == sum(back.pairs) == 30
    assert Sprt(0, 20).log_likelihood_ratio(there.pairs) != 0
    assert Arena(ROWS, Always(0), Always(1), 60, seed=1, opening_plies=0).play().distinct_games == 1


def test_few_games_have_wide_intervals():
    """By Student's t: with two games half of the interval is 12.7 standard errors."""
    result = MatchResult((0, 1), ((0,), (1,)), (1, 1), (2, 2), (0.0, 0.0), earned=((10.0, 0.0), (14.0, 0.0)))
    assert result.mean_points(0) == pytest.approx((12.0, 12.706 * 2), rel=1e-4)
    assert mean_with_margin(np.array([3.0])) == (3.0, np.inf)
