"""Pig by hand, and its exact player against a plain value iteration, published figures and games that are played."""

import itertools

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.commands.rules.benchmark import solve
from alphazero.commands.shared import run_command
from alphazero.game.kernels import kernels_of
from alphazero.players.contestants import make_player
from alphazero.players.player import Assessment, Player
from games.pig.benchmark import make_benchmark
from games.pig.game import GOAL, HOLD, MOST_ACTIONS, ROLL
from games.pig.solver import SHAPE, exact_rolls, exact_values, fields_of, positions, score_against, states_of

LOADED = registry.load("pig")
GAME = LOADED.game
TURN = np.indices(SHAPE)[2]


def after(moves: str) -> tuple[str, int]:
    """The drawing in one line, and the player to move."""
    position = GAME.position(moves)
    return " / ".join(str(position).splitlines()), position.to_play


# --- the rules ---


@pytest.mark.parametrize(
    ("moves", "drawing", "mover"),
    [
        ("", "player 1     0 + 0 / player 2     0", 0),
        ("roll", "player 1     0 + 0, rolls / player 2     0", 0),
        ("roll 5 roll 6", "player 1     0 + 11 / player 2     0", 0),
        ("roll 5 roll 6 hold", "player 1    11 / player 2     0 + 0", 1),
        ("roll 5 roll 6 hold roll 4", "player 1    11 / player 2     0 + 4", 1),
        ("roll 5 roll 6 hold roll 4 roll 1", "player 1    11 + 0 / player 2     0", 0),
    ],
)
def test_points_are_kept_by_holding_and_a_one_loses_those_of_the_turn(moves: str, drawing: str, mover: int):
    assert after(moves) == (drawing, mover)


def test_a_turn_begins_with_a_roll():
    assert GAME.position("roll 1").legal_actions == [ROLL]
    assert GAME.position("roll 2").legal_actions == [ROLL, HOLD]


def test_all_numbers_are_equally_likely():
    assert GAME.position("roll").chances == pytest.approx([1 / 6] * 6)
    assert GAME.start().chances == ()


def test_who_reaches_a_hundred_wins_at_once_by_the_points_of_the_turn():
    first = GAME.position(" ".join(["roll 6"] * 16))
    assert not first.terminal
    assert not first.play(ROLL).play(2).terminal  # 99
    assert first.play(ROLL).play(0).to_play == 1
    assert first.play(ROLL).play(3).outcome == 1
    assert first.play(HOLD).to_play == 1  # with 96
    second = GAME.position("roll 1 " + " ".join(["roll 6"] * 17))
    assert second.terminal
    assert second.outcome == -1


def test_a_game_is_drawn_after_its_last_action():
    position = GAME.position(["roll", "1"] * (MOST_ACTIONS - 1))
    assert not position.terminal
    assert not position.play(ROLL).terminal  # the die is still due
    assert position.play(ROLL).play(5).outcome == 0


def test_the_network_sees_points_as_bars_of_five():
    planes = GAME.position("roll 6 roll 6 hold roll 4 hold roll 3").observation[:, 0, 0].reshape(-1)
    bars = [row[row > 0].tolist() for row in planes[:80].reshape(4, 20)]
    assert bars == [pytest.approx(bar) for bar in ([1, 1, 0.4], [0.8], [0.6], [1, 1, 1])]
    assert planes[80] == 1
    assert GAME.start().observation.sum() == 0


# --- perfect play ---


def plain_values(goal: int) -> dict[tuple[int, int, int], float]:
    """Perfect play to `goal` by value iteration over all positions, as the paper's equations say."""
    keys = [key for key in itertools.product(range(goal), repeat=3) if key[0] + key[2] < goal]
    values = dict.fromkeys(keys, 0.0)

    def value(own: int, other: int, turn: int) -> float:
        return 1.0 if own + turn >= goal else values[own, other, turn]

    change = 1.0
    while change > 1e-9:
        change = 0.0
        for own, other, turn in keys:
            roll = (1 - value(other, own, 0) + sum(value(own, other, turn + number) for number in range(2, 7))) / 6
            hold = 1 - value(other, own + turn, 0)
            best = max(roll, hold) if turn else roll
            change, values[own, other, turn] = max(change, abs(best - values[own, other, turn])), best
    return values


def test_the_values_are_those_of_a_plain_value_iteration_near_the_end():
    goal = 11  # with 89 points each, as many are missing
    for (own, other, turn), value in plain_values(goal).items():
        assert exact_values()[own + GOAL - goal, other + GOAL - goal, turn] == pytest.approx(value, abs=1e-7)


def test_the_values_keep_the_equations_everywhere():
    own, other, turn = positions()
    rng = np.random.default_rng(0)
    for at in rng.choice(len(own), 500):
        i, j, k = int(own[at]), int(other[at]), int(turn[at])
        rolled = [1 - exact_values()[j, i, 0]]
        rolled += [1.0 if i + k + number >= GOAL else exact_values()[i, j, k + number] for number in range(2, 7)]
        best = max(sum(rolled) / 6, 1 - exact_values()[j, i + k, 0])
        assert exact_values()[i, j, k] == pytest.approx(best, abs=1e-12)


def test_the_first_player_wins_as_often_as_neller_and_presser_say():
    assert exact_values()[0, 0, 0] == pytest.approx(0.5306, abs=5e-5)
    assert score_against(exact_rolls()) == pytest.approx((0.5306, 0.4694), abs=5e-5)


def test_the_exact_player_holds_at_21_at_first_and_never_behind_99():
    assert exact_rolls()[0, 0, 2:].argmin() + 2 == 21
    assert exact_rolls()[0, 99].all()


def hold_at(limit: int) -> np.ndarray:
    return (limit > TURN).astype(float)


def test_simple_policies_lose_as_much_as_neller_and_presser_say():
    """By how many games in a hundred more the exact player wins: 8.0 and 4.2."""
    for limit, lead in ((20, 0.080), (25, 0.042)):
        assert 1 - sum(score_against(hold_at(limit))) == pytest.approx(lead, abs=5e-4)


def play_games(ours: np.ndarray, theirs: np.ndarray, games: int) -> float:
    """The share of games that the player with the table `ours` wins as the first player; by numpy alone."""
    rng, tables = np.random.default_rng(1), np.stack([ours, theirs])
    points, turn, mover = np.zeros((games, 2), int), np.zeros(games, int), np.zeros(games, int)
    rows, won = np.arange(games), np.full(games, -1)
    while (won < 0).any():
        own, other = points[rows, mover], points[rows, 1 - mover]
        rolls = (rng.random(games) < tables[mover, own, other, np.minimum(turn, GOAL)]) | (turn == 0)
        dice = rng.integers(1, 7, games)
        on = won < 0
        kept, lost = on & ~rolls, on & rolls & (dice == 1)
        turn += np.where(on & rolls, dice, 0)
        points[rows[kept], mover[kept]] += turn[kept]
        won = np.where(on & ~kept & ~lost & (own + turn >= GOAL), mover, won)
        turn[kept | lost] = 0
        mover = np.where(kept | lost, 1 - mover, mover)
        turn[won >= 0] = 0
    return float((won == 0).mean())


@pytest.mark.parametrize("hesitation", [0.0, 0.3], ids=["by a limit", "partly by chance"])
def test_what_a_policy_is_worth_is_what_it_wins_in_20000_games(hesitation: float):
    ours = hold_at(12) * (1 - hesitation)
    first, second = score_against(ours)
    assert play_games(ours, exact_rolls(), 20_000) == pytest.approx(first, abs=0.014)  # four standard errors
    assert 1 - play_games(exact_rolls(), ours, 20_000) == pytest.approx(second, abs=0.014)
    assert first + second < 0.93


def test_people_are_told_what_each_action_scores(capsys):
    assert run_command(solve, ["roll", "6", "roll", "6", "--game", "pig"]) == 0
    lines = capsys.readouterr().out.splitlines()
    value = exact_values()[0, 0, 12]
    assert lines[-2:] == [
        f"  roll    scores {100 * value:.2f}%",
        f"  hold    scores {100 - 100 * exact_values()[0, 12, 0]:.2f}%",
    ]
    assert run_command(solve, ["roll", "--game", "pig"]) == 2
    assert "a die is due" in capsys.readouterr().err


# --- players ---


class Limit(Player):
    """Holds at a limit, and says so for every position that it is asked about."""

    name = "limit"

    def __init__(self, limit: int):
        self.limit, self.asked = limit, 0

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        self.asked += len(states)
        return np.where(fields_of(states)[2] >= self.limit, HOLD, ROLL)

    def assess(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> Assessment:
        values = 2 * exact_values()[fields_of(states)] - 1
        return Assessment(self.select_actions(states, games, plies), values=values + 0.25)


def test_the_benchmark_is_what_the_policy_is_worth():
    player = Limit(20)
    figures = make_benchmark(GAME)(player)
    first, second = score_against(hold_at(20))
    assert figures == pytest.approx(
        {"exact_score": (first + second) / 2, "first_score": first, "second_score": second, "value_error": 0.125}
    )
    assert player.asked < len(positions()[0]) / 2  # only what it can reach


def test_the_solver_is_the_exact_player():
    solver = make_player("solver", LOADED, seed=0, threads=1)
    assert make_benchmark(GAME)(solver)["exact_score"] == pytest.approx(0.5)
    own, other, turn = (part[::97] for part in positions())
    states = states_of(own, other, turn)
    masks, terminal, _ = kernels_of(GAME).describe_all(states)
    assert masks.all()
    assert not terminal.any()
    rolls = solver.select_actions(states, own, turn) == ROLL
    np.testing.assert_array_equal(rolls, exact_rolls()[own, other, turn] == 1)
    start = GAME.start().state[None]
    assert solver.select_actions(start, np.zeros(1, int), np.zeros(1, int)).tolist() == [ROLL]
