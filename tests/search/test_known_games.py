"""The search in games known by thought: wins, blocks, and proofs that minimax confirms."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from alphazero.game import Game, Position
from alphazero.players.baselines import action_values
from tests.search.dense import dense
from tests.search.reference_search import neutral, planted, random_lines, random_positions, states_of
from tests.search.searches import BASE, CONNECT4, DOUBLE_MOVE, GAMES, KERNELS, TICTACTOE, UNPROVEN, run

# --- games known by thought ------------------------------------------------------------------------------------------

WINS = {  # a win in one; in notation of the game
    "tictactoe": [("a1 a2 b1 b2", "c1"), ("b2 a1 a3 c1 b3 c3", "b1"), ("c3 b2 a1 a2 c1", "c2")],
    "connect4": [("1 1 2 2 3 3", "4"), ("4 1 4 1 4 2", "4"), ("1 2 2 3 3 4 3 4 4 6", "4")],
}
BLOCKS = {  # the only block, and nothing to win
    "tictactoe": [("a1 b2 b1", "c1"), ("c3 b2 c1", "c2"), ("b2 a1 c1", "a3")],
    "connect4": [("1 7 2 7 3", "4"), ("4 1 4 1 4", "4"), ("2 7 1 1 4 6 7", "3")],
}


@cache
def won_at_once(game: Game) -> list[Position]:
    """Random positions with a win in one."""
    return random_positions(game, 60, seed=1, keep=wins_at_once)


@cache
def blocked(game: Game) -> list[Position]:
    """Random positions where one action alone does not lose at once, nor later as far as minimax sees."""
    keep = random_positions(
        game, 40, seed=2,
        keep=lambda position: not wins_at_once(position)
        and len(losing_actions(position)) == len(position.legal_actions) - 1,
    )  # fmt: skip
    exact = action_values(KERNELS[game.name], 8)(states_of(keep))
    return [position for position, values in zip(keep, exact, strict=True) if values.max() > -1]


@cache
def late_positions(game: Game, low: int) -> tuple[list[Position], np.ndarray]:
    """200 random positions (60 of the smallest game) and their actions' exact results by minimax to the end."""
    lines, _ = random_lines(KERNELS[game.name], 60 if game is DOUBLE_MOVE else 200, 5, low)
    positions = [game.position(line) for line in lines]
    exact = action_values(KERNELS[game.name], game.max_plies - low)(states_of(positions))
    return positions, np.sign(exact)


def texts(cases: dict[str, list[tuple[str, str]]]) -> list[Any]:
    return [
        pytest.param(GAMES[name].position(text), answer, id=f"{name}: {text}")
        for name, rows in cases.items()
        for text, answer in rows
    ]


def losing_actions(position: Position) -> list[int]:
    """Those that let the other one win at once."""
    lost = []
    for action in position.legal_actions:
        after = position.play(action)
        if not after.terminal and wins_at_once(after):
            lost.append(action)
    return lost


def wins_at_once(position: Position) -> list[int]:
    winner = 1 if position.to_play == 0 else -1
    after = {action: position.play(action) for action in position.legal_actions}
    return [action for action, child in after.items() if child.terminal and child.outcome == winner]


@pytest.mark.parametrize(("position", "answer"), texts(WINS) + texts(BLOCKS))
@pytest.mark.parametrize("prove", [True, False])
@pytest.mark.parametrize("noise", [0.0, 0.25])
@pytest.mark.parametrize("leaves", [1, 8])
def test_a_win_or_the_only_block_gets_most_visits(position, answer, prove, noise, leaves):
    action, wins = position.parse(answer), wins_at_once(position)
    if wins:
        assert wins == [action]
    else:
        assert set(losing_actions(position)) == set(position.legal_actions) - {action}
    config = replace(BASE, noise_fraction=noise, prove=prove, leaves_per_step=leaves)
    _, result = run([position] * 10, config, neutral)
    assert (result.visit_counts.argmax(axis=1) == action).all()
    assert (result.actions == action).all()
    if wins:
        assert (result.visit_counts[:, action] > 100).all()
    if prove:
        assert (result.policy[:, action] == 1).all()  # the others are proven losses, or this is a proven win
        assert not wins or (result.values == 1).all()


@pytest.mark.parametrize("config", [BASE, replace(BASE, gumbel_actions=16), replace(BASE, leaves_per_step=8)])
@pytest.mark.parametrize("game", [TICTACTOE, CONNECT4], ids=lambda game: game.name)
def test_wins_and_blocks_of_random_positions(game, config):
    _, result = run(won_at_once(game), config, neutral)
    assert (result.values == 1).all()
    for position, action in zip(won_at_once(game), result.actions, strict=True):
        assert action in wins_at_once(position), str(position)
    assert len(blocked(game)) >= 20
    _, result = run(blocked(game), config, neutral)
    for position, action in zip(blocked(game), result.actions, strict=True):
        assert action not in losing_actions(position), str(position)


# --- proofs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "low", "simulations"),
    [(TICTACTOE, 3, 400), (CONNECT4, 31, 600), (DOUBLE_MOVE, 2, 400)],
    ids=lambda value: getattr(value, "name", str(value)),
)
@pytest.mark.parametrize("config", [BASE, replace(BASE, leaves_per_step=8), replace(BASE, gumbel_actions=4)])
def test_proven_values_are_those_of_minimax(game, low, simulations, config):
    positions, exact = late_positions(game, low)
    search, result = run(positions, replace(config, num_simulations=simulations), planted(3))
    tree, proven_roots, proven_actions = dense(search.tree), 0, 0
    for b, position in enumerate(positions):
        signs = exact[b]
        for action in position.legal_actions:
            known = tree.action_proven[b, 0, action]
            if known != UNPROVEN:
                proven_actions += 1
                assert known == signs[action], f"{position}\n{position.format(action)}"
        if tree.proven[b, 0] != UNPROVEN:
            proven_roots += 1
            assert result.values[b] == signs.max(), position
            assert signs[result.actions[b]] == signs.max(), position
            assert (signs[result.policy[b] > 0] == signs.max()).all(), "the target holds what is known to be worse"
    assert len(positions) == (60 if game is DOUBLE_MOVE else 200)
    assert proven_roots > len(positions) / 2 and proven_actions > len(positions)
    assert {-1.0, 0.0, 1.0} <= set(result.values[tree.proven[:, 0] != UNPROVEN])


def test_nothing_is_proven_when_proofs_are_off():
    positions = random_positions(TICTACTOE, 20, seed=6, low=4)
    search, result = run(positions, replace(BASE, prove=False), planted())
    assert (dense(search.tree).action_proven[:, 0] == UNPROVEN).all()
    assert (search.tree.proven[:, 0] == UNPROVEN).all()
    assert (abs(result.values) < 1).all()
