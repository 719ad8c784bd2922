"""The benchmark against GNU Backgammon: what it is told, what its answers mean, and the points of a match."""

import numpy as np
import pytest

import alphazero as az
from alphazero.catalogue import registry
from alphazero.commands.shared import run_command
from alphazero.errors import InvalidSetting
from alphazero.game.kernels import kernels_of
from alphazero.matches.arena import Arena
from alphazero.players.contestants import make_player
from alphazero.players.player import Player
from benchmarks import backgammon
from benchmarks.backgammon import (
    GnubgPlayer,
    board_after,
    board_of,
    interval_of,
    lost_points,
    make_gnubg,
    points_of,
    position_id,
    turns_of,
    ways,
)
from games.backgammon.game import PASS
from tests.games.test_backgammon import GAME, random_positions, state_of


def gnubg():
    try:
        return make_gnubg(0)
    except InvalidSetting as error:
        pytest.skip(str(error))


class RunsWithThreeOne(Player):
    name = "runs"

    def select_actions(self, states, games, plies):
        return np.array([GAME.parse_action({2: "13/10", 1: "10/9"}[int(state[6])], state) for state in states])


@pytest.mark.parametrize(
    ("moves", "name"),
    [
        ("", "4HPwATDgc/ABMA"),
        ("31 8/5 6/5", "sGfwATDgc/ABMA"),
        ("31 8/5 6/5 66 24/18 24/18 13/7 13/7", "4NvBwQCwZ/ABMA"),
        ("31 8/5 6/5 66 24/18 24/18 13/7 13/7 21 13/11 6/5", "cGfkATDg28HBAA"),
    ],
)
def test_positions_have_the_names_that_gnubg_1_07_gives_them(moves, name):
    assert position_id(board_of(GAME.position(moves).state)) == name


@pytest.mark.parametrize(
    ("own", "other", "turn", "end_own", "end_other"),
    [
        ({24: 2}, {}, "24/22(2)", {22: 2}, {}),
        ({25: 2, 6: 1}, {3: 1, 5: 1}, "bar/22*/20* 6/5", {25: 1, 20: 1, 5: 1}, {25: 2}),
        ({6: 3, 2: 1}, {}, "6/off(2) 2/off", {6: 1, 0: 3}, {}),
        ({13: 1}, {14: 1}, "13/11*/5", {5: 1}, {25: 1}),
    ],
)
def test_a_turn_as_gnubg_writes_it_leads_to_a_board(own, other, turn, end_own, end_other):
    def board(*sides):
        return tuple(tuple(side.get(place, 0) for place in range(26)) for side in sides)

    assert board_after(board(own, other), turn) == board(end_own, end_other)


def test_the_ways_of_a_turn_are_the_moves_of_the_game():
    state = state_of({6: 2, 4: 1, 0: 12}, {6: 15}, 6, 5)
    position = az.Position(GAME, state, 0, ())
    for board, way in ways(state):
        here = position
        for told, action in way:
            assert here.state.tobytes() == told
            here = here.play(action)
        assert board_of(here.state) == board[::-1]
        assert here.to_play == 1


def test_gnubg_plays_legal_turns_and_is_asked_once_for_each():
    player = gnubg()
    for start in list(random_positions(3))[::4]:
        position = start
        while not position.terminal and position.to_play == start.to_play:
            action = player.select_actions(position.state[None], np.zeros(1, int), np.zeros(1, int))[0]
            position = position.play(action)
    opening = GAME.position("31").state[None]
    first = player.select_actions(opening, np.zeros(1, int), np.zeros(1, int))[0]
    assert GAME.format_action(first, opening[0]) in ("8/5", "6/5")  # everybody's 31
    with pytest.raises(InvalidSetting, match="whole turns"):
        player.select_actions(GAME.position("43 13/9").state[None], np.zeros(1, int), np.zeros(1, int))


class PlaysAnyTurn(GnubgPlayer):
    """Without gnubg: the first way of each turn."""

    def __init__(self):
        super().__init__("nothing", 0)

    def _best_ways(self, states):
        return (next(ways(state))[1] for state in states)


def test_a_turn_that_has_begun_is_played_to_its_end_whatever_was_asked_before(monkeypatch):
    """Once a long match ended in an error, after moves that two turns share were thrown away as old ones."""
    monkeypatch.setattr(backgammon, "MOST_KEPT", 60)

    def ask(player, *states):
        return player.select_actions(np.stack(states), np.arange(len(states)), np.zeros(len(states), int)).tolist()

    begun = GAME.position("31").state
    others = [
        position.state
        for position in random_positions(8)
        if int(position.state[6]) == 2 and position.legal_actions[0] < PASS
    ]
    assert len(others) > 45
    for count in range(40):
        player = PlaysAnyTurn()
        ask(player, begun)
        for other in others[:count]:
            ask(player, other)
        first = ask(player, begun, *others[count : count + 5])[0]
        (second,) = ask(player, GAME.position("31").play(first).state)
        assert GAME.position("31").play(first).play(second).to_play == 1


def test_turns_lose_points_beside_those_that_gnubg_would_play():
    judge, greedy = gnubg(), make_player("greedy", registry.load("backgammon"), seed=0, threads=1)
    states = turns_of(GAME, judge, 20, seed=0)
    assert len({state.tobytes() for state in states}) == 20 and min(len([*ways(state)]) for state in states) > 1
    assert not lost_points(judge, judge, states).any()
    assert lost_points(judge, greedy, states).sum() > 0.1
    found = lost_points(judge, RunsWithThreeOne(), [GAME.position("31").state])
    assert found[0] == pytest.approx(0.159 + 0.018)  # gnubg 1.07: 8/5 6/5 brings 0.159 points, 13/9 takes 0.018


def test_the_points_are_those_of_the_games():
    players = [make_player(text, registry.load("backgammon"), seed=0, threads=1) for text in ("greedy", "random")]
    match = Arena(kernels_of(GAME), *players, 6, 0, opening_plies=0)
    *_, result = match
    points = points_of(GAME, result)
    for number, actions, found in zip(result.numbers, result.actions, points, strict=True):
        assert found == GAME.position(actions).points * (1 if number % 2 == 0 else -1)
    assert np.sign(points).tolist() == list(result.outcomes)


def test_the_interval_takes_pairs_as_independent():
    mean, half = interval_of(np.array([3.0, -1.0, 1.0, 1.0, 2.0, -2.0, 1.0, -1.0]))
    assert mean == 0.5
    assert half == pytest.approx(1.96 * np.std([1, 1, 0, 0], ddof=1) / 2, abs=1e-4)


def test_a_match_is_told_in_points(capsys):
    assert run_command(backgammon.main, ["greedy", "--opponent", "random", "--games", "4", "--threads", "1"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("greedy against random, 4 games\npoints a game  +") and "95% interval" in told
    assert run_command(backgammon.main, ["greedy", "--games", "0"]) == 2
