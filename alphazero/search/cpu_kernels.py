"""The search's kernels on the processor: loops over trees.

Every kernel is serial, releases Python's lock, is compiled once and cached on disk. Threads share the work by having
trees of their own.
"""

from __future__ import annotations

from alphazero.game.kernels import kernel
from alphazero.search.backup import expand, finish_walk
from alphazero.search.roots import move_root, prepare_root, read_root
from alphazero.search.selection import walk
from alphazero.search.tree import ROOT


@kernel
def select(tree, settings, scratch, walks):
    """Calls `selection.walk` for every tree."""
    for b in range(len(tree.size)):
        walk(tree, b, settings, scratch, walks)


@kernel
def expand_and_backup(tree, settings, walks, answers):
    """Calls `backup.finish_walk` for every walk.

    `answers` has a row for each new leaf where the game goes on, in the order of `walks`.
    """
    j = 0
    for i in range(len(walks.leaves)):
        j += finish_walk(tree, i // settings.leaves_per_step, i, walks, j, answers, settings)


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
