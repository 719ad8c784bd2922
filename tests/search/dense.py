"""A tree with a place for every action, legal or not, as tests read it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from alphazero.search.tree import Tree, edges_below, unpacked

EMPTY = {
    "prior": (-np.inf, np.float32), "visits": (0, np.int32), "q": (0, np.float32), "child": (-1, np.int32),
    "action_proven": (2, np.int8),
}  # fmt: skip


def dense(tree: Tree, only: int | None = None) -> Any:
    """Copies of the tree's arrays: those of edges as `[B, N, A]`, those of the root's edges as `[B, A]`, and in
    `action` the action that leads to each node. With `only`, the edges of that tree alone are filled in."""
    (count, nodes), width = tree.proven.shape, tree.root_prior.shape[1]
    found = SimpleNamespace(**{name: array.copy() for name, array in tree._asdict().items()})
    rows = {name: np.full((count, nodes, width), other, kind) for name, (other, kind) in EMPTY.items()}
    roots = {name: np.full((count, width), -np.inf, np.float32) for name in ("root_prior", "root_gumbel")}
    found.action = np.full((count, nodes), -1)
    for b in range(count) if only is None else [only]:
        for node in range(max(1, tree.size[b])):
            if tree.num_edges[b, node] == 0:
                continue
            here = edges_below(tree, b, node)
            actions, known = unpacked(tree.action[here])
            assert (np.diff(actions) > 0).all()
            for name, row in rows.items():
                row[b, node, actions] = known if name == "action_proven" else getattr(tree, name)[here]
            if node == 0:
                for name, root in roots.items():
                    root[b, actions] = getattr(tree, name)[b, : len(here)]
            for edge, action in zip(here, actions, strict=True):
                if tree.child[edge] >= 0:
                    found.action[b, tree.child[edge]] = action
                    assert tree.edge[b, tree.child[edge]] == edge
    vars(found).update(rows | roots)
    return found
