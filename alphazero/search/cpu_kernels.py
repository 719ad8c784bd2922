"""The search's kernels on the processor: loops over trees.

Every kernel is serial, releases Python's lock, and knows no game, so that all games share its compiled code, which is
kept on disk. Threads share the work by having trees of their own. A step of the search calls one kernel (`simulate`)
and one `evaluate`: each entry into a kernel costs a microsecond, and a thread that comes back from one may have to wait
for Python's lock. So `simulate` itself calls the game's compiled rules, at their address.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from alphazero.game.functions import plain
from alphazero.game.kernels import DIE, Kernels, entry_point, inlined, kernel
from alphazero.search.backup import finish_walk
from alphazero.search.expansion import go_on
from alphazero.search.roots import begin_root, move_root, read_root
from alphazero.search.selection import edges_of, walk
from alphazero.search.tree import UNPROVEN, UNVISITED, ZERO, LeafAnswers, Step, action_of, known_of


@intrinsic
def call_at(typing_context, address, arguments):  # type: ignore[no-untyped-def]
    """Calls the compiled function of these arguments that begins at the address; it returns an `int64`."""
    kinds = tuple(arguments)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = context.call_conv.get_function_type(types.int64, kinds)
        function = builder.inttoptr(values[0], kind.as_pointer())
        given = cgutils.unpack_tuple(builder, values[1])
        status, result = context.call_conv.call_function(builder, function, types.int64, kinds, given)
        with cgutils.if_unlikely(builder, status.is_error):  # a rule has raised
            context.call_conv.return_status_propagate(builder, status)
        return result

    return types.int64(address, arguments), generate


@inlined
def leaves_of(step, first, end, count):
    """The arguments of `game.kernels._advance` for some walks of a step; `count` leaves were packed before."""
    walks = step.walks
    return (
        step.states, step.to_play, walks.parents[first:end], walks.actions[first:end], walks.children[first:end],
        walks.terminal[first:end], walks.results[first:end], step.leaf_states[count:], step.leaf_masks[count:],
    )  # fmt: skip


@inlined
def leaves_with_dice(step, first, end, count):
    """The arguments of `game.kernels._advance_to_die` for some walks of a step."""
    return (*leaves_of(step, first, end, count), step.walks.chances[first:end], step.probabilities)


@kernel
def simulate(step, answers, begin, advance):
    """Calls `backup.finish_walk` for the walks under way and, with `begin`, `selection.walk` for the next ones.

    `answers` has a row for each leaf of the walks under way that is new and where the game goes on, in the order of
    the walks. Both are done for one tree after another, so that each tree comes from memory once.
    Then plays the actions that lead to the new leaves by the code at the address `advance`, and returns the number of
    leaves that need a network; 0 in place of an address leaves both to the caller. Walks go on through dice.
    """
    tree, settings, walks = step.tree, step.settings, step.walks
    used, count, leaves = 0, 0, settings.leaves_per_step
    for b in range(len(tree.size)):
        for i in range(b * leaves, (b + 1) * leaves):
            used += finish_walk(tree, b, i, walks, used, answers, settings)
            walks.leaves[i] = walks.parents[i] = -1
        if begin:
            walk(tree, b, settings, step.scratch, walks)
            while settings.dice and advance != 0 and walks.parents[b] >= 0:
                count += call_at(advance, leaves_with_dice(step, b, b + 1, count))
                if walks.chances[b, 0] == ZERO:
                    break
                go_on(tree, b, b, walks)
    return count if settings.dice or advance == 0 else call_at(advance, leaves_of(step, 0, len(walks.parents), 0))


def simulation(kernels: Kernels, step: Step, answers: LeafAnswers) -> Callable[[Step, LeafAnswers, bool], int]:
    """`simulate` for one game and for steps like this one: `(step, answers, begin)` -> leaves that need a network.

    Those are packed into `step.leaf_states` and `step.leaf_masks`, which without dice may be the memory of
    `answers.legal_masks`.
    """
    leaves, advance = leaves_of, kernels.advance
    if step.settings.dice:
        leaves, advance = leaves_with_dice, kernels.advance_to_die
    leaves = partial(plain(leaves), first=0, end=None, count=0)
    address = advance.address(*leaves(step))
    enter = entry_point(simulate, step, answers, True, address)

    def run(step: Step, answers: LeafAnswers, begin: bool) -> int:
        count = enter(step, answers, begin, address)
        return count if address else advance(*leaves(step))

    return run


@kernel
def move_roots(tree, trees, actions, states, to_play, num_kept, new_index):
    """Calls `roots.move_root` for every tree `trees[i]`."""
    for i in range(len(trees)):
        move_root(tree, trees[i], actions[i], states[i], to_play[i], num_kept, new_index)


@kernel
def begin_roots(tree, trees, answers, budgets, seed, games, plies, settings):
    """Calls `roots.begin_root` for every tree `trees[i]`; `budgets int32[n]`. The answers are for the pending roots."""
    row = 0
    for i in range(len(trees)):
        row += begin_root(tree, trees[i], answers, row, budgets[i], seed, games[i], plies[i], settings)


@kernel
def read_roots(tree, trees, settings, visit_counts, policies, qs, values, actions):
    """Writes the results of the searches, row i for tree `trees[i]`.

    `visit_counts int32[n, A]`; `policies float32[n, A]` the policy targets; `qs float32[n, A]` completed;
    `values float32[n, V]` the roots' values, exact if proven; `actions int64[n]` the best actions.
    """
    for i in range(len(trees)):
        actions[i] = read_root(tree, trees[i], settings, visit_counts[i], policies[i], qs[i], values[i])


@kernel
def read_line(tree, b, node, line):
    """Writes the expected play from `node` to the end of the tree into `line int32[n]`; returns its length.

    At each node that is a proven win before a proven loss, then the most visited action.
    """
    length = 0
    while length < len(line) and node != UNVISITED:
        if tree.node_visits[b, node] <= ZERO:  # the game is over: the rest of the row holds older numbers
            break
        if tree.to_play[b, node] >= DIE:  # nobody chooses there
            break
        best, best_worth, best_visits = -1, 0, 0
        for edge in edges_of(tree, b, node):
            visits, proven = tree.visits[edge], known_of(tree, edge)
            worth = 0 if proven == UNPROVEN else proven
            if visits > 0 and (best == -1 or worth > best_worth or (worth == best_worth and visits > best_visits)):
                best, best_worth, best_visits = edge, worth, visits
        if best == -1:
            break
        line[length] = action_of(tree, best)
        length += 1
        node = tree.child[best]
    return length


@kernel
def count_plies(tree, b, plies):
    """Writes for each node of a tree after how many plies its proven win or loss ends the game: `plies int32[n]`.

    The winner takes the shortest way that is proven, the loser the longest of all, so nobody can delay the end further.
    A node gets -1 if it is no proven win or loss, or if a die lies on the way or a part of it has been dropped from the
    tree.
    """
    for node in range(tree.size[b] - 1, -1, -1):  # nodes come after their parents
        won, plies[node] = tree.proven[b, node] == 1, -1
        if (not won and tree.proven[b, node] != -1) or tree.to_play[b, node] >= DIE:
            continue
        if tree.node_visits[b, node] <= ZERO:  # the game is over
            plies[node] = 0
            continue
        for edge in edges_of(tree, b, node):
            if won and known_of(tree, edge) != 1:
                continue
            below = plies[tree.child[edge]] if tree.child[edge] != UNVISITED else -1
            if won and below >= 0 and (plies[node] < 0 or below + 1 < plies[node]):
                plies[node] = below + 1
            elif not won and below < 0:
                plies[node] = -1
                break
            elif not won:
                plies[node] = max(plies[node], below + 1)
