"""The walk down one tree: the choice of the next action at each node."""

from __future__ import annotations

import math

import numpy as np

from alphazero.game.kernels import DIE, inlined
from alphazero.game.randomness import combine
from alphazero.search.tree import (
    EDGE,
    ONE,
    PENDING,
    ROOT,
    UNPROVEN,
    UNVISITED,
    ZERO,
    action_of,
    known_of,
    rounded_product,
)

LEAST_SPREAD = np.float32(1e-6)
"""Values of a tree that differ by less are taken for equal."""
MOST = (1 << 62) - 1
HALF = np.float32(0.5)


@inlined
def puct(q, prior, visits, weight):
    """Q + U of one action (Silver et al. 2018): q + c P(s, a) sqrt(N(s)) / (1 + N(s, a)).

    `q` is for the player who chooses; `weight` is c sqrt(N(s)), where N(s) counts the node's own evaluation.
    """
    return q + prior * weight / np.float32(1 + visits)


@inlined
def first_play_value(node_visits, node_value, visited_prior, fpu_reduction):
    """The value of an unvisited action: the node's mean less `fpu_reduction` x sqrt(visited prior mass) (Wu 2019)."""
    return node_value / node_visits - rounded_product(fpu_reduction, np.float32(math.sqrt(visited_prior)))


@inlined
def edges_of(tree, b, node):
    """The edges of a node."""
    first = tree.first_edge[b, node] & MOST  # so the compiler sees that no index is negative
    return range(first, first + EDGE * tree.num_edges[b, node], EDGE)


@inlined
def prior_of(tree, b, node, edge):
    """P(s, a) of a node's edge, with noise at the root."""
    return tree.root_prior[b, (edge - tree.first_edge[b, ROOT]) // EDGE] if node == ROOT else tree.prior[edge]


@inlined
def choose_by_puct(tree, b, node, c_puct, fpu_reduction):
    """The edge of highest PUCT score at one node."""
    visits, q = tree.visits, tree.q
    weight = c_puct * np.float32(math.sqrt(tree.node_visits[b, node]))
    unvisited_q = first_play_value(
        tree.node_visits[b, node], tree.node_value[b, node], tree.visited_prior[b, node], fpu_reduction
    )
    best, best_score = -1, np.float32(-np.inf)
    for edge in edges_of(tree, b, node):
        prior = prior_of(tree, b, node, edge)
        score = puct(q[edge] if visits[edge] > 0 else unvisited_q, prior, visits[edge], weight)
        if score > best_score:
            best, best_score = edge, score
    return best


@inlined
def complete_q(tree, b, prior, completed):
    """Writes Q(s, a) of the root's edges into `completed float32[n]`, with v_mix for unvisited ones; returns v_mix.

    Danihelka et al. 2022, appendix D, equation 33. `prior float32[n]` has an entry for each edge.
    """
    total, mass, weighted, raw_value = 0, ZERO, ZERO, tree.raw_value[b, ROOT]
    first = tree.first_edge[b, ROOT]
    for i in range(len(prior)):
        edge = first + EDGE * i
        if tree.visits[edge] > 0:
            known = known_of(tree, edge)
            completed[i] = tree.q[edge] if known == UNPROVEN else np.float32(known)
            total += tree.visits[edge]
            mass += prior[i]
            weighted += rounded_product(prior[i], completed[i])
    mixed = raw_value
    if mass > ZERO:
        mixed = (raw_value + np.float32(total) * weighted / mass) / np.float32(1 + total)
    for i in range(len(prior)):
        if tree.visits[first + EDGE * i] == 0:
            completed[i] = mixed
    return mixed


@inlined
def sigma(q, most_visits, visit_offset, value_scale):
    """The term that a value adds to a logit (Danihelka et al. 2022, equation 8); q in [-1, 1] is scaled to [0, 1]."""
    return (visit_offset + np.float32(most_visits)) * value_scale * (q + ONE) / np.float32(2.0)


@inlined
def considered_visits(num_considered, budget, simulation):
    """Sequential halving: the number of visits that the next action to visit has, at `simulation` of `budget`.

    `num_considered` actions share the first phase equally, the better half of them the second, and so on. Each phase
    takes an equal part of the budget (Karnin et al. 2013; Danihelka et al. 2022, figure 1).
    """
    if num_considered <= 1:
        return simulation
    phases = 0
    while 1 << phases < num_considered:
        phases += 1
    first, visits, considered = 0, 0, num_considered
    while True:
        rounds = max(1, budget // (phases * considered))
        if simulation < first + rounds * considered:
            return visits + (simulation - first) // considered
        first += rounds * considered
        visits += rounds
        considered = max(2, considered // 2)


@inlined
def is_spread(tree, b, settings):
    """The game is for one, and the values of tree `b` have a lowest and a highest one: they are measured by these."""
    if settings.alone:
        return tree.highest[b] - tree.lowest[b] > LEAST_SPREAD
    return False


@inlined
def spread(tree, b, settings):
    """The size of 1 beside the values of tree `b`: half of their range in a game for one (as in MuZero), else 1."""
    return (tree.highest[b] - tree.lowest[b]) * HALF if is_spread(tree, b, settings) else ONE


@inlined
def spread_out(tree, b, values, settings):
    """Puts `values float32[n]` on the scale from -1, the lowest of tree `b`, to 1, the highest, in a game for one."""
    if is_spread(tree, b, settings):
        for action in range(len(values)):
            values[action] = (values[action] - tree.lowest[b]) / spread(tree, b, settings) - ONE


@inlined
def gumbel_score(prior, noise, q, most_visits, visit_offset, value_scale):
    """gumbel + logit + sigma(q) of one root action."""
    logit = np.float32(math.log(max(np.float64(prior), 1e-12)))
    return noise + logit + sigma(q, most_visits, visit_offset, value_scale)


@inlined
def choose_by_gumbel(tree, b, simulation, settings, q):
    """The root's edge by sequential halving: the highest gumbel + logit + sigma(q) among those to visit next."""
    count, first = tree.num_edges[b, ROOT], tree.first_edge[b, ROOT]
    prior, q = tree.root_prior[b, :count], q[:count]
    complete_q(tree, b, prior, q)
    spread_out(tree, b, q, settings)
    most_visits = 0
    for edge in edges_of(tree, b, ROOT):
        if known_of(tree, edge) == 1:
            return edge
        most_visits = max(most_visits, tree.visits[edge])
    num_considered = min(settings.max_considered, count, tree.budget[b])
    turn = considered_visits(num_considered, tree.budget[b], simulation)
    best, best_score, best_gap = first, np.float32(-np.inf), 1 << 30
    for i in range(count):
        # with several leaves in flight, perhaps no action has exactly `turn` visits: take the nearest
        gap = abs(tree.visits[first + EDGE * i] - turn)
        noise = tree.root_gumbel[b, i]
        score = gumbel_score(prior[i], noise, q[i], most_visits, settings.visit_offset, settings.value_scale)
        if gap < best_gap or (gap == best_gap and score > best_score):
            best, best_score, best_gap = first + EDGE * i, score, gap
    return best


@inlined
def choose_outcome(tree, b, node):
    """The outcome's edge of largest p / (N + 1), as in mctx: visits follow the probabilities without a random number.

    Equal ones come in an order that the position decides: with the same order everywhere, a short search would see
    the first outcomes of all dice together.
    """
    key = np.uint64(0)
    for word in range(tree.states.shape[2]):
        key = combine(key, tree.states[b, node, word])
    best, best_score, best_order = -1, np.float32(-np.inf), np.uint64(0)
    for edge in edges_of(tree, b, node):
        score = tree.prior[edge] / np.float32(1 + tree.visits[edge])
        if score >= best_score:
            order = combine(key, action_of(tree, edge))
            if score > best_score or order > best_order:
                best, best_score, best_order = edge, score, order
    return best


@inlined
def announce_visit(tree, b, node, edge, child, is_new, fpu_reduction):
    """Counts a visit that is under way; its edge keeps the value that it has, or that of an unvisited one."""
    if tree.visits[edge] == 0:
        tree.q[edge] = first_play_value(
            tree.node_visits[b, node], tree.node_value[b, node], tree.visited_prior[b, node], fpu_reduction
        )
        tree.visited_prior[b, node] += prior_of(tree, b, node, edge)
    tree.visits[edge] += 1
    tree.in_flight[b, child] = 1 if is_new else tree.in_flight[b, child] + 1


@inlined
def add_node(tree, b, parent, edge, i, walks):
    """Makes the node below an edge, which is the new leaf of walk `i`; returns its number."""
    child, num_nodes = tree.size[b], tree.proven.shape[1]
    tree.size[b] += 1
    tree.child[edge] = child
    tree.parent[b, child] = parent
    tree.edge[b, child] = edge
    tree.num_edges[b, child] = 0
    tree.proven[b, child] = PENDING
    walks.leaves[i] = child
    walks.parents[i], walks.children[i] = b * num_nodes + parent, b * num_nodes + child
    walks.actions[i] = action_of(tree, edge)
    return child


@inlined
def walk(tree, b, settings, scratch, walks):
    """Walks down tree `b` to the leaves of its next simulations, and writes their entries of `walks`.

    With several leaves per step, the next walk sees the visits of those under way, but not a value of theirs, so it
    explores as if they had found what was known before (Liu et al. 2020). `scratch float32[A]` is scratch space.
    """
    unit = spread(tree, b, settings)
    c_puct, fpu_reduction = settings.c_puct * unit, settings.fpu_reduction * unit
    for l in range(settings.leaves_per_step):  # noqa: E741
        i = b * settings.leaves_per_step + l
        walks.parents[i] = walks.children[i] = walks.leaves[i] = -1
        if l >= tree.remaining[b]:
            continue
        node = ROOT
        while True:
            if node == ROOT and settings.max_considered > 0:
                simulation = tree.budget[b] - tree.remaining[b] + l
                edge = choose_by_gumbel(tree, b, simulation, settings, scratch)
            elif settings.dice and tree.to_play[b, node] >= DIE:
                edge = choose_outcome(tree, b, node)
            else:
                edge = choose_by_puct(tree, b, node, c_puct, fpu_reduction)
            child = tree.child[edge]
            is_new = child == UNVISITED
            if is_new:
                child = add_node(tree, b, node, edge, i, walks)
            if settings.leaves_per_step > 1:
                announce_visit(tree, b, node, edge, child, is_new, settings.fpu_reduction)
            if is_new:
                break
            node = child
            if tree.proven[b, node] != UNPROVEN or tree.num_edges[b, node] == 0:
                walks.leaves[i] = -2 - node if tree.proven[b, node] == PENDING else node
                break
