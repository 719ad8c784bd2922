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
def select(
    tree, leaves_per_step, c_puct, fpu_reduction, max_considered, visit_offset, value_scale, scratch, parents, actions,
    children, leaves,
):  # fmt: skip
    """Walks down every tree to the leaves of the next simulations; as `selection.walk`."""
    for b in range(len(tree.size)):
        walk(
            tree, b, leaves_per_step, c_puct, fpu_reduction, max_considered, visit_offset, value_scale, scratch,
            parents, actions, children, leaves,
        )  # fmt: skip


@kernel
def expand_and_backup(
    tree, leaves_per_step, prove, parents, leaves, terminal, results, leaf_masks, priors, values, exponent,
):  # fmt: skip
    """Ends a step: opens the new leaves and backs their values up.

    `parents`, `leaves` as `select` wrote them; `terminal bool[n]`, `results float32[n]` by entry; for the new leaves
    that are not terminal, in order: `leaf_masks bool[m, A]`, `priors float32[m, A]` (to be raised to `exponent`),
    `values float32[m]`.
    """
    j = 0
    for i in range(len(leaves)):
        j += finish_walk(
            tree, i // leaves_per_step, leaves[i], parents[i] >= 0, terminal[i], results[i], j, leaf_masks, priors,
            values, exponent, leaves_per_step > 1, prove,
        )  # fmt: skip


@kernel
def move_roots(tree, trees, actions, states, to_play, num_kept, new_index):
    """Moves the root of every tree `trees[i]` by `actions[i]`, or sets it to `states[i]`; as `roots.move_root`."""
    for i in range(len(trees)):
        move_root(tree, trees[i], actions[i], states[i], to_play[i], num_kept, new_index)


@kernel
def open_roots(tree, trees, legal_masks, priors, values, exponent):
    """Opens pending roots as `backup.expand`: `legal_masks bool[n, A]`, `priors float32[n, A]`, `values float32[n]`."""
    for i in range(len(trees)):
        expand(tree, trees[i], ROOT, legal_masks[i], priors[i], values[i], exponent)


@kernel
def prepare_roots(tree, trees, budgets, seed, games, plies, temperature, noise_fraction, noise_total, use_gumbel):
    """Sets the budgets `int32[n]` of the next search and shapes the root's priors; as `roots.prepare_root`."""
    for i in range(len(trees)):
        prepare_root(
            tree, trees[i], budgets[i], seed, games[i], plies[i], temperature, noise_fraction, noise_total, use_gumbel
        )


@kernel
def read_roots(
    tree, trees, use_gumbel, visit_offset, value_scale, visit_counts, policies, qs, values, actions,
):  # fmt: skip
    """What the searches found, row i for tree `trees[i]`.

    `visit_counts int32[n, A]`; `policies float32[n, A]` the policy targets; `qs float32[n, A]` completed;
    `values float32[n]` of the roots for their movers, exact if proven; `actions int64[n]` the best ones.
    """
    for i in range(len(trees)):
        values[i], actions[i] = read_root(
            tree, trees[i], use_gumbel, visit_offset, value_scale, visit_counts[i], policies[i], qs[i]
        )
