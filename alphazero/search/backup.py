"""The end of a simulation in one tree: backup of the leaf's value to the root."""

from __future__ import annotations

import numpy as np

from alphazero.game.kernels import DIE, inlined
from alphazero.search.expansion import expand, open_die, set_seats
from alphazero.search.selection import edges_of, prior_of
from alphazero.search.tree import (
    BETWEEN,
    ONE,
    PENDING,
    ROOT,
    SURE,
    UNPROVEN,
    UNVISITED,
    ZERO,
    known_of,
    rounded_product,
    set_known,
)

EQUAL = np.float32(0.02)
"""Values of a player's actions that differ by less count as equal in a game for more than two."""


@inlined
def settle_die(tree, b, node):
    """The exact value of a node where a die is due if all outcomes have the same one, else UNPROVEN."""
    known = known_of(tree, tree.first_edge[b, node])
    for edge in edges_of(tree, b, node):
        if known_of(tree, edge) != known:
            return UNPROVEN
    return known


@inlined
def only_throws(tree, b, node):
    """A player at the node has one action, and it throws a die: so the node's evaluation is one of the throw."""
    if tree.to_play[b, node] >= DIE or tree.num_edges[b, node] != 1:
        return False
    child = tree.child[tree.first_edge[b, node]]
    return child != UNVISITED and tree.to_play[b, child] >= DIE


@inlined
def weigh_outcomes(tree, b, node):
    """The mean of the outcomes that a die has shown, by their probabilities.

    The mean of all visits in its place would be wrong by the outcomes that came too often so far. Where a player could
    only throw, outcomes that have not come yet count as the evaluation of that player's node.
    """
    total, mass = ZERO, ZERO
    for edge in edges_of(tree, b, node):
        if tree.visits[edge] > 0:
            known = known_of(tree, edge)
            value = tree.q[edge] if known == UNPROVEN else np.float32(known)
            total += rounded_product(tree.prior[edge], value)
            mass += tree.prior[edge]
    above = tree.parent[b, node]
    if node != ROOT and only_throws(tree, b, above):
        differ = (tree.to_play[b, above] ^ tree.to_play[b, node]) & 1
        return total + rounded_product(ONE - mass, -tree.raw_value[b, above] if differ else tree.raw_value[b, above])
    return total / mass


@inlined
def most_visited(tree, b, node):
    """The edge of a node that has most visits, of several the one of highest value; one has been visited."""
    best, most = -1, 0
    for edge in edges_of(tree, b, node):
        visits = tree.visits[edge]
        if visits > most or (visits == most and visits > 0 and tree.q[edge] > tree.q[best]):
            best, most = edge, visits
    return best


@inlined
def weigh_actions(tree, b, node):
    """The mean of the node's evaluation and of the visits of the action that has most of them, or that of a lone throw.

    A game with dice has many plies of one player in a row, and the visits of worse actions at each of them would pull
    the value of the first one down.
    """
    edge = most_visited(tree, b, node)
    best, most = max(min(tree.q[edge], ONE), -ONE), tree.visits[edge]
    if only_throws(tree, b, node):
        return best
    return (tree.raw_value[b, node] + rounded_product(np.float32(most), best)) / np.float32(1 + most)


@inlined
def settle(tree, b, node):
    """The exact value of a node for the player to move if its actions prove it, else UNPROVEN."""
    best = np.int8(-1)
    for edge in edges_of(tree, b, node):
        known = known_of(tree, edge)
        if known == 1:
            return known
        if known == UNPROVEN:
            best = UNPROVEN
        elif best != UNPROVEN and known > best:
            best = known
    return best


@inlined
def add_visit(tree, b, node, edge, value):
    """Adds one visit of an edge, with `value` for the player who chooses it."""
    visits = tree.visits[edge]
    if visits == 0:
        tree.visited_prior[b, node] += prior_of(tree, b, node, edge)
    tree.visits[edge] = visits + 1
    tree.node_visits[b, node] += ONE
    tree.node_value[b, node] += value
    if known_of(tree, edge) == UNPROVEN:
        tree.q[edge] += (value - tree.q[edge]) / np.float32(visits + 1)


@inlined
def finish_visit(tree, b, node, edge, child, value):
    """Gives `value` to a visit that `selection.announce_visit` has counted."""
    tree.in_flight[b, child] -= 1
    visits = tree.visits[edge] - tree.in_flight[b, child]
    tree.node_visits[b, node] += ONE
    tree.node_value[b, node] += value
    if known_of(tree, edge) == UNPROVEN:
        before = tree.q[edge] if visits > 1 else ZERO
        tree.q[edge] = before + (value - before) / np.float32(visits)


@inlined
def backup(tree, b, leaf, value, settings):
    """Adds `value`, which is for the player to move at `leaf`, to every edge between the leaf and the root.

    This is the only place that changes the sign: from child to parent, where `to_play` differs. A proven child may
    prove its parent, which then backs up its exact value (MCTS-Solver, Winands et al. 2008). With several leaves a
    step, the walk has counted its visits on the way down. What a die backs up is by how much the sum of its values has
    grown, so that the means above follow its own.
    """
    node = leaf
    exact = settings.prove and tree.proven[b, leaf] < UNPROVEN
    while node != ROOT:
        parent, edge = tree.parent[b, node], tree.edge[b, node]
        if (tree.to_play[b, parent] ^ tree.to_play[b, node]) & 1:
            value = -value
        die, before = tree.to_play[b, parent] >= DIE, tree.node_value[b, parent]
        if settings.leaves_per_step > 1:
            finish_visit(tree, b, parent, edge, node, value)
        else:
            add_visit(tree, b, parent, edge, value)
        if exact:
            set_known(tree, edge, np.int8(value))
            tree.q[edge] = SURE * value
            known = settle_die(tree, b, parent) if die else settle(tree, b, parent)
            exact = known != UNPROVEN
            if exact:
                tree.proven[b, parent] = known
                value = np.float32(known)
        if settings.alone and not die:
            tree.lowest[b] = min(tree.lowest[b], tree.q[edge])
            tree.highest[b] = max(tree.highest[b], tree.q[edge])
        if settings.dice and not exact:
            mean = weigh_outcomes(tree, b, parent) if die else weigh_actions(tree, b, parent)
            tree.node_value[b, parent] = rounded_product(tree.node_visits[b, parent], mean)
            value = tree.node_value[b, parent] - before
        node = parent


@inlined
def seat_mean(tree, b, node, seat):
    """The value of a node for one player: exact if it is proven, else the mean of its visits."""
    if tree.proven[b, node] == BETWEEN:
        return tree.seat_values[b, node, seat]
    return tree.seat_sums[b, node, seat] / tree.node_visits[b, node]


@inlined
def settle_seats(tree, b, node, player):
    """Writes the exact value of a node for each player into `seat_values` if it is known; returns whether it is.

    `player` chooses there; DIE or more: a die does, and the value is the mean by probabilities. A player chooses the
    action with the best result of theirs; where several are equal, the others get the mean of what these bring. Who
    gets 1 has won alone, so the first such action decides.
    """
    best, equal, unknown = np.float32(-np.inf), 0, False
    for edge in edges_of(tree, b, node):
        child = tree.child[edge]
        if child == UNVISITED or tree.proven[b, child] != BETWEEN:
            unknown = True
        elif player < DIE:
            value = tree.seat_values[b, child, player]
            if value > best:
                best, equal = value, 0
            equal += 1 if value == best else 0
    if unknown and best < ONE:
        return False
    share = ONE if best >= ONE or player >= DIE else ONE / np.float32(equal)
    for seat in range(tree.gains.shape[1]):
        total = ZERO
        for edge in edges_of(tree, b, node):
            child = tree.child[edge]
            if child != UNVISITED and tree.proven[b, child] == BETWEEN:
                if player >= DIE:
                    total += rounded_product(tree.prior[edge], tree.seat_values[b, child, seat])
                elif tree.seat_values[b, child, player] == best:
                    total += rounded_product(share, tree.seat_values[b, child, seat])
                    if best >= ONE:
                        break
        tree.seat_values[b, node, seat] = total
    return True


@inlined
def weigh_seats(tree, b, node, player):
    """`weigh_outcomes` or `weigh_actions` for each player: `gains` becomes what the sums of the node have grown by."""
    best = most_visited(tree, b, node)
    above = tree.parent[b, node]
    thrown = player >= DIE and node != ROOT and only_throws(tree, b, above)
    for seat in range(tree.gains.shape[1]):
        total, mass = ZERO, ZERO
        if player >= DIE:
            for edge in edges_of(tree, b, node):
                if tree.visits[edge] > 0:
                    total += rounded_product(tree.prior[edge], seat_mean(tree, b, tree.child[edge], seat))
                    mass += tree.prior[edge]
            if thrown:
                total, mass = total + rounded_product(ONE - mass, tree.seat_values[b, above, seat]), ONE
        elif only_throws(tree, b, node):
            total, mass = seat_mean(tree, b, tree.child[best], seat), ONE
        else:
            mean = seat_mean(tree, b, tree.child[best], seat)
            total = tree.seat_values[b, node, seat] + rounded_product(np.float32(tree.visits[best]), mean)
            mass = np.float32(1 + tree.visits[best])
        set_mean(tree, b, node, seat, total / mass)


@inlined
def is_seen(tree, b, edge):
    """Something is known of what lies below an edge: a search gave it a value."""
    child = tree.child[edge]
    return child != UNVISITED and tree.proven[b, child] != PENDING


@inlined
def weigh_equals(tree, b, node, player):
    """The mean of the actions that are best for `player`, who draws lots among them: `gains` as in `weigh_seats`.

    Those not seen yet count as the node's own evaluation. The mean of all visits would follow the actions that the
    search looked at first, and so spoil exact values.
    """
    own, best, unseen = tree.seat_values[b, node, player], np.float32(-np.inf), 0
    for edge in edges_of(tree, b, node):
        if is_seen(tree, b, edge):
            best = max(best, seat_mean(tree, b, tree.child[edge], player))
        else:
            unseen += 1
    if unseen > 0:
        best = max(best, own)
    if own < best - EQUAL:
        unseen = 0
    for seat in range(tree.gains.shape[1]):
        total, count = rounded_product(np.float32(unseen), tree.seat_values[b, node, seat]), unseen
        for edge in edges_of(tree, b, node):
            if is_seen(tree, b, edge) and seat_mean(tree, b, tree.child[edge], player) >= best - EQUAL:
                total += seat_mean(tree, b, tree.child[edge], seat)
                count += 1
        set_mean(tree, b, node, seat, total / np.float32(count))


@inlined
def set_mean(tree, b, node, seat, mean):
    """Makes `mean` the value of a node for one player; what its sum has grown by is added to `gains`."""
    grown = rounded_product(tree.node_visits[b, node], mean)
    tree.gains[b, seat] += grown - tree.seat_sums[b, node, seat]
    tree.seat_sums[b, node, seat] = grown


@inlined
def backup_seats(tree, b, leaf, settings):
    """`backup` in a game for more than two (max^n, Luckhardt and Irani 1986): each player's number goes to the root.

    An edge counts the one of the player who chooses it.
    """
    node, gains = leaf, tree.gains[b]
    for seat in range(len(gains)):
        gains[seat] = tree.seat_values[b, leaf, seat]
    while node != ROOT:
        parent, edge = tree.parent[b, node], tree.edge[b, node]
        player = tree.to_play[b, parent]
        own = player - DIE if player >= DIE else player
        if settings.leaves_per_step > 1:
            finish_visit(tree, b, parent, edge, node, gains[own])
        else:
            add_visit(tree, b, parent, edge, gains[own])
        for seat in range(len(gains)):
            tree.seat_sums[b, parent, seat] += gains[seat]
        if settings.prove and tree.proven[b, node] == BETWEEN:  # perhaps by another walk under way at the same time
            value = tree.seat_values[b, node, own]
            tree.q[edge] = value
            if value >= ONE and player < DIE:
                set_known(tree, edge, 1)
                tree.q[edge] = SURE
            if settle_seats(tree, b, parent, player):
                tree.proven[b, parent] = BETWEEN
                for seat in range(len(gains)):
                    gains[seat] = tree.seat_values[b, parent, seat]
        if tree.proven[b, parent] != BETWEEN:
            if settings.dice:
                weigh_seats(tree, b, parent, player)
            if settings.lots:
                weigh_equals(tree, b, parent, player)
            tree.node_value[b, parent] = tree.seat_sums[b, parent, own]
        node = parent


@inlined
def undo(tree, b, node):
    """Removes the visits of a walk that ended at a pending node."""
    while node != ROOT:
        parent, edge = tree.parent[b, node], tree.edge[b, node]
        tree.visits[edge] -= 1  # the pending walk itself is still counted, so at least 1 is left
        tree.in_flight[b, node] -= 1
        node = parent


@inlined
def gained(tree, b, node, settings):
    """The value of the points between the root and a node, which `points_word` counts."""
    if settings.alone:
        at = settings.points_word
        if at >= 0:
            points = np.int64(tree.states[b, node, at]) - np.int64(tree.states[b, ROOT, at])
            return rounded_product(np.float32(points), settings.value_of_point)
    return ZERO


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
    if walks.parents[i] < 0:  # not new: proven before, or without edges
        known = tree.proven[b, leaf]
        value = np.float32(known) if known < UNPROVEN else tree.raw_value[b, leaf]
    elif walks.terminal[i]:
        value = tree.raw_value[b, leaf] = walks.results[i, 0] + gained(tree, b, leaf, settings)
        tree.proven[b, leaf] = np.int8(value) if value == np.float32(np.int8(value)) else BETWEEN
        if settings.alone or settings.seats:
            tree.proven[b, leaf] = BETWEEN
        if settings.seats:
            set_seats(tree, b, leaf, walks.results[i])
        tree.node_visits[b, leaf] = ZERO
    elif settings.dice and walks.chances[i, 0] > ZERO:
        # not yet opened, as by rules that are not compiled: the simulation goes on through it in the next step
        open_die(tree, b, leaf, walks.chances[i])
        return 0
    else:
        value = answers.values[j, 0] + gained(tree, b, leaf, settings)
        expand(tree, b, leaf, answers, j, value, settings)
        evaluated = 1
    if settings.seats:
        backup_seats(tree, b, leaf, settings)
    else:
        backup(tree, b, leaf, value, settings)
    tree.remaining[b] -= 1
    return evaluated
