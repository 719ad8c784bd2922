"""B search trees side by side, and the kernels that grow them; they know no game and no network.

Every kernel is serial, lets go of Python's lock, touches each tree on its own and is compiled once, then cached on
disk: threads share the work by holding trees of their own. All arithmetic on values is float32, in a fixed order, so
a tree comes out the same alone or among others, compiled or as plain Python.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from alphazero.kernels import kernel
from alphazero.noise import ROOT_GUMBEL, ROOT_NOISE, combine, gamma, gumbel, make_key, uniform

inlined = njit(forceinline=True, error_model="numpy", _nrt=False)

ROOT = 0
UNVISITED = -1
ILLEGAL = np.float32(-np.inf)
"""The prior of an action that the rules forbid."""
SURE = np.float32(1e6)
"""The size of q once an action is proven to win (+) or lose (-): no exploration can make up for it."""
UNPROVEN = np.int8(2)
"""In place of a proven value -1, 0, +1: not known."""
PENDING = np.int8(3)
"""In place of a proven value: a node whose evaluation is still to come."""
ZERO, ONE = np.float32(0.0), np.float32(1.0)
TINY, HUGE = np.float32(1e-30), np.float32(1e30)


class Tree(NamedTuple):
    """B trees of at most N nodes; node 0 is the root. A node's row of actions belongs to the player to move there."""

    states: np.ndarray  # uint64[B, N, K]
    to_play: np.ndarray  # int8[B, N]
    proven: np.ndarray  # int8[B, N]: the exact value for the player to move, UNPROVEN or PENDING
    raw_value: np.ndarray  # float32[B, N]: the evaluation of the node itself
    node_visits: np.ndarray  # float32[B, N]: N(s) = 1 + the sum of N(s, a), the node's own evaluation counted
    node_value: np.ndarray  # float32[B, N]: the sum of those N(s) values, for the player to move
    visited_prior: np.ndarray  # float32[B, N]: the sum of P(s, a) over the visited actions
    parent: np.ndarray  # int32[B, N]
    action: np.ndarray  # int32[B, N]: the parent's action that leads here
    prior: np.ndarray  # float32[B, N, A]: P(s, a), or ILLEGAL
    visits: np.ndarray  # int32[B, N, A]: N(s, a)
    q: np.ndarray  # float32[B, N, A]: mean value for the player who chooses a; once proven 0 or +-SURE
    child: np.ndarray  # int32[B, N, A]: node, or UNVISITED
    action_proven: np.ndarray  # int8[B, N, A]: exact value for the player who chooses a, or UNPROVEN
    size: np.ndarray  # int32[B]: nodes in use
    budget: np.ndarray  # int32[B]: simulations of this search
    remaining: np.ndarray  # int32[B]: of which are still to come
    root_prior: np.ndarray  # float32[B, A]: the root's priors after temperature and noise
    root_gumbel: np.ndarray  # float32[B, A]: the Gumbel variates of this search


def make_tree(num_trees: int, num_nodes: int, num_actions: int, state_words: int) -> Tree:
    """Room for `num_trees` empty trees.

    What a walk reads at a node lies side by side in one block of 32-bit words, so that it is fetched from memory at
    once: a third faster at 200 simulations than an array for each field.
    """
    nodes, edges = (num_trees, num_nodes), (num_trees, num_nodes, num_actions)
    words = np.zeros((num_trees, num_nodes, 4 * num_actions + 6), np.float32)
    counts = words.view(np.int32)
    rows = [slice(i * num_actions, (i + 1) * num_actions) for i in range(4)]
    tree = Tree(
        states=np.zeros((*nodes, state_words), np.uint64),
        to_play=np.zeros(nodes, np.int8),
        proven=np.full(nodes, PENDING),
        raw_value=words[:, :, -6],
        node_visits=words[:, :, -5],
        node_value=words[:, :, -4],
        visited_prior=words[:, :, -3],
        parent=counts[:, :, -2],
        action=counts[:, :, -1],
        prior=words[:, :, rows[0]],
        visits=counts[:, :, rows[1]],
        q=words[:, :, rows[2]],
        child=counts[:, :, rows[3]],
        action_proven=np.full(edges, UNPROVEN),
        size=np.zeros(num_trees, np.int32),
        budget=np.zeros(num_trees, np.int32),
        remaining=np.zeros(num_trees, np.int32),
        root_prior=np.zeros((num_trees, num_actions), np.float32),
        root_gumbel=np.zeros((num_trees, num_actions), np.float32),
    )
    tree.child[:] = UNVISITED
    return tree


# --- selection -------------------------------------------------------------------------------------------------------


@inlined
def puct(q, prior, visits, weight):
    """Q + U of one action (Silver et al. 2018): q + c P(s, a) sqrt(N(s)) / (1 + N(s, a)).

    `q` is for the player who chooses; `weight` is c sqrt(N(s)), where N(s) counts the node's own evaluation.
    """
    return q + prior * weight / np.float32(1 + visits)


@inlined
def choose_by_puct(prior, visits, q, node_visits, node_value, visited_prior, c_puct, fpu_reduction):
    """The action of highest PUCT score at one node; `prior`, `visits`, `q` are rows `[A]`.

    An unvisited action starts from the node's mean value less `fpu_reduction` x sqrt(prior mass visited) (first-play
    urgency as in KataGo, Wu 2019).
    """
    weight = c_puct * np.float32(math.sqrt(node_visits))
    unvisited_q = node_value / node_visits - fpu_reduction * np.float32(math.sqrt(visited_prior))
    best, best_score = 0, np.float32(-np.inf)
    for action in range(len(prior)):
        score = puct(q[action] if visits[action] > 0 else unvisited_q, prior[action], visits[action], weight)
        if score > best_score:  # never so for an illegal action: its score is -inf, or nan where c_puct is 0
            best, best_score = action, score
    return best


@inlined
def complete_q(prior, visits, q, proven, raw_value, completed):
    """Writes Q(s, a), completed where nothing was visited by v_mix (Danihelka et al. 2022, appendix D, equation 33)."""
    total, mass, weighted = 0, ZERO, ZERO
    for action in range(len(prior)):
        if visits[action] > 0:
            completed[action] = q[action] if proven[action] == UNPROVEN else np.float32(proven[action])
            total += visits[action]
            mass += prior[action]
            weighted += prior[action] * completed[action]
    mixed = raw_value
    if mass > ZERO:
        mixed = (raw_value + np.float32(total) * weighted / mass) / np.float32(1 + total)
    for action in range(len(prior)):
        if visits[action] == 0:
            completed[action] = mixed


@inlined
def sigma(q, most_visits, visit_offset, value_scale):
    """The weight of a value beside a logit (Danihelka et al. 2022, equation 8); q in [-1, 1] is moved to [0, 1]."""
    return (visit_offset + np.float32(most_visits)) * value_scale * (q + ONE) / np.float32(2.0)


@inlined
def considered_visits(num_considered, budget, simulation):
    """Sequential halving: the visits that an action must have to be visited next, at `simulation` of `budget`.

    `num_considered` actions share the first phase equally, the better half of them the next one, and so on, each
    phase taking an equal part of the budget (Karnin et al. 2013; Danihelka et al. 2022, figure 1).
    """
    if num_considered <= 1:
        return simulation
    phases = math.ceil(math.log2(num_considered))
    first, visits, considered = 0, 0, num_considered
    while True:
        rounds = max(1, budget // (phases * considered))
        if simulation < first + rounds * considered:
            return visits + (simulation - first) // considered
        first += rounds * considered
        visits += rounds
        considered = max(2, considered // 2)


@inlined
def choose_by_gumbel(tree, b, simulation, max_considered, visit_offset, value_scale, q):
    """The root action of sequential halving: the best of gumbel + logit + sigma(q) among those whose turn it is."""
    prior, visits = tree.root_prior[b], tree.visits[b, ROOT]
    proven = tree.action_proven[b, ROOT]
    complete_q(prior, visits, tree.q[b, ROOT], proven, tree.raw_value[b, ROOT], q)
    allowed, most_visits = 0, 0
    for action in range(len(prior)):
        if proven[action] == 1:
            return action
        allowed += prior[action] >= ZERO
        most_visits = max(most_visits, visits[action])
    num_considered = min(max_considered, allowed, tree.budget[b])
    turn = considered_visits(num_considered, tree.budget[b], simulation)
    best, best_score, best_gap = -1, np.float32(-np.inf), 1 << 30
    for action in range(len(prior)):
        if prior[action] >= ZERO:
            # with several leaves in flight no action may have exactly `turn` visits: take the nearest then
            gap = abs(visits[action] - turn)
            noise = tree.root_gumbel[b, action]
            score = gumbel_score(prior[action], noise, q[action], most_visits, visit_offset, value_scale)
            if gap < best_gap or (gap == best_gap and score > best_score):
                best, best_score, best_gap = action, score, gap
    return best


@inlined
def gumbel_score(prior, noise, q, most_visits, visit_offset, value_scale):
    """gumbel + logit + sigma(q) of one root action."""
    logit = np.float32(math.log(max(np.float64(prior), 1e-12)))
    return noise + logit + sigma(q, most_visits, visit_offset, value_scale)


@kernel
def select(
    tree, leaves_per_step, c_puct, fpu_reduction, max_considered, visit_offset, value_scale, scratch, parents, actions,
    children, leaves,
):  # fmt: skip
    """Walks down every tree to the leaves of the next simulations.

    For leaf l of tree b, entry i = b * leaves_per_step + l: `leaves[i]` is its node, -1 if the tree's budget is spent,
    or -2 - node if the walk ran into a node that is still pending. For a new node `parents[i]`, `children[i]` are rows
    b * N + node and `actions[i]` the action between them; else they are -1. With several leaves a step, each walk
    leaves a virtual loss behind (Chaslot et al. 2008), so that the next one takes another way.
    `max_considered` > 0 turns sequential halving on at the root. `scratch float32[A]`.
    """
    num_trees, num_nodes = tree.proven.shape
    for b in range(num_trees):
        for l in range(leaves_per_step):  # noqa: E741
            i = b * leaves_per_step + l
            parents[i] = children[i] = leaves[i] = -1
            if l >= tree.remaining[b]:
                continue
            node = ROOT
            while True:
                if node == ROOT and max_considered > 0:
                    simulation = tree.budget[b] - tree.remaining[b] + l
                    action = choose_by_gumbel(tree, b, simulation, max_considered, visit_offset, value_scale, scratch)
                else:
                    action = choose_by_puct(
                        tree.root_prior[b] if node == ROOT else tree.prior[b, node],
                        tree.visits[b, node],
                        tree.q[b, node],
                        tree.node_visits[b, node],
                        tree.node_value[b, node],
                        tree.visited_prior[b, node],
                        c_puct,
                        fpu_reduction,
                    )
                if leaves_per_step > 1:
                    add_visit(tree, b, node, action, -ONE)
                child = tree.child[b, node, action]
                if child == UNVISITED:
                    child = tree.size[b]
                    tree.size[b] += 1
                    tree.child[b, node, action] = child
                    tree.parent[b, child] = node
                    tree.action[b, child] = action
                    tree.proven[b, child] = PENDING
                    leaves[i] = child
                    parents[i], actions[i], children[i] = b * num_nodes + node, action, b * num_nodes + child
                    break
                node = child
                if tree.proven[b, node] != UNPROVEN:
                    leaves[i] = -2 - node if tree.proven[b, node] == PENDING else node
                    break


# --- expansion and backup --------------------------------------------------------------------------------------------


@inlined
def expand(tree, b, node, legal_mask, prior, value):
    """Opens a node: `prior float32[A]` (weights, any sum) is kept to the legal actions and made to sum to 1."""
    total, allowed, unit = ZERO, 0, ONE
    for action in range(len(prior)):
        if legal_mask[action]:
            total += prior[action]
            allowed += 1
    if not TINY < total < HUGE:  # their sum, or one over it, may be no float32: count in other units
        unit = HUGE if total < HUGE else TINY
        total = ZERO
        for action in range(len(prior)):
            if legal_mask[action]:
                total += prior[action] * unit
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
    tree.raw_value[b, node] = tree.node_value[b, node] = value
    tree.node_visits[b, node] = ONE
    tree.visited_prior[b, node] = ZERO
    tree.proven[b, node] = UNPROVEN


@inlined
def settle(tree, b, node):
    """The exact value of a node for the player to move if its actions decide it, else UNPROVEN."""
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
    """Counts one more visit of an action, with `value` for the player who chooses it."""
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
def change_visit(tree, b, node, action, change):
    """Adds `change` to the value of a visit that was counted already."""
    tree.node_value[b, node] += change
    if tree.action_proven[b, node, action] == UNPROVEN:
        tree.q[b, node, action] += change / np.float32(tree.visits[b, node, action])


@inlined
def backup(tree, b, leaf, value, virtual, prove):
    """Counts `value`, for the player to move at `leaf`, for every action on the way to the root.

    The one place that changes signs: from child to parent where `to_play` differs. A proven child may prove its
    parent, which then backs up its exact value (MCTS-Solver, Winands et al. 2008).
    """
    node = leaf
    exact = prove and tree.proven[b, leaf] != UNPROVEN
    while node != ROOT:
        parent, action = tree.parent[b, node], tree.action[b, node]
        if tree.to_play[b, parent] != tree.to_play[b, node]:
            value = -value
        if virtual:
            change_visit(tree, b, parent, action, value + ONE)
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
    """Takes back the visits of a walk that ended at a pending node."""
    while node != ROOT:
        parent, action = tree.parent[b, node], tree.action[b, node]
        visits = tree.visits[b, parent, action] - 1  # the pending walk itself is still counted, so at least 1
        tree.visits[b, parent, action] = visits
        tree.node_visits[b, parent] -= ONE
        tree.node_value[b, parent] += ONE
        if tree.action_proven[b, parent, action] == UNPROVEN:
            tree.q[b, parent, action] += (tree.q[b, parent, action] + ONE) / np.float32(visits)
        node = parent


@kernel
def expand_and_backup(
    tree, leaves_per_step, prove, parents, leaves, terminal, results, leaf_masks, priors, values,
):  # fmt: skip
    """Ends a step: opens the new leaves and backs their values up.

    `parents`, `leaves` as `select` wrote them; `terminal bool[n]`, `results float32[n]` by entry; for the new leaves
    that are not terminal, in order: `leaf_masks bool[m, A]`, `priors float32[m, A]`, `values float32[m]`.
    """
    j = 0
    for i in range(len(leaves)):
        b = i // leaves_per_step
        leaf = leaves[i]
        if leaf == -1:
            continue
        if leaf < 0:
            undo(tree, b, -2 - leaf)
            continue
        if parents[i] < 0:
            value = np.float32(tree.proven[b, leaf])
        elif terminal[i]:
            value = results[i]
            tree.proven[b, leaf] = np.int8(value)
        else:
            value = values[j]
            expand(tree, b, leaf, leaf_masks[j], priors[j], value)
            j += 1
        backup(tree, b, leaf, value, leaves_per_step > 1, prove)
        tree.remaining[b] -= 1


# --- roots -----------------------------------------------------------------------------------------------------------


@inlined
def copy_node(tree, b, source, target):
    """Copies a node's row, its links to children left out."""
    for word in range(tree.states.shape[2]):
        tree.states[b, target, word] = tree.states[b, source, word]
    tree.to_play[b, target] = tree.to_play[b, source]
    tree.proven[b, target] = tree.proven[b, source]
    tree.raw_value[b, target] = tree.raw_value[b, source]
    tree.node_visits[b, target] = tree.node_visits[b, source]
    tree.node_value[b, target] = tree.node_value[b, source]
    tree.visited_prior[b, target] = tree.visited_prior[b, source]
    tree.action[b, target] = tree.action[b, source]
    for action in range(tree.prior.shape[2]):
        tree.prior[b, target, action] = tree.prior[b, source, action]
        tree.visits[b, target, action] = tree.visits[b, source, action]
        tree.q[b, target, action] = tree.q[b, source, action]
        tree.action_proven[b, target, action] = tree.action_proven[b, source, action]
        tree.child[b, target, action] = UNVISITED


@kernel
def move_roots(tree, trees, actions, states, to_play, num_kept, new_index):
    """Makes the root's child by `actions[i]` the new root of tree `trees[i]`; keeps at most `num_kept` of its nodes.

    With action -1, or where no such child was opened, the tree is emptied: its root is `states[i]`, `to_play[i]`,
    pending. A node always comes after its parent, so that one pass in place does it; where room is short the youngest
    nodes go, and are opened again when a walk comes by. `new_index int32[N]` is scratch space.
    """
    for i in range(len(trees)):
        b, action = trees[i], actions[i]
        root = tree.child[b, ROOT, action] if action >= 0 and tree.size[b] > 0 else UNVISITED
        if root == UNVISITED:
            tree.size[b] = 1
            for word in range(states.shape[1]):
                tree.states[b, ROOT, word] = states[i, word]
            tree.to_play[b, ROOT] = to_play[i]
            tree.proven[b, ROOT] = PENDING
            continue
        for node in range(root):
            new_index[node] = UNVISITED
        new_index[root] = ROOT
        copy_node(tree, b, root, ROOT)
        kept = 1
        for node in range(root + 1, tree.size[b]):
            parent = new_index[tree.parent[b, node]]
            new_index[node] = UNVISITED
            if parent != UNVISITED and kept < num_kept:
                copy_node(tree, b, node, kept)
                tree.parent[b, kept] = parent
                tree.child[b, parent, tree.action[b, kept]] = kept
                new_index[node] = kept
                kept += 1
        tree.size[b] = kept


@kernel
def open_roots(tree, trees, legal_masks, priors, values):
    """Opens pending roots: `legal_masks bool[n, A]`, `priors float32[n, A]`, `values float32[n]`."""
    for i in range(len(trees)):
        expand(tree, trees[i], ROOT, legal_masks[i], priors[i], values[i])


@kernel
def prepare_roots(tree, trees, budgets, seed, games, plies, temperature, noise_fraction, noise_total, use_gumbel):
    """Sets the budgets `int32[n]` of the next search and shapes the root's priors for it.

    P(s, a)^(1 / temperature), made to sum to 1, then mixed with Dirichlet noise by `noise_fraction` (float32);
    the noise's concentration is `noise_total` over the number of legal actions (as in KataGo, Wu 2019).
    """
    for i in range(len(trees)):
        b = trees[i]
        tree.budget[b] = tree.remaining[b] = budgets[i]
        prior, target = tree.prior[b, ROOT], tree.root_prior[b]
        allowed, total, noise_sum = 0, 0.0, 0.0
        tree.visited_prior[b, ROOT] = ZERO
        noise_key = make_key(seed, games[i], plies[i], ROOT_NOISE)
        gumbel_key = make_key(seed, games[i], plies[i], ROOT_GUMBEL)
        for action in range(len(prior)):
            if prior[action] >= ZERO:
                allowed += 1
                total += float(prior[action]) ** (1.0 / temperature)
        concentration = noise_total / allowed
        for action in range(len(prior)):
            target[action] = ILLEGAL
            if prior[action] >= ZERO:
                target[action] = np.float32(float(prior[action]) ** (1.0 / temperature) / total)
        if noise_fraction > ZERO:
            noise = tree.root_gumbel[b]  # serves as scratch space here
            for action in range(len(prior)):
                if prior[action] >= ZERO:
                    noise[action] = np.float32(gamma(combine(noise_key, action), concentration))
                    noise_sum += float(noise[action])
            if noise_sum == 0.0:  # so small a concentration puts everything on one action, too little for float32
                chosen = int(uniform(noise_key, len(prior)) * allowed)
                for action in range(len(prior)):
                    if prior[action] >= ZERO:
                        noise[action] = ONE if chosen == 0 else ZERO
                        chosen -= 1
                noise_sum = 1.0
            for action in range(len(prior)):
                if prior[action] >= ZERO:
                    share = noise[action] / np.float32(noise_sum)
                    target[action] = (ONE - noise_fraction) * target[action] + noise_fraction * share
        for action in range(len(prior)):
            tree.root_gumbel[b, action] = np.float32(gumbel(gumbel_key, action)) if use_gumbel else ZERO
        for action in range(len(prior)):
            if tree.visits[b, ROOT, action] > 0:
                tree.visited_prior[b, ROOT] += target[action]


@inlined
def mark_candidates(prior, proven, marks):
    """Writes 1 into `marks float32[A]` for every action worth playing, else 0.

    Proven losses are not, unless all actions are lost; where an action is proven to win, only such ones are.
    """
    best = -1
    for action in range(len(prior)):
        if prior[action] >= ZERO:
            # an open action may turn out to be anything but a sure win: rank it with the draws
            best = max(best, 0 if proven[action] == UNPROVEN else proven[action])
    for action in range(len(prior)):
        known = 0 if proven[action] == UNPROVEN else proven[action]
        worthy = known == 1 if best == 1 else known != -1 or best == -1
        marks[action] = ONE if prior[action] >= ZERO and worthy else ZERO


@inlined
def visit_policy(prior, visits, policy):
    """Turns the marks in `policy` into visits over their sum; returns the most visited action, ties by prior."""
    best, best_score, total = -1, np.float32(-np.inf), 0
    for action in range(len(prior)):
        if policy[action] > ZERO:
            total += visits[action]
            score = np.float32(visits[action]) + prior[action]
            if score > best_score:
                best, best_score = action, score
    for action in range(len(prior)):
        if total > 0:
            policy[action] = policy[action] * np.float32(visits[action]) / np.float32(total)
        else:
            policy[action] = ONE if action == best else ZERO  # nothing worth playing was visited
    return best


@inlined
def gumbel_policy(prior, visits, q, noise, visit_offset, value_scale, policy):
    """Turns the marks in `policy` into the improved policy softmax(logits + sigma(q)) (Danihelka et al. 2022, eq. 11).

    Returns the winner of sequential halving: of the most visited marked actions that of highest gumbel + logit + sigma.
    """
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
def improved_value(policy, q):
    """The value of the improved policy (Danihelka et al. 2022): sum of policy(a) Q(s, a), for the player to move.

    `policy float32[A]` sums to 1, `q float32[A]` is completed; actions without a share may have any q.
    """
    value = 0.0
    for action in range(len(policy)):
        if policy[action] > ZERO:
            value += np.float64(policy[action]) * np.float64(q[action])
    return np.float32(value)


@kernel
def read_roots(
    tree, trees, use_gumbel, visit_offset, value_scale, visit_counts, policies, qs, values, actions,
):  # fmt: skip
    """What the searches found, row i for tree `trees[i]`.

    `visit_counts int32[n, A]`; `policies float32[n, A]` the policy targets; `qs float32[n, A]` completed;
    `values float32[n]` of the roots for their movers, exact if proven; `actions int64[n]` the best ones.
    """
    for i in range(len(trees)):
        b = trees[i]
        prior, visits, proven = tree.prior[b, ROOT], tree.visits[b, ROOT], tree.action_proven[b, ROOT]
        exact = tree.proven[b, ROOT] != UNPROVEN
        mean = tree.node_value[b, ROOT] / tree.node_visits[b, ROOT]
        values[i] = np.float32(tree.proven[b, ROOT]) if exact else mean
        complete_q(prior, visits, tree.q[b, ROOT], proven, tree.raw_value[b, ROOT], qs[i])
        for action in range(len(prior)):
            visit_counts[i, action] = visits[action]
        mark_candidates(prior, proven, policies[i])
        if use_gumbel:
            noise = tree.root_gumbel[b]
            actions[i] = gumbel_policy(prior, visits, qs[i], noise, visit_offset, value_scale, policies[i])
            if not exact:  # halving visits bad actions as often as good ones at first: the mean of all visits misleads
                values[i] = improved_value(policies[i], qs[i])
        else:
            actions[i] = visit_policy(prior, visits, policies[i])
