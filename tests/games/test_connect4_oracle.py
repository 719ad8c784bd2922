"""Connect Four's solver as a contestant."""

import threading

import numpy as np
import pytest

from alphazero.errors import InputError
from alphazero.game.spec import ExactResult
from alphazero.matches.judge import Labelled
from games.connect4 import solver
from games.connect4.solver import GAME
from tests.games.connect4_positions import CONNECT_4, late_positions, open_player, plies_of, state_after


@pytest.fixture(scope="module")
def late() -> Labelled:
    return late_positions()


def test_the_solver_plays_all_best_columns_and_only_those(late):
    rows = np.flatnonzero(plies_of(late) >= 26)
    states, numbers, plies = late.states[rows], np.arange(len(rows)), plies_of(late)[rows]
    best = late.scores[rows] == late.scores[rows].max(axis=1, keepdims=True)
    player, chosen = open_player("solver"), np.zeros(best.shape, bool)
    for repetition in range(25):
        chosen[numbers, player.select_actions(states, 1000 * repetition + numbers, plies)] = True
    assert not (chosen & ~best).any() and (best.sum(axis=1) > 1).sum() > 20
    assert (chosen == best).mean() > 0.99


def test_the_seed_decides_which_of_the_best_columns_the_solver_plays(late):
    plies = plies_of(late)
    several = (late.scores == late.scores.max(axis=1, keepdims=True)).sum(axis=1) > 1
    first, again, other = (
        open_player("solver", seed, threads).select_actions(late.states, np.arange(400), plies)
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    )
    assert np.array_equal(first, again) and np.array_equal(first[~several], other[~several])
    assert 0.3 < (first != other)[several].mean() < 0.8


def test_the_solver_wins_as_soon_and_loses_as_late_as_can_be():
    def play(moves: str) -> int:
        state = state_after(moves)[None]
        return int(open_player("solver").select_actions(state, np.zeros(1, np.int64), np.full(1, len(moves)))[0]) + 1

    assert play("121212") == 1  # wins at once rather than later
    assert play("12121") == 1  # blocks
    assert play("4453") in (3, 6, 7)  # lost, with the scores -5 -5 -2 -3 -4 -2 -2


@pytest.mark.parametrize("text", ["solver:3", "solver@x=1", "solver:3@x=1"])
def test_the_solver_takes_no_argument_and_no_settings(text):
    with pytest.raises(InputError, match="solver takes no argument and no settings"):
        open_player(text)


def test_one_solver_is_behind_player_oracle_and_balance(monkeypatch):
    made = []

    class Counted(solver.Solver):
        def __init__(self, *arguments):
            made.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(solver, "Solver", Counted)
    solver.shared_solver.cache_clear()
    position = GAME.position([3, 3, 4, 2])
    players = [open_player("solver", threads=threads) for threads in (1, 2)]
    for player in players:
        assert player.select_actions(position.state[None], np.zeros(1, np.int64), np.full(1, 4))[0] in (2, 5, 6)
    assert next(iter(CONNECT_4.make_oracle(GAME).results(position).values())) == ExactResult(-1, 18)
    assert CONNECT_4.make_balance(GAME)(position.state[None]).tolist() == [False]
    assert made == [()]
    solver.shared_solver.cache_clear()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_solver_uses_no_more_threads_than_it_is_told(threads, late):
    fresh, seen = solver.Solver(3), set()
    memory = fresh.memory

    def noted():
        seen.add(threading.get_ident())
        return memory()

    fresh.memory = noted
    expected = solver.shared_solver().column_scores_all(late.states[:60])
    assert np.array_equal(fresh.column_scores_all(late.states[:60], threads=threads), expected)
    assert 1 <= len(seen) <= threads
