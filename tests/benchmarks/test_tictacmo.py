"""The share of exact moves in tic-tac-mo: which positions it draws, and what it counts."""

import re
from itertools import pairwise

import numpy as np

from alphazero.commands.shared import run_command
from benchmarks import tictacmo
from games.tictacmo.game import has_line
from games.tictacmo.solver import stones_of


def test_all_positions_have_no_line_and_are_equally_likely():
    states = tictacmo.all_positions(4000, np.random.default_rng(0))
    assert states.shape == (4000, 3) and not any(has_line(stones) for stones in states.ravel())
    each = np.bitwise_count(states)
    assert all(tuple(row) == stones_of(int(row.sum())) for row in each)
    # 15! / (3! 3! 3! 6!) and 15! / (2! 2! 2! 9!) boards; more of those with nine stones have lines
    assert [tictacmo.boards_of(stones) for stones in (0, 1, 6, 9)] == [1, 15, 450_450, 8_408_400]
    nine, six = (np.count_nonzero(each.sum(axis=1) == stones) for stones in (9, 6))
    assert 0.6 * 18.7 < nine / six < 18.7


def test_positions_of_games_follow_each_other():
    states = tictacmo.positions_of_games(500, np.random.default_rng(0))
    assert len(states) == 500 and not states[0].any()
    for before, after in pairwise(states):
        if after.any():
            assert after[0] == before[1] and after[1] == before[2] and after[2] & before[0] == before[0]
            assert np.bitwise_count(after[2] ^ before[0]) == 1
    assert not any(has_line(stones) for stones in states.ravel())


def test_a_move_is_exact_if_it_brings_the_most(monkeypatch, capsys):
    def winner_takes_all(states: np.ndarray) -> np.ndarray:
        return np.array([[0.0, 0.0, float(has_line(last))] for *_, last in states], np.float32)

    monkeypatch.setattr(tictacmo, "values_of", winner_takes_all)
    told = {}
    for contestant in ("greedy", "random"):
        assert run_command(tictacmo.main, [contestant, "--positions", "300", "--threads", "1"]) == 0
        told[contestant] = capsys.readouterr().out
    assert told["greedy"].count("exact  100.00%") == 2 and "300 positions of random games" in told["greedy"]
    assert all(float(share) < 90 for share in re.findall(r"exact  (.*?)%", told["random"]))
    assert all(float(share) < 60 for share in re.findall(r"; (.*?)%", told["random"]))
