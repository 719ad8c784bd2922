"""A search of one position that can be watched: visits, value, prior and the best line behind every action."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from alphazero.game import Position
from alphazero.game.kernels import Kernels
from alphazero.nets.neural_net import DeviceEvaluate
from alphazero.search.cuda_search import make_search
from alphazero.search.mcts import Evaluate, Search, SearchConfig, SearchResult
from alphazero.search.tree import ROOT, UNPROVEN, UNVISITED, Tree


@dataclass(frozen=True)
class Line:
    """What a search thinks of one action."""

    action: int
    visits: int
    value: float
    """In [-1, 1] for the player to move; exact where the end of the game was seen."""
    prior: float | None
    """In [0, 1]; None where the tree is on a GPU."""
    moves: tuple[int, ...]
    """The action and what both sides are expected to play after it; the action alone where the tree is on a GPU."""


class Analysis:
    """Grows one tree by PUCT without noise, so that the visits can be read at any time."""

    def __init__(self, kernels: Kernels, config: SearchConfig, evaluate: Evaluate | DeviceEvaluate):
        quiet = replace(config, noise_fraction=0.0, gumbel_actions=0, root_temperature=1.0, reuse_subtree=False)
        self._search = make_search(kernels, quiet, evaluate, 1)
        self._tree = np.zeros(1, np.int64)

    def begin(self, position: Position) -> None:
        """From here on `position`, which is not terminal, is searched."""
        self._search.start(self._tree, position.state[None].copy(), np.zeros(1, np.int64), np.array([position.ply]))

    @property
    def finished(self) -> bool:
        """All simulations are spent."""
        return len(self._search.finished()) > 0

    def step(self) -> None:
        """One simulation more, unless it is finished."""
        self._search.step()

    def run(self, position: Position) -> list[Line]:
        """Everything found by a whole search."""
        self.begin(position)
        while not self.finished:
            self.step()
        return self.lines()

    def result(self) -> SearchResult:
        """The same for one tree as every search gives, so far."""
        return self._search.read(self._tree)

    def lines(self) -> list[Line]:
        """The actions visited so far, the best first."""
        found = self.result()
        visits, policy, q = found.visit_counts[0], found.policy[0], found.q[0]
        order = [int(action) for action in np.lexsort((-visits, -policy)) if visits[action] > 0]
        tree = self._search.tree if isinstance(self._search, Search) else None
        priors = None if tree is None else np.maximum(tree.prior[0, ROOT], 0.0)
        return [
            Line(
                action,
                int(visits[action]),
                float(np.clip(q[action], -1.0, 1.0)),
                None if priors is None else float(priors[action] / priors.sum()),
                (action,) if tree is None else (action, *_best_line(tree, int(tree.child[0, ROOT, action]))),
            )
            for action in order
        ]


def _best_line(tree: Tree, node: int) -> list[int]:
    """What is expected from `node` on, as far as the tree has looked: wins first, losses last, then visits."""
    actions: list[int] = []
    while node != UNVISITED:
        visits, proven = tree.visits[0, node], tree.action_proven[0, node]
        worth = np.where(proven == UNPROVEN, 0, proven)
        action = int(np.lexsort((-visits, np.where(visits > 0, -worth, 2)))[0])
        if visits[action] == 0:
            break
        actions.append(action)
        node = int(tree.child[0, node, action])
    return actions
