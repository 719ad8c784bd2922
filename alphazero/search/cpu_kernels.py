"""The loops over trees on the processor.

Every kernel is serial, lets go of Python's lock, touches each tree on its own and is compiled once, then cached on
disk: threads share the work by holding trees of their own.
"""

from __future__ import annotations

from alphazero.game.kernels import kernel
from alphazero.search.backup import expand, finish_walk
from alphazero.search.roots import move_root, prepare_root, read_root
from alphazero.search.selection import walk
from alphazero.search.tree import ROOT


@kernel
def select(tree, settings, scratch, walks):
    """Walks down every tree to the leaves of the next simulations; as `selection.walk`."""
    for b in range(len(tree.size)):
        walk(tree, b, settings, scratch, walks)


@kernel
def expand_and_backup(tree, settings, walks, answers):
    """Ends a step: opens the new leaves and backs their values up.

    `answers` has a row for each new leaf where the game goes on, in the order of `walks`.
    """
    j = 0
    for i in range(len(walks.leaves)):
        j += finish_walk(tree, i // settings.leaves_per_step, i, walks, j, answers, settings)


@kernel
def move_roots(tree, trees, actions, states, to_play, num_kept, new_index):
    """Moves the root of every tree `trees[i]` by `actions[i]`, or sets it to `states[i]`; as `roots.move_root`."""
    for i in range(len(trees)):
        move_root(tree, trees[i], actions[i], states[i], to_play[i], num_kept, new_index)


@kernel
def open_roots(tree, trees, answers, settings):
    """Opens pending roots by `backup.expand`: row i of the answers is for tree `trees[i]`."""
    exponent = settings.root_prior_exponent
    for i in range(len(trees)):
        expand(tree, trees[i], ROOT, answers.legal_masks[i], answers.priors[i], answers.values[i], exponent)


@kernel
def prepare_roots(tree, trees, budgets, seed, games, plies, settings):
    """Sets the budgets `int32[n]` of the next search and shapes the root's priors; as `roots.prepare_root`."""
    for i in range(len(trees)):
        prepare_root(tree, trees[i], budgets[i], seed, games[i], plies[i], settings)


@kernel
def read_roots(tree, trees, settings, visit_counts, policies, qs, values, actions):
    """Writes what the searches found, row i for tree `trees[i]`.

    `visit_counts int32[n, A]`; `policies float32[n, A]` the policy targets; `qs float32[n, A]` completed;
    `values float32[n]` of the roots for their movers, exact if proven; `actions int64[n]` the best ones.
    """
    for i in range(len(trees)):
        values[i], actions[i] = read_root(tree, trees[i], settings, visit_counts[i], policies[i], qs[i])
