"""The root of one tree: its position, its noise, and the result read from it."""

from __future__ import annotations

import math

import numpy as np

from alphazero.game.kernels import inlined
from alphazero.game.randomness import ROOT_GUMBEL, ROOT_NOISE, combine, gamma, gumbel, make_key, uniform
from alphazero.search.backup import seat_mean
from alphazero.search.expansion import expand
from alphazero.search.selection import complete_q, edges_of, gumbel_score, spread_out
from alphazero.search.tree import (
    BETWEEN,
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

TIE_BREAK = 1e-3
"""Logits that differ by less count as a tie."""


@inlined
def copy_node(tree, b, source, target):
    """Copies a node with its edges, which come behind those in use, but without their links to children."""
    for word in range(tree.states.shape[2]):
        tree.states[b, target, word] = tree.states[b, source, word]
    tree.to_play[b, target] = tree.to_play[b, source]
    tree.proven[b, target] = tree.proven[b, source]
    tree.raw_value[b, target] = tree.raw_value[b, source]
    tree.node_visits[b, target] = tree.node_visits[b, source]
    tree.node_value[b, target] = tree.node_value[b, source]
    tree.visited_prior[b, target] = tree.visited_prior[b, source]
    tree.edge[b, target] = tree.edge[b, source]
    edge = tree.next_edge[b]
    edges = edges_of(tree, b, source)
    tree.first_edge[b, target], tree.num_edges[b, target] = edge, len(edges)
    for before in edges:
        tree.prior[edge], tree.visits[edge], tree.q[edge] = tree.prior[before], tree.visits[before], tree.q[before]
        tree.action[edge] = tree.action[before]
        tree.child[edge] = UNVISITED
        edge += EDGE
    tree.next_edge[b] = edge
    for seat in range(tree.gains.shape[1]):
        tree.seat_values[b, target, seat] = tree.seat_values[b, source, seat]
        tree.seat_sums[b, target, seat] = tree.seat_sums[b, source, seat]


@inlined
def find_edge(tree, b, action):
    """The root's edge of an action; -1 if it has none."""
    for edge in edges_of(tree, b, ROOT):
        if action_of(tree, edge) == action:
            return edge
    return -1


@inlined
def move_root(tree, b, action, state, to_play, num_kept, new_index):
    """Makes the root's child by `action` the new root of tree `b`; keeps at most `num_kept` of its nodes.

    With action -1, or if there is no such child, the tree is emptied: its root is then `state uint64[K]`, `to_play`,
    and pending. Nodes come after their parents, and their edges in the order of the nodes, so one pass moves them in
    place. If there is not enough room, the youngest nodes are dropped, and so are those without edges whose game goes
    on; a walk that comes by opens them again. `new_index int32[N]` is scratch space.
    """
    start = b * EDGE * tree.edges.shape[1]
    at = find_edge(tree, b, action) if action >= 0 and tree.size[b] > 0 else -1
    root = tree.child[at] if at >= 0 else UNVISITED
    if root == UNVISITED or tree.num_edges[b, root] == 0:
        tree.size[b] = 1
        tree.num_edges[b, ROOT] = 0
        for word in range(len(state)):
            tree.states[b, ROOT, word] = state[word]
        tree.to_play[b, ROOT] = to_play
        tree.proven[b, ROOT] = PENDING
        return
    for node in range(root):
        new_index[node] = UNVISITED
    new_index[root] = ROOT
    for node in range(1, tree.size[b]):  # from here on they are counted from the parent's first one
        tree.edge[b, node] -= tree.first_edge[b, tree.parent[b, node]]
    tree.next_edge[b] = start
    copy_node(tree, b, root, ROOT)
    kept, end = 1, start + EDGE * (tree.edges.shape[1] * num_kept // tree.proven.shape[1])
    for node in range(root + 1, tree.size[b]):
        parent = new_index[tree.parent[b, node]]
        new_index[node] = UNVISITED
        closed = tree.proven[b, node] == UNPROVEN and tree.num_edges[b, node] == 0
        fits = kept < num_kept and tree.next_edge[b] + EDGE * tree.num_edges[b, node] <= end
        if parent != UNVISITED and fits and not closed:
            copy_node(tree, b, node, kept)
            tree.parent[b, kept] = parent
            tree.edge[b, kept] += tree.first_edge[b, parent]
            tree.child[tree.edge[b, kept]] = kept
            new_index[node] = kept
            kept += 1
    tree.size[b] = kept


@inlined
def begin_root(tree, b, answers, row, budget, seed, game, ply, settings):
    """Begins a search in tree `b`. If its root is pending, a row of the answers opens it first; returns whether it was.

    The search has priors of its own for the root: P(s, a), made to sum to 1, is mixed with Dirichlet noise by
    `noise_fraction`; the noise's concentration is `noise_total` over the number of legal actions (as in KataGo, Wu
    2019). Sequential halving without Gumbel variates breaks ties at random.
    """
    pending = tree.proven[b, ROOT] == PENDING
    if pending:
        expand(tree, b, ROOT, answers, row, answers.values[row, 0], settings)
    tree.budget[b] = tree.remaining[b] = budget
    tree.lowest[b], tree.highest[b] = np.float32(np.inf), np.float32(-np.inf)
    noise_fraction, allowed = settings.noise_fraction, tree.num_edges[b, ROOT]
    first, target = tree.first_edge[b, ROOT], tree.root_prior[b]
    total, noise_sum = 0.0, 0.0
    tree.visited_prior[b, ROOT] = ZERO
    noise_key = make_key(seed, game, ply, ROOT_NOISE)
    gumbel_key = make_key(seed, game, ply, ROOT_GUMBEL)
    for edge in edges_of(tree, b, ROOT):
        total += float(tree.prior[edge])
    concentration = settings.noise_total / allowed
    for i in range(allowed):
        target[i] = np.float32(float(tree.prior[first + EDGE * i]) / total)
    if noise_fraction > ZERO:
        noise = tree.root_gumbel[b]  # serves as scratch space here
        for i in range(allowed):
            action = action_of(tree, first + EDGE * i)
            noise[i] = np.float32(gamma(combine(noise_key, action), concentration))
            noise_sum += float(noise[i])
        if noise_sum == 0.0:  # the concentration is so small that all shares underflow: one action gets everything
            chosen = int(uniform(noise_key, len(target)) * allowed)
            for i in range(allowed):
                noise[i] = ONE if i == chosen else ZERO
            noise_sum = 1.0
        for i in range(allowed):
            share = noise[i] / np.float32(noise_sum)
            kept = rounded_product(ONE - noise_fraction, target[i])
            target[i] = kept + rounded_product(noise_fraction, share)
    for i in range(allowed):
        edge = first + EDGE * i
        action = action_of(tree, edge)
        draw = gumbel(gumbel_key, action) if settings.draws_gumbel else TIE_BREAK * uniform(gumbel_key, action)
        tree.root_gumbel[b, i] = np.float32(draw)
        if tree.visits[edge] > 0:
            tree.visited_prior[b, ROOT] += target[i]
    return pending


@inlined
def mark_candidates(tree, b, marks):
    """Writes 1 into `marks float32[n]` for every one of the root's n edges worth playing, else 0.

    Proven losses are not, unless all actions are lost. If an action is proven to win, only such actions are.
    """
    best, first = -1, tree.first_edge[b, ROOT]
    for edge in edges_of(tree, b, ROOT):
        known = known_of(tree, edge)
        best = max(best, 0 if known == UNPROVEN else known)  # unproven is no sure win: it ranks with draws
    for i in range(len(marks)):
        known = known_of(tree, first + EDGE * i)
        known = 0 if known == UNPROVEN else known
        worthy = known == 1 if best == 1 else known != -1 or best == -1
        marks[i] = ONE if worthy else ZERO


@inlined
def visit_policy(prior, visits, policy):
    """Turns the marks in `policy` into visits over their sum; returns the most visited action, ties by prior."""
    best, total = -1, 0
    for action in range(len(prior)):
        if policy[action] > ZERO:
            total += visits[action]
            ahead = visits[action] - visits[best] if best >= 0 else 1
            if ahead > 0 or (ahead == 0 and prior[action] > prior[best]):
                best = action
    for action in range(len(prior)):
        if total > 0:
            policy[action] = policy[action] * np.float32(visits[action]) / np.float32(total)
        else:
            policy[action] = ONE if action == best else ZERO  # nothing worth playing was visited
    return best


@inlined
def gumbel_policy(prior, visits, q, noise, settings, policy):
    """Turns the marks in `policy` into the improved policy softmax(logits + sigma(q)) (Danihelka et al. 2022, eq. 11).

    Returns the winner of sequential halving: the most visited marked action, of equals the highest score.
    """
    visit_offset, value_scale = settings.visit_offset, settings.value_scale
    most_visits, most_visits_marked = 0, 0
    for action in range(len(prior)):
        most_visits = max(most_visits, visits[action])
        if policy[action] > ZERO:
            most_visits_marked = max(most_visits_marked, visits[action])
    best, best_score, peak, total = -1, np.float32(-np.inf), np.float32(-np.inf), 0.0
    for action in range(len(prior)):
        if policy[action] > ZERO:
            score = gumbel_score(prior[action], ZERO, q[action], most_visits, visit_offset, value_scale)
            peak = max(peak, score)
            if visits[action] == most_visits_marked and score + noise[action] > best_score:
                best, best_score = action, score + noise[action]
    for action in range(len(prior)):
        if policy[action] > ZERO:
            score = gumbel_score(prior[action], ZERO, q[action], most_visits, visit_offset, value_scale)
            policy[action] = np.float32(math.exp(np.float64(score - peak)))
            total += float(policy[action])
    for action in range(len(prior)):
        policy[action] = policy[action] / np.float32(total)
    return best


@inlined
def read_root(tree, b, settings, visit_counts, policy, q, values):
    """Reads a search; returns the best action.

    Writes `visit_counts int32[A]`, the policy target `policy float32[A]`, `q float32[A]` completed by
    that of an unvisited action, and the root's value, exact if proven: `values float32[V]`, first that of the mover.
    """
    count, first = tree.num_edges[b, ROOT], tree.first_edge[b, ROOT]
    edges = slice(first, first + EDGE * count, EDGE)
    prior, visits = tree.prior[edges], tree.visits[edges]
    exact = tree.proven[b, ROOT] != UNPROVEN
    for i in range(count):
        visit_counts[i] = visits[i]
    unvisited = complete_q(tree, b, prior, q)
    by_action, q_by_action, policy, q = policy, q, policy[:count], q[:count]
    mark_candidates(tree, b, policy)
    value = tree.node_value[b, ROOT] / tree.node_visits[b, ROOT]
    if settings.max_considered > 0:
        spread_out(tree, b, q, settings)
        best = gumbel_policy(prior, visits, q, tree.root_gumbel[b], settings, policy)
        if settings.alone:  # the values themselves again
            complete_q(tree, b, prior, q)
        # halving first visits bad actions as often as good ones, so the mean of all visits misleads: the value is that
        # of the improved policy, the sum of policy(a) Q(s, a)
        total = 0.0
        for i in range(count):
            if policy[i] > ZERO:
                total += np.float64(policy[i]) * np.float64(q[i])
        value = np.float32(total)
    else:
        best = visit_policy(prior, visits, policy)
    if settings.alone:  # with the points along the way a sum may be a little larger
        value = max(min(value, ONE), -ONE)
    values[0] = np.float32(tree.proven[b, ROOT]) if exact else value
    if settings.seats:
        read_seats(tree, b, settings, policy, values)
    give_to_actions(tree, b, visit_counts, 0)
    give_to_actions(tree, b, by_action, ZERO)
    give_to_actions(tree, b, q_by_action, unvisited)
    return action_of(tree, first + EDGE * best)


@inlined
def give_to_actions(tree, b, row, other):
    """Moves the numbers of the root's edges, which begin `row`, to the places of their actions; others get `other`.

    The last one comes first, as no action has a smaller number than its edge.
    """
    end = len(row)
    for i in range(tree.num_edges[b, ROOT] - 1, -1, -1):
        action = action_of(tree, tree.first_edge[b, ROOT] + EDGE * i)
        row[action] = row[i]
        for empty in range(action + 1, end):
            row[empty] = other
        end = action
    for empty in range(end):
        row[empty] = other


@inlined
def read_seats(tree, b, settings, policy, values):
    """Writes the root's value for each player, first that of the mover, into `values float32[S]`.

    With sequential halving it is the mean of the visited actions by the improved policy, unless players draw lots.
    """
    mass, halves = ZERO, settings.max_considered > 0 and tree.proven[b, ROOT] != BETWEEN
    if settings.lots:
        halves = False
    first = tree.first_edge[b, ROOT]
    for i in range(len(policy)):
        if tree.visits[first + EDGE * i] > 0:
            mass += policy[i]
    for i in range(len(values)):
        seat, total = (tree.to_play[b, ROOT] + i) % len(values), ZERO
        if halves and mass > ZERO:
            for j in range(len(policy)):
                edge = first + EDGE * j
                if tree.visits[edge] > 0:
                    total += rounded_product(policy[j], seat_mean(tree, b, tree.child[edge], seat))
            values[i] = total / mass
        else:
            values[i] = seat_mean(tree, b, ROOT, seat)
