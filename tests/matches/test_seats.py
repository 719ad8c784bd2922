"""Matches of games for more than two: one contestant has one seat, the other one all others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import alphazero as az
from alphazero.game.kernels import Kernels
from alphazero.matches.arena import Arena
from alphazero.matches.result import MatchResult, records_of
from alphazero.matches.seating import group_of, lone_seat, whole_groups
from alphazero.players.baselines import GreedyPlayer, RandomPlayer
from alphazero.players.player import Player
from tests.search.test_seats import MO, Walk

KERNELS = Kernels(MO)


class First(Player):
    """The first legal action, and notes who was asked."""

    name = "first"

    def __init__(self):
        self.asked: list[tuple[int, int]] = []

    def select_actions(self, states, games, plies):
        self.asked += [(int(game), int(ply)) for game, ply in zip(games, plies, strict=True)]
        return np.array([int(KERNELS.describe_all(state[None])[0][0].argmax()) for state in states])


def test_each_contestant_is_alone_in_each_seat_with_the_same_opening():
    first, second = First(), First()
    result = Arena(KERNELS, first, second, 12, seed=3, opening_plies=2).play()
    for number in range(12):
        asked = {ply for game, ply in first.asked if game == number}
        alone = {ply for ply in range(2, result.num_games and 15) if ply % 3 == number // 2 % 3}
        mine = alone if number % 2 == 0 else set(range(2, 15)) - alone
        assert asked <= mine and asked, number
        assert lone_seat(MO, number) == number // 2 % 3
    openings = [actions[:2] for actions in result.actions]
    assert openings[:6] == [openings[0]] * 6 and openings[6:] == [openings[6]] * 6 != openings[:6]
    assert [group_of(MO, number) for number in (0, 5, 6, 11, 12)] == [0, 0, 1, 1, 2]


def test_a_match_has_whole_groups():
    assert len(az.match("random", "greedy", MO, games=4).games) == 6
    assert [whole_groups(MO, number) for number in (1, 6, 7, 100)] == [6, 6, 12, 102]
    assert whole_groups(az.load_game("connect4"), 3) == whole_groups(az.load_game("2048"), 3) == 3


def test_who_has_the_best_result_wins_and_a_shared_one_is_a_draw():
    result = Arena(KERNELS, GreedyPlayer(KERNELS, 1), RandomPlayer(KERNELS, 2), 60, seed=1, opening_plies=2).play()
    for number, actions, outcome in zip(result.numbers, result.actions, result.outcomes, strict=True):
        winners = MO.position(actions).winners
        owners = {int((seat != number // 2 % 3) != (number % 2 == 1)) for seat in winners}
        assert outcome == {frozenset({0}): 1, frozenset({1}): -1, frozenset({0, 1}): 0}[frozenset(owners)]
    assert result.wins > result.losses > 0 and result.draws > 0
    records = records_of(result, MO, "tictacmo", ("greedy", "random"), 1)
    for record in records:
        winners = record.positions(MO)[-1].winners
        seat = record.number // 2 % 3
        assert record.result == ("1-0" if winners == (seat,) else "1/2-1/2" if seat in winners else "0-1")
        assert record.contestants == (("greedy", "random") if record.number % 2 == 0 else ("random", "greedy"))


@pytest.mark.parametrize("game", [MO, Walk()], ids=lambda game: game.name)
def test_equal_players_share_the_points_in_each_seat(game):
    kernels = Kernels(game)
    result = Arena(kernels, RandomPlayer(kernels, 1), RandomPlayer(kernels, 2), 3000, seed=1, opening_plies=0).play()
    low, high = result.score_interval
    assert low < 0.5 < high and high - low < 0.04
    if game.num_outcomes:
        groups: dict[int, set[tuple[int, ...]]] = {}
        for number, actions in zip(result.numbers, result.actions, strict=True):
            groups.setdefault(group_of(game, number), set()).add(actions)
        assert max(map(len, groups.values())) > 1


def test_all_seatings_have_the_same_dice():
    """Two that throw whenever they can see the same coins."""
    kernels = Kernels(Walk())

    class Throws(Player):
        name = "throws"

        def select_actions(self, states, games, plies):
            return np.ones(len(states), np.int64)

    result = Arena(kernels, Throws(), Throws(), 40, seed=5, opening_plies=0).play()
    groups = [set(result.actions[first : first + 8]) for first in range(0, 40, 8)]
    assert list(map(len, groups)) == [1] * 5 and len(set.union(*groups)) > 2


def test_a_match_that_is_cut_short_has_whole_groups():
    result = Arena(KERNELS, First(), RandomPlayer(KERNELS, 2), 18, seed=3, opening_plies=2).play()
    for finished, whole in ((18, 18), (17, 12), (11, 6), (5, 0)):
        assert part_of(result, finished).whole_pairs().num_games == whole


def part_of(result: MatchResult, count: int) -> MatchResult:
    """The first games."""
    names = ("numbers", "actions", "outcomes", "game_seconds", "forfeits", "earned")
    return replace(result, **{name: getattr(result, name)[:count] for name in names})
