"""M1: the laws of the search on a thousand positions of every game that has wins to find."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game.kernels import Kernels
from alphazero.players.baselines import action_values
from alphazero.search.mcts import Evaluate, Search, SearchConfig, SearchResult
from alphazero.search.tree import UNPROVEN
from tests.search.dense import dense

POSITIONS, FEWER = 1000, 200
"""In the slow tests, and in CI."""
ALONE = 40
"""Positions that are searched on their own as well."""
SIMULATIONS = 96
GAMES = ["tictactoe", "connect4", "othello6", "breakthrough", "dots_and_boxes"]
KINDS = {
    "puct": SearchConfig(num_simulations=SIMULATIONS, noise_fraction=0.0, gumbel_actions=0),
    "noise": SearchConfig(num_simulations=SIMULATIONS, noise_fraction=0.25, gumbel_actions=0),
    "gumbel": SearchConfig(num_simulations=SIMULATIONS, noise_fraction=0.25, gumbel_actions=8),
    "leaves": SearchConfig(num_simulations=SIMULATIONS, noise_fraction=0.0, gumbel_actions=0, leaves_per_step=4),
}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_game = pytest.mark.parametrize(
    ("name", "count"),
    [
        *((name, FEWER) for name in ("connect4", "othello6")),
        *(pytest.param(name, POSITIONS, marks=pytest.mark.slow) for name in GAMES),
    ],
)


@functools.cache
def kernels_of(name: str) -> Kernels:
    return Kernels(registry.load(name).game)


@functools.cache
def positions(name: str, count: int = POSITIONS) -> tuple[np.ndarray, np.ndarray]:
    """States `uint64[count, K]` of random games that are not over, and who moves there, `int8[count]`."""
    kernels, rng = kernels_of(name), np.random.default_rng(11)
    states, to_play = kernels.start_states(count), np.zeros(count, np.int8)
    kernels.find_movers(states, to_play)
    stops = rng.integers(0, kernels.game.max_plies, count)
    for ply in range(int(stops.max())):
        masks, _, _ = kernels.describe_all(states)
        actions = np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=1)
        # it stays before its last ply: a position that is over cannot be searched
        children, movers = states.copy(), to_play.copy()
        kernels.play(children, movers, actions)
        ends = kernels.describe_all(children)[1]
        moves_on = (ply < stops) & ~ends
        states[moves_on], to_play[moves_on] = children[moves_on], movers[moves_on]
    return states, to_play


def planted(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Priors and values in (-1, 1) that depend on the position alone."""
    words = (states * np.uint64(0x9E3779B97F4A7C15)).sum(axis=1, dtype=np.uint64)
    mixed = (words[:, None] >> np.arange(legal_masks.shape[1], dtype=np.uint64) % np.uint64(53)) & np.uint64(255)
    priors = np.where(legal_masks, 1 + mixed.astype(np.float32), 0).astype(np.float32)
    return priors, (((words >> np.uint64(7)) % np.uint64(199)).astype(np.float32) - 99) / 100


def search_all(
    name: str, count: int, config: SearchConfig, evaluate: Evaluate, rows: np.ndarray | None = None
) -> tuple[Search, SearchResult]:
    """Searches `count` positions, or their `rows int64[n]`, side by side; position i belongs to game i."""
    rows = np.arange(count) if rows is None else rows
    search = Search(kernels_of(name), config, evaluate, len(rows), seed=5)
    return search, search.run(positions(name, count)[0][rows], rows, np.zeros(len(rows), np.int64))


@each_game
@each_kind
def test_visits_values_and_policies_keep_their_bounds(name: str, count: int, kind: str):
    asked = 0

    def watched(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nonlocal asked
        asked += len(states)
        assert not kernels_of(name).describe_all(states)[1].any()
        return planted(states, legal_masks)

    search, found = search_all(name, count, KINDS[kind], watched)
    masks, _, _ = kernels_of(name).describe_all(positions(name, count)[0])
    assert (found.visit_counts.sum(axis=1) == SIMULATIONS).all()
    assert (found.visit_counts[~masks] == 0).all() and (found.policy[~masks] == 0).all()
    np.testing.assert_allclose(found.policy.sum(axis=1), 1, atol=1e-5)
    assert (np.abs(found.values) <= 1).all()
    tree, nodes, open_nodes = dense(search.tree), 0, 0
    assert (np.abs(found.q[masks & (tree.action_proven[:, 0] == UNPROVEN)]) <= 1 + 1e-6).all()
    assert masks[np.arange(count), found.actions].all()
    for b in range(count):
        size = int(tree.size[b])
        terminal = kernels_of(name).describe_all(tree.states[b, :size])[1]
        assert not terminal[tree.parent[b, 1:size]].any(), f"tree {b} goes on after the end of a game"
        nodes, open_nodes = nodes + size, open_nodes + int((~terminal).sum())
    assert asked == open_nodes < nodes


@each_game
@each_kind
def test_a_position_alone_is_searched_as_among_others(name: str, count: int, kind: str):
    _, together = search_all(name, count, KINDS[kind], planted)
    for row in np.linspace(0, count - 1, ALONE).astype(int):
        _, alone = search_all(name, count, KINDS[kind], planted, np.array([row]))
        for field in vars(together):
            assert getattr(alone, field)[0].tobytes() == getattr(together, field)[row].tobytes(), (row, field)
    order = np.random.default_rng(3).permutation(count)
    _, shuffled = search_all(name, count, KINDS[kind], planted, order)
    for field in vars(together):
        assert getattr(shuffled, field).tobytes() == getattr(together, field)[order].tobytes(), field


def neutral(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """No opinion: whatever is found is found by the search."""
    return legal_masks.astype(np.float32), np.zeros(len(states), np.float32)


@pytest.mark.parametrize(
    ("plies", "simulations"), [(1, 64), (3, 1500), pytest.param(5, 30_000, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", ["tictactoe", "connect4"])
def test_wins_in_one_to_three_moves_are_found(name: str, plies: int, simulations: int):
    """Minimax says which positions are won in so many plies; the search plays a winning action in each of them."""
    kernels, (states, _) = kernels_of(name), positions(name)
    exact = action_values(kernels, plies)(states)
    sooner = action_values(kernels, plies - 2)(states).max(axis=1) > 1 if plies > 1 else np.zeros(POSITIONS, bool)
    won = np.flatnonzero((exact.max(axis=1) > 1) & ~sooner)
    assert len(won) >= 10, "too few positions to say anything"
    won = won[: 200 if plies == 1 else 20]  # the deeper ones cost seconds
    config = replace(KINDS["puct"], num_simulations=simulations)
    search = Search(kernels, config, neutral, len(won))
    found = search.run(states[won], won, np.zeros(len(won), np.int64))
    assert (exact[won, found.actions] > 1).all()
    assert (found.values == 1).all()
