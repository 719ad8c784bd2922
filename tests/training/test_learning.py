"""Learning works: tic-tac-toe, from nothing to never losing."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game import Position
from alphazero.machine import count_cores
from alphazero.players.contestants import make_player
from alphazero.players.player import Player
from alphazero.training.config import EvaluationConfig, GateConfig
from alphazero.training.run import train


def openings(depth: int) -> list[Position]:
    """All tic-tac-toe positions after up to `depth` plies, one for each sequence."""
    start = registry.load("tictactoe").game.start()
    level, found = [start], [start]
    for _ in range(depth):
        level = [position.play(action) for position in level for action in position.legal_actions]
        found += level
    return found


def exact_value(position: Position, known: dict[bytes, int]) -> int:
    """The result of perfect play for the first player."""
    if position.terminal:
        return position.outcome
    key = position.state.tobytes()
    if key not in known:
        values = [exact_value(position.play(action), known) for action in position.legal_actions]
        known[key] = max(values) if position.to_play == 0 else min(values)
    return known[key]


def play_out(positions: list[Position], players, seats: np.ndarray) -> list[int]:
    """Plays all positions to the end; `seats[i]` is the player 0 or 1 that `players[0]` is in game i."""
    positions = list(positions)
    while not all(position.terminal for position in positions):
        for index, player in enumerate(players):
            going = [i for i, position in enumerate(positions) if not position.terminal]
            mine = [i for i in going if (positions[i].to_play == seats[i]) == (index == 0)]
            if mine:
                states = np.array([positions[i].state for i in mine])
                plies = np.array([positions[i].ply for i in mine])
                for i, action in zip(mine, player.select_actions(states, np.array(mine), plies), strict=True):
                    positions[i] = positions[i].play(int(action))
    return [position.outcome for position in positions]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_tictactoe_never_loses_to_the_exact_player(tmp_path, seed):
    """From all 82 openings of up to two plies, in both seats, the net gets at least what the opening is worth."""
    loaded = registry.load("tictactoe")
    train(loaded, loaded.presets()["quick"], tmp_path / "run", seed=seed, threads=count_cores())
    net = make_player(str(tmp_path / "run"), loaded, seed=seed, threads=1, simulations=100)
    exact = make_player("minimax:9", loaded, seed=seed, threads=1)
    # each opening in both seats, and some more often: the exact player chooses among equals at random
    cases = list(itertools.islice(itertools.cycle(itertools.product(openings(2), (0, 1))), 400))
    seats = np.array([seat for _, seat in cases])
    outcomes = play_out([position for position, _ in cases], (net, exact), seats)
    known: dict[bytes, int] = {}
    lost = [
        (position.actions, seat)
        for (position, seat), outcome in zip(cases, outcomes, strict=True)
        if (outcome - exact_value(position, known)) * (1 if seat == 0 else -1) < 0
    ]
    assert not lost


def decisive_positions() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All tic-tac-toe positions that are not over and have better and worse actions.

    States `uint64[n, K]`, exact results of the actions for the mover `int64[n, 9]` (-2 where illegal), and plies.
    """
    known: dict[bytes, int] = {}
    waiting, seen, found = [registry.load("tictactoe").game.start()], set[bytes](), []
    while waiting:
        position = waiting.pop()
        if position.terminal or position.state.tobytes() in seen:
            continue
        seen.add(position.state.tobytes())
        children = {action: position.play(action) for action in position.legal_actions}
        waiting += children.values()
        worth = np.full(9, -2)
        for action, child in children.items():
            worth[action] = exact_value(child, known) * (1 if position.to_play == 0 else -1)
        if len({int(value) for value in worth[worth > -2]}) > 1:
            found.append((position.state, worth, position.ply))
    states, worths, plies = (np.array(column) for column in zip(*found, strict=True))
    return states, worths, plies


def errors_of(player: Player) -> tuple[float, float]:
    """The policy's mass on actions that are not best, and the mean distance of the values from the exact results."""
    states, worths, plies = decisive_positions()
    said = player.assess(states, np.arange(len(states)), plies)
    assert said.policy is not None and said.values is not None
    best = worths.max(axis=1)
    mass = (said.policy * (worths == best[:, None])).sum(axis=1)
    return float(1 - mass.mean()), float(np.abs(said.values - best).mean())


def test_a_short_run_learns_tictactoe(tmp_path):
    """In two generations, without a search: the policy's error falls to a third, that of the values to a half."""
    loaded = registry.load("tictactoe")
    config = replace(
        loaded.presets()["quick"],
        generations=2,
        gate=GateConfig(enabled=False),
        evaluation=EvaluationConfig(opponents=()),
    )
    run = train(loaded, config, tmp_path / "run", seed=1, threads=2, deterministic=True)
    fresh = make_player(str(tmp_path / "run:0"), loaded, simulations=0)
    learned = make_player(run.net, loaded, simulations=0)
    before, after = errors_of(fresh), errors_of(learned)
    assert after[0] < before[0] / 3 and after[1] < before[1] / 2
