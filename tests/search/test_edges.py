"""Edges of legal actions alone: trees whose room for edges runs out, and games of many actions with few legal ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alphazero.game.kernels import Kernels
from alphazero.game.rules import Rules
from alphazero.search.analysis import Analysis
from alphazero.search.mcts import QUIET, Search
from alphazero.search.tree import bytes_of_simulation, edges_below, tree_for
from tests.search.dense import dense
from tests.search.reference_search import (
    Node,
    ReferenceSearch,
    compare_trees,
    planted,
    plies_of,
    random_positions,
    states_of,
)
from tests.search.searches import BASE, CONNECT4, TICTACTOE, finish

STRIDE = 300


class NarrowConnect4(type(CONNECT4)):  # type: ignore[misc]
    """Connect Four whose trees have room for two actions at each node."""

    mean_legal = 2


class SmallRoom(ReferenceSearch):
    """The plain search of trees with room for so many edges."""

    room = 0

    def _ask(self, nodes: list[Node]) -> None:
        for node in nodes:
            super()._ask([node])
            if self.room < len(node.edges):
                node.edges.clear()
            self.room -= len(node.edges)


@pytest.mark.parametrize(
    "config",
    [
        BASE, replace(BASE, leaves_per_step=4), replace(BASE, prior_temperature=1.7),
        replace(BASE, gumbel_actions=4, noise_fraction=0.25),
    ],
    ids=["puct", "four-leaves", "flat", "halving"],
)  # fmt: skip
def test_where_the_room_for_edges_is_over_leaves_stay_closed_as_in_the_plain_search(config):
    game, evaluate = NarrowConnect4(), planted(31)
    positions = random_positions(game, 12, seed=5)
    search = Search(Kernels(game), config, evaluate, len(positions), 7)
    search.start(np.arange(12), states_of(positions), np.arange(12), plies_of(positions))
    finish(search)
    closed = 0
    for b, position in enumerate(positions):
        expected = SmallRoom(config, evaluate)
        expected.room = 2 * config.num_nodes
        expected.start(position, None, dense(search.tree, b).root_gumbel[b])
        expected.run()
        compare_trees(search, b, expected)
        closed += sum(not node.edges and not node.position.terminal for node in expected.nodes())
    assert closed > 100
    assert (search.read(np.arange(12)).visit_counts.sum(axis=1) == config.num_simulations).all()


def test_a_kept_subtree_drops_closed_leaves_and_searches_on():
    game, count = NarrowConnect4(), 8
    config = replace(BASE, num_simulations=120, reuse_subtree=True)
    search = Search(Kernels(game), config, planted(3), count, 7)
    positions, played = [game.start()] * count, np.full(count, -1)
    for _ in range(5):
        search.start(np.arange(count), states_of(positions), np.arange(count), plies_of(positions), played)
        kept = search.tree.num_edges[:, 0].copy()
        assert (kept > 0).all()
        finish(search)
        result, tree = search.read(np.arange(count)), search.tree
        for b in range(count):
            ends = [int(edges_below(tree, b, node)[-1]) for node in range(tree.size[b]) if tree.num_edges[b, node]]
            assert ends == sorted(set(ends)) and ends[-1] < tree.next_edge[b] <= 5 * (b + 1) * tree.edges.shape[1]
        assert (dense(tree).visits[:, 0] >= 0).all()
        assert (result.visit_counts.sum(axis=1) >= 120).all()
        played = result.actions
        positions = [position.play(action) for position, action in zip(positions, played, strict=True)]


def _many(rules: Rules) -> Rules:
    """The rules with STRIDE times as many actions, of which every STRIDE-th can be legal."""
    few_legal, few_step = rules.legal, rules.step

    def legal(state, legal_mask):
        legal_mask[:] = False
        few_legal(state, legal_mask[::STRIDE])

    def step(state, action):
        few_step(state, action // STRIDE)

    return replace(rules, legal=legal, step=step, transform=None)


class ManyActions(type(TICTACTOE)):  # type: ignore[misc]
    """Tic-tac-toe with 2,700 actions."""

    name = "many_actions"
    num_actions = 9 * STRIDE
    mean_legal = 9
    rules = _many(TICTACTOE.rules)
    symmetries = np.arange(9)[None], np.arange(9 * STRIDE)[None]


def test_a_game_of_many_actions_is_searched_as_with_few():
    many, few = ManyActions(), TICTACTOE
    positions = random_positions(few, 10, seed=3)

    def evaluate(states, masks):
        priors, values = planted(4)(states, np.ascontiguousarray(masks[:, ::STRIDE]))
        wide = np.zeros(masks.shape, np.float32)
        wide[:, ::STRIDE] = priors
        return wide, values

    found = []
    for game, answer in ((few, planted(4)), (many, evaluate)):
        search = Search(Kernels(game), BASE, answer, len(positions), 7)
        found.append(search.run(states_of(positions), np.arange(10), plies_of(positions)))
    assert (found[0].visit_counts == found[1].visit_counts[:, ::STRIDE]).all()
    assert (found[0].policy == found[1].policy[:, ::STRIDE]).all() and (found[0].values == found[1].values).all()
    assert (found[0].actions * STRIDE == found[1].actions).all()
    assert found[1].visit_counts.sum() == found[0].visit_counts.sum()


def test_the_memory_of_a_node_is_that_of_its_legal_actions():
    many = ManyActions()
    assert bytes_of_simulation(many) == bytes_of_simulation(TICTACTOE) < 300
    assert tree_for(many, 3, 10).edges.shape == (3, 9 * STRIDE, 5)  # the root may have them all


def test_an_analysis_shows_the_edges_of_closed_leaves_as_none():
    game = NarrowConnect4()
    analysis = Analysis(Kernels(game), replace(QUIET, num_simulations=300), planted(8))
    analysis.run(game.start())
    assert sum(edge.visits for edge in analysis.node().edges) == 300
    deepest: tuple[int, ...] = ()
    while True:
        edges = [edge for edge in analysis.node(deepest).edges if edge.visits]
        if not edges:
            break
        deepest = (*deepest, edges[0].action)
    assert len(deepest) > 2 and analysis.node(deepest).edges == ()
