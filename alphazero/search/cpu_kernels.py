"""The search's kernels on the processor: loops over trees.

Every kernel is serial, releases Python's lock, is compiled once and cached on disk. Threads share the work by having
trees of their own. A step of the search calls one kernel (`simulation`) and one `evaluate`: each entry into a kernel
costs a microsecond, and a thread that comes back from one may have to wait for Python's lock.
"""

from __future__ import annotations

from typing import Any

from alphazero.game.kernels import Kernel, Kernels, _advance, kernel
from alphazero.search.backup import expand, finish_walk
from alphazero.search.roots import move_root, prepare_root, read_line, read_root
from alphazero.search.selection import walk
from alphazero.search.tree import ROOT

advance: Any
"""A name that `simulation` replaces by one game's own."""


@kernel
def turn(step, answers, begin):
    """Calls `backup.finish_walk` for the walks under way and, with `begin`, `selection.walk` for the next ones.

    `answers` has a row for each leaf of the walks under way that is new and where the game goes on, in the order of
    the walks. Both are done for one tree after another, so that each tree comes from memory once.
    """
    tree, settings, walks = step.tree, step.settings, step.walks
    used, leaves = 0, settings.leaves_per_step
    for b in range(len(tree.size)):
        for i in range(b * leaves, (b + 1) * leaves):
            used += finish_walk(tree, b, i, walks, used, answers, settings)
            walks.leaves[i] = walks.parents[i] = -1
        if begin:
            walk(tree, b, settings, step.scratch, walks)


def _simulate(step, answers, begin):
    """Calls `turn`, then plays the actions that lead to the new leaves; returns the number that need a network.

    Those are packed into `step.leaf_states` and `step.leaf_masks`, which may be the memory of `answers.legal_masks`.
    """
    turn(step, answers, begin)
    walks = step.walks
    return advance(
        step.states, step.to_play, walks.parents, walks.actions, walks.children, walks.terminal, walks.results,
        step.leaf_states, step.leaf_masks,
    )  # fmt: skip


def simulation(kernels: Kernels) -> Kernel:
    """`_simulate` for one game."""
    return kernels.bind(_simulate, _advance, turn)


@kernel
def move_roots(tree, trees, actions, states, to_play, num_kept, new_index):
    """Calls `roots.move_root` for every tree `trees[i]`."""
    for i in range(len(trees)):
        move_root(tree, trees[i], actions[i], states[i], to_play[i], num_kept, new_index)


@kernel
def open_roots(tree, trees, answers, settings):
    """Calls `backup.expand` for the root of every tree `trees[i]`, with row i of the answers."""
    exponent = settings.root_prior_exponent
    for i in range(len(trees)):
        expand(tree, trees[i], ROOT, answers.legal_masks[i], answers.priors[i], answers.values[i], exponent)


@kernel
def prepare_roots(tree, trees, budgets, seed, games, plies, settings):
    """Calls `roots.prepare_root` for every tree `trees[i]`; `budgets int32[n]`."""
    for i in range(len(trees)):
        prepare_root(tree, trees[i], budgets[i], seed, games[i], plies[i], settings)


@kernel
def read_roots(tree, trees, settings, visit_counts, policies, qs, values, actions):
    """Writes the results of the searches, row i for tree `trees[i]`.

    `visit_counts int32[n, A]`; `policies float32[n, A]` the policy targets; `qs float32[n, A]` completed;
    `values float32[n]` the roots' values for their movers, exact if proven; `actions int64[n]` the best actions.
    """
    for i in range(len(trees)):
        values[i], actions[i] = read_root(tree, trees[i], settings, visit_counts[i], policies[i], qs[i])


@kernel
def read_line_below(tree, b, node, line):
    """Calls `roots.read_line` for one tree."""
    return read_line(tree, b, node, line)
