"""Matches of games with dice: the same dice for both games of a pair, and records that replay them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import alphazero as az
from alphazero.catalogue import registry
from alphazero.errors import InvalidSetting
from alphazero.game.kernels import Kernels
from alphazero.game.record import read_records, write_records
from alphazero.matches.arena import Arena
from alphazero.matches.result import MatchResult, describe, same_dice
from alphazero.players.baselines import GreedyPlayer, MinimaxPlayer, RandomPlayer
from alphazero.players.player import Player
from tests.search.test_alone import CLIMB
from tests.search.test_dice import RACE, expected, some_positions

PIG = registry.load("pig").game


class Holds(Player):
    """Holds as soon as it may."""

    name = "holds"

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        masks, _, _ = Kernels(PIG).describe_all(states)
        return masks[:, 1].astype(np.int64)


def test_both_games_of_a_pair_have_the_same_dice_and_other_pairs_others():
    result = Arena(Kernels(PIG), Holds(), Holds(), 8, seed=3).play()
    assert all(result.actions[game] == result.actions[game + 1] for game in range(0, 8, 2))
    assert len(set(result.actions)) == 4 and result.outcomes[0] == -result.outcomes[1] != 0
    assert Arena(Kernels(PIG), Holds(), Holds(), 8, seed=4).play().actions != result.actions


def test_actions_and_outcomes_lead_to_the_result():
    kernels = Kernels(RACE)
    result = Arena(kernels, RandomPlayer(kernels, 1), RandomPlayer(kernels, 2), 20, seed=5).play()
    for game, (actions, outcome) in enumerate(zip(result.actions, result.outcomes, strict=True)):
        end = RACE.position(actions)
        assert end.terminal and end.outcome == (outcome if game % 2 == 0 else -outcome)
        assert sum(not position.chances for position in end.history[:-1]) <= RACE.max_plies


def test_dice_fall_as_often_as_they_should():
    kernels, shown = Kernels(RACE), np.zeros(3)
    states = np.repeat(RACE.start().play(0).state[None], 4000, axis=0)
    outcomes = kernels.roll(states, np.zeros(4000, np.int8), 7, np.arange(4000), np.zeros(4000, np.int64))
    shown += np.bincount(outcomes.ravel(), minlength=3)
    assert outcomes.shape == (4000, 2) and np.abs(shown / 8000 - [0.5, 0.25, 0.25]).max() < 0.025  # five errors
    assert (states[:, 1] == outcomes.sum(axis=1)).all() and not states[:, 2].any()


def test_dice_differ_by_seed_game_and_ply():
    """Two coins each: of 60 pairs of them few are alike, and as many of the first coins are like the second ones."""
    kernels, games = Kernels(RACE), np.arange(60)

    def rolled(seed: int, games: np.ndarray, ply: int) -> np.ndarray:
        states = np.repeat(RACE.start().play(0).state[None], 60, axis=0)
        return kernels.roll(states, np.zeros(60, np.int8), seed, games, np.full(60, ply))

    shown = rolled(7, games, 2)
    assert np.array_equal(shown, rolled(7, games, 2))
    for other in (rolled(8, games, 2), rolled(7, games + 60, 2), rolled(7, games, 3), shown[:, ::-1]):
        assert (shown == other).mean() < 0.6


def test_games_are_saved_and_replay_to_the_same_dice(tmp_path: Path):
    match = az.match("random", "greedy", "pig", games=4, seed=1)
    write_records(tmp_path / "games.jsonl", match.games)
    records = read_records(tmp_path / "games.jsonl")
    assert records == list(match.games)
    for record in records:
        end = record.positions(PIG)[-1]
        assert end.terminal and {1: "1-0", -1: "0-1", 0: "1/2-1/2"}[end.outcome] == record.result
        assert {"roll", "hold"} < set(record.moves) <= {"roll", "hold", *"123456"}


def test_greedy_takes_exact_means_over_the_dice():
    """A result counts three times, and a game that goes on nothing: the race has no heuristic."""
    kernels, known = Kernels(RACE), dict[tuple, float]()
    last = [position for position in some_positions(RACE, 60) if position.state[0] == 3]
    values = GreedyPlayer(kernels, 0)._values(np.array([position.state for position in last]))
    assert len(last) > 5
    for position, row in zip(last, values, strict=True):
        for action in position.legal_actions:
            ends = _ends(position.play(action), 1.0)
            exact = 0.0
            for end, mass in ends:
                if end.terminal:
                    exact += mass * 3 * expected(end, known) * (1 if end.to_play == position.to_play else -1)
            assert row[action] == exact


def test_more_dice_in_a_row_than_a_game_says_harm_no_memory():
    """`alphazero check` refuses such a game."""
    game = type("Said", (type(RACE),), {"name": "said_one", "dice_in_a_row": 1})()
    kernels = Kernels(game)
    for _ in range(20):
        values = GreedyPlayer(kernels, 0)._values(np.array([at.state for at in some_positions(game, 20)]))
        assert np.isfinite(values).all()


def _ends(position, mass):
    if not position.chances:
        return [(position, mass)]
    return [end for o, p in enumerate(position.chances) for end in _ends(position.play(o), mass * p)]


def test_a_deeper_minimax_is_refused_with_what_to_take():
    with pytest.raises(InvalidSetting, match="take minimax:1, or mcts"):
        MinimaxPlayer(Kernels(RACE), 3, seed=0)


def test_the_same_dice_narrow_the_interval_as_far_as_the_games_of_a_pair_differ():
    rng = np.random.default_rng(0)
    wins, independent = rng.choice([-1, 1], 100), rng.choice([-1, 1], 200)
    opposite, alike = np.stack([wins, -wins], axis=1).ravel(), np.repeat(wins, 2)
    for outcomes, ratio in ((opposite, 0.0), (independent, 1.0), (alike, 2**0.5)):
        result = MatchResult(tuple(range(200)), ((),) * 200, tuple(outcomes.tolist()), (0, 0), (0.0, 0.0))
        mean, margin, found = same_dice(RACE, result)
        assert mean == pytest.approx(result.score)
        assert found == pytest.approx(ratio, abs=0.1)
    pairs = (np.array(outcomes).reshape(-1, 2).mean(axis=1) + 1) / 2
    assert margin == pytest.approx(1.98422 * pairs.std(ddof=1) / 10, rel=1e-4)  # Student's t, 99 degrees
    assert "by same dice    score" in describe(RACE, ("a", "b"), result)
    few = replace(result, numbers=tuple(range(18)), outcomes=result.outcomes[:18])
    assert same_dice(RACE, few) is None and same_dice(az.load_game("connect4"), result) is None


def test_in_a_game_for_one_the_lead_is_by_games():
    rng = np.random.default_rng(1)
    luck, skill = rng.normal(0, 10, 50), rng.normal(0, 1, 50)
    earned = tuple(zip((luck + skill + 3).tolist(), luck.tolist(), strict=True))
    result = MatchResult(tuple(range(50)), ((),) * 50, (1,) * 50, (0, 0), (0.0, 0.0), earned=earned)
    mean, _, ratio = same_dice(CLIMB, result)
    assert mean == pytest.approx(np.mean(skill) + 3)
    assert ratio == pytest.approx(1 / 200**0.5, rel=0.3)
    assert "points a game more, 0.0" in describe(CLIMB, ("a", "b"), result)
