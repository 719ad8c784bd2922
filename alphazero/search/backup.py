"""The end of a simulation in one tree: expansion of the leaf, and backup of its value to the root."""

from __future__ import annotations

import numpy as np

from alphazero.game.kernels import inlined
from alphazero.search.tree import ILLEGAL, ONE, ROOT, SURE, UNPROVEN, UNVISITED, ZERO, rounded_product

TINY, HUGE = np.float32(1e-30), np.float32(1e30)


@inlined
def expand(tree, b, node, legal_mask, prior, value, exponent):
    """Opens a node: the weights `prior float32[A]` of the legal actions are scaled to sum to 1.

    They are then raised to `exponent` (float64) and scaled to sum to 1 again.
    """
    total, allowed, unit = ZERO, 0, ONE
    for action in range(len(prior)):
        if legal_mask[action]:
            total += prior[action]
            allowed += 1
    if not TINY < total < HUGE:  # the sum, or one over it, may be outside the range of float32: count in other units
        unit = HUGE if total < HUGE else TINY
        total = ZERO
        for action in range(len(prior)):
            if legal_mask[action]:
                total += rounded_product(prior[action], unit)
    scale = ONE / total if total > ZERO else ZERO
    for action in range(len(prior)):
        if not legal_mask[action]:
            tree.prior[b, node, action] = ILLEGAL
        elif total > ZERO:
            tree.prior[b, node, action] = prior[action] * unit * scale
        else:
            tree.prior[b, node, action] = ONE / np.float32(allowed)
        tree.visits[b, node, action] = 0
        tree.q[b, node, action] = ZERO
        tree.child[b, node, action] = UNVISITED
        tree.action_proven[b, node, action] = UNPROVEN
    if exponent != 1.0:
        raised = 0.0
        for action in range(len(prior)):
            if legal_mask[action]:
                raised += float(tree.prior[b, node, action]) ** exponent
        for action in range(len(prior)):
            if legal_mask[action]:
                tree.prior[b, node, action] = np.float32(float(tree.prior[b, node, action]) ** exponent / raised)
    tree.raw_value[b, node] = tree.node_value[b, node] = value
    tree.node_visits[b, node] = ONE
    tree.visited_prior[b, node] = ZERO
    tree.proven[b, node] = UNPROVEN


@inlined
def settle(tree, b, node):
    """The exact value of a node for the player to move if its actions prove it, else UNPROVEN."""
    best = np.int8(-1)
    for action in range(tree.prior.shape[2]):
        if tree.prior[b, node, action] >= ZERO:
            known = tree.action_proven[b, node, action]
            if known == 1:
                return known
            if known == UNPROVEN:
                best = UNPROVEN
            elif best != UNPROVEN and known > best:
                best = known
    return best


@inlined
def add_visit(tree, b, node, action, value):
    """Adds one visit of an action, with `value` for the player who chooses it."""
    visits = tree.visits[b, node, action]
    if visits == 0:
        prior = tree.root_prior[b, action] if node == ROOT else tree.prior[b, node, action]
        tree.visited_prior[b, node] += prior
    tree.visits[b, node, action] = visits + 1
    tree.node_visits[b, node] += ONE
    tree.node_value[b, node] += value
    if tree.action_proven[b, node, action] == UNPROVEN:
        tree.q[b, node, action] += (value - tree.q[b, node, action]) / np.float32(visits + 1)


@inlined
def finish_visit(tree, b, node, action, child, value):
    """Gives `value` to a visit that `selection.announce_visit` has counted."""
    tree.in_flight[b, child] -= 1
    visits = tree.visits[b, node, action] - tree.in_flight[b, child]
    tree.node_visits[b, node] += ONE
    tree.node_value[b, node] += value
    if tree.action_proven[b, node, action] == UNPROVEN:
        before = tree.q[b, node, action] if visits > 1 else ZERO
        tree.q[b, node, action] = before + (value - before) / np.float32(visits)


@inlined
def backup(tree, b, leaf, value, announced, prove):
    """Adds `value`, which is for the player to move at `leaf`, to every action between the leaf and the root.

    This is the only place that changes the sign: from child to parent, where `to_play` differs. A proven child may
    prove its parent, which then backs up its exact value (MCTS-Solver, Winands et al. 2008). With `announced`, the walk
    has counted its visits on the way down.
    """
    node = leaf
    exact = prove and tree.proven[b, leaf] != UNPROVEN
    while node != ROOT:
        parent, action = tree.parent[b, node], tree.action[b, node]
        if tree.to_play[b, parent] != tree.to_play[b, node]:
            value = -value
        if announced:
            finish_visit(tree, b, parent, action, node, value)
        else:
            add_visit(tree, b, parent, action, value)
        if exact:
            tree.action_proven[b, parent, action] = np.int8(value)
            tree.q[b, parent, action] = SURE * value
            known = settle(tree, b, parent)
            exact = known != UNPROVEN
            if exact:
                tree.proven[b, parent] = known
                value = np.float32(known)
        node = parent


@inlined
def undo(tree, b, node):
    """Removes the visits of a walk that ended at a pending node."""
    while node != ROOT:
        parent, action = tree.parent[b, node], tree.action[b, node]
        tree.visits[b, parent, action] -= 1  # the pending walk itself is still counted, so at least 1 is left
        tree.in_flight[b, node] -= 1
        node = parent


@inlined
def finish_walk(tree, b, i, walks, j, answers, settings):
    """Ends walk `i` of tree `b`: opens the leaf and backs up its value.

    Row `j` of the answers is for this leaf if it is new and the game goes on. Returns how many answers were used.
    """
    leaf = walks.leaves[i]
    if leaf == -1:
        return 0
    if leaf < 0:
        undo(tree, b, -2 - leaf)
        return 0
    evaluated = 0
    if walks.parents[i] < 0:  # not new, and proven before
        value = np.float32(tree.proven[b, leaf])
    elif walks.terminal[i]:
        value = walks.results[i]
        tree.proven[b, leaf] = np.int8(value)
        tree.node_visits[b, leaf] = ZERO
    else:
        value = answers.values[j]
        expand(tree, b, leaf, answers.legal_masks[j], answers.priors[j], value, settings.prior_exponent)
        evaluated = 1
    backup(tree, b, leaf, value, settings.leaves_per_step > 1, settings.prove)
    tree.remaining[b] -= 1
    return evaluated
