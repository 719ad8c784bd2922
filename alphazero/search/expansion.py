"""The opening of a node: its edges, in the memory of its tree."""

from __future__ import annotations

import numpy as np

from alphazero.game.kernels import inlined
from alphazero.search.selection import MOST, add_node, choose_outcome
from alphazero.search.tree import EDGE, KNOWN_BITS, ONE, ROOT, UNPROVEN, UNVISITED, ZERO, rounded_product

TINY, HUGE = np.float32(1e-30), np.float32(1e30)


@inlined
def add_edge(tree, edge, action, prior):
    """Writes a new edge."""
    tree.action[edge] = (action << KNOWN_BITS) | (np.int64(UNPROVEN) + 1)
    tree.prior[edge] = prior
    tree.visits[edge] = 0
    tree.q[edge] = ZERO
    tree.child[edge] = UNVISITED


@inlined
def give_edges(tree, b, node, end):
    """Gives a node the edges from the first unused one to `end`."""
    first = tree.next_edge[b]
    tree.first_edge[b, node], tree.num_edges[b, node] = first, (end - first) // EDGE
    tree.next_edge[b] = end


@inlined
def end_of_edges(tree, b):
    """The end of the memory of a tree's edges."""
    return (b + 1) * EDGE * tree.edges.shape[1]


@inlined
def set_seats(tree, b, node, values):
    """Keeps the value `float32[S]` of a new node for each player; the first number is for the player to move there."""
    player = tree.to_play[b, node]
    for i in range(tree.gains.shape[1]):
        seat = (player + i) % tree.gains.shape[1]
        tree.seat_values[b, node, seat] = tree.seat_sums[b, node, seat] = values[i]


@inlined
def expand(tree, b, node, answers, i, value, settings):
    """Opens a node by row `i` of the answers: the weights of the legal actions are scaled to sum to 1.

    They are then raised to an exponent and scaled to sum to 1 again. Where there is no room for the edges, the node has
    none: walks end there, and its value stays that of its evaluation.
    """
    legal_mask, prior, exponent = answers.legal_masks[i], answers.priors[i], settings.prior_exponent
    if node == ROOT:
        tree.next_edge[b], exponent = end_of_edges(tree, b - 1), settings.root_prior_exponent
    if settings.seats:
        set_seats(tree, b, node, answers.values[i])
    first = end = tree.next_edge[b] & MOST
    total, unit, most = ZERO, ONE, end_of_edges(tree, b)
    for action in range(len(prior)):
        if legal_mask[action]:
            if end == most:
                end = first
                break
            total += prior[action]
            add_edge(tree, end, action, prior[action])
            end += EDGE
    give_edges(tree, b, node, end)
    allowed, edges = (end - first) // EDGE, range(first, end, EDGE)
    if not TINY < total < HUGE:  # the sum, or one over it, may be outside the range of float32: count in other units
        unit = HUGE if total < HUGE else TINY
        total = ZERO
        for edge in edges:
            total += rounded_product(tree.prior[edge], unit)
    scale = ONE / total if total > ZERO else ZERO
    for edge in edges:
        tree.prior[edge] = tree.prior[edge] * unit * scale if total > ZERO else ONE / np.float32(allowed)
    if exponent != 1.0:
        raised = 0.0
        for edge in edges:
            raised += float(tree.prior[edge]) ** exponent
        for edge in edges:
            tree.prior[edge] = np.float32(float(tree.prior[edge]) ** exponent / raised)
    tree.raw_value[b, node] = tree.node_value[b, node] = value
    tree.node_visits[b, node] = ONE
    tree.visited_prior[b, node] = ZERO
    tree.proven[b, node] = UNPROVEN


@inlined
def open_die(tree, b, node, probabilities):
    """Opens a node where a die is due; nobody has evaluated it, so it has no visits yet. Without room a search ends."""
    end = tree.next_edge[b]
    for outcome in range(len(probabilities)):
        if probabilities[outcome] > ZERO:
            if end == end_of_edges(tree, b):
                tree.remaining[b] = 0
                break
            add_edge(tree, end, outcome, probabilities[outcome])
            end += EDGE
    give_edges(tree, b, node, end)
    tree.raw_value[b, node] = tree.node_value[b, node] = tree.node_visits[b, node] = tree.visited_prior[b, node] = ZERO
    for seat in range(tree.gains.shape[1]):
        tree.seat_values[b, node, seat] = tree.seat_sums[b, node, seat] = ZERO
    tree.proven[b, node] = UNPROVEN
    # a game might have more dice in a row than it says: each simulation to come has room for its leaf
    tree.remaining[b] = min(tree.remaining[b], tree.proven.shape[1] - tree.size[b])


@inlined
def go_on(tree, b, i, walks):
    """Goes on with walk `i` of tree `b`, at whose new leaf a die is due: opens it, and makes the node of an outcome."""
    die = walks.leaves[i]
    open_die(tree, b, die, walks.chances[i])
    walks.leaves[i] = walks.parents[i] = -1
    if tree.remaining[b] > 0:
        add_node(tree, b, die, choose_outcome(tree, b, die), i, walks)
