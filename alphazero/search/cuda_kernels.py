"""The search's kernels on a GPU: one thread for each tree or leaf, which runs the same functions as the processor.

Every kernel takes two sets of arrays, the trees and the `SearchBuffers`. Their addresses never change, as a captured
graph needs.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import cuda

from alphazero.game.functions import bound, with_callees
from alphazero.game.kernels import BoundRules, Kernels, _advance_to_die, _to_canonical, _wins_by
from alphazero.search.backup import finish_walk
from alphazero.search.cuda_memory import SIMULATED
from alphazero.search.expansion import go_on
from alphazero.search.roots import begin_root, move_root, read_root
from alphazero.search.selection import walk
from alphazero.search.tree import PENDING, ROOT, ZERO, Memory, Tree, make_arrays, room_of, rounded_product

BLOCK = 2 if SIMULATED else 32
"""Threads per block: one warp, so that a few trees use many multiprocessors; a simulated thread takes long to start."""


class SearchBuffers(NamedTuple):
    """The arrays through which kernels and network pass their results: B trees, L leaves of all of them per step."""

    parents: Annotated[Any, "int64[L]"]  # row of the parent in the trees' nodes, or -1
    actions: Annotated[Any, "int64[L]"]
    children: Annotated[Any, "int64[L]"]  # row of the new node, or -1
    leaves: Annotated[Any, "int64[L]"]  # as in `tree.Walks`
    terminal: Annotated[Any, "bool[L]"]
    results: Annotated[Any, "float32[L, V]"]  # where terminal
    chances: Annotated[Any, "float32[L, C]"]  # as in `tree.Walks`
    legal_masks: Annotated[Any, "bool[L, A]"]
    # the network sees canonical images; S symmetries
    symmetries: Annotated[Any, "int64[L]"]
    permutations: Annotated[Any, "int64[S, A]"]
    canonical: Annotated[Any, "uint64[L, K]"]
    planes: Annotated[Any, "float32[L, P]"]  # P: planes, height, width
    asked_masks: Annotated[Any, "bool[L, A]"]
    answers: Annotated[Any, "float32[L, A]"]
    priors: Annotated[Any, "float32[L, A]"]  # the answers, turned back to the position itself
    values: Annotated[Any, "float32[L, V]"]
    after: Annotated[Any, "uint64[L, K]"]  # scratch space
    scratch: Annotated[Any, "float32[B, W]"]  # W: the entries of a node's row, as in `tree.room_of`
    new_index: Annotated[Any, "int32[B, N]"]
    # a search begins in trees[:n]
    trees: Annotated[Any, "int64[B]"]
    root_states: Annotated[Any, "uint64[B, K]"]
    root_to_play: Annotated[Any, "int8[B]"]
    root_actions: Annotated[Any, "int64[B]"]  # the action played since the last search, or -1
    games: Annotated[Any, "int64[B]"]
    plies: Annotated[Any, "int64[B]"]
    budgets: Annotated[Any, "int32[B]"]  # simulations
    # results of the searches in trees[:n]
    visit_counts: Annotated[Any, "int32[B, W]"]
    policies: Annotated[Any, "float32[B, W]"]
    qs: Annotated[Any, "float32[B, W]"]
    root_values: Annotated[Any, "float32[B, V]"]
    best: Annotated[Any, "int64[B]"]


class DiceBuffers(NamedTuple):
    """Arrays of a search of a game with dice beside the `SearchBuffers`; R = B N rows."""

    states: Annotated[Any, "uint64[R, K]"]  # those of the tree, in one row
    to_play: Annotated[Any, "int8[R]"]  # likewise
    probabilities: Annotated[Any, "float64[B, C]"]  # scratch space


def make_buffers(
    kernels: Kernels, num_trees: int, num_nodes: int, leaves_per_step: int, memory: Memory
) -> SearchBuffers:
    """Buffers for `num_trees` trees of `num_nodes` nodes."""
    game = kernels.game
    return make_arrays(
        SearchBuffers, memory.zeros, B=num_trees, L=num_trees * leaves_per_step, N=num_nodes, A=game.num_actions,
        K=game.state_words, P=game.observation_shape, C=max(1, game.num_outcomes), S=len(game.symmetries[1]),
        W=room_of(game)[1], V=game.num_values,
    )  # fmt: skip


def make_dice_buffers(kernels: Kernels, tree: Tree, memory: Memory) -> tuple[DiceBuffers, ...]:
    """The dice buffers of the tree, as a kernel's last argument; none if the game has no dice."""
    game = kernels.game
    if not game.num_outcomes:
        return ()
    count = tree.size.shape[0] * tree.proven.shape[1]
    rows = {"states": tree.states.reshape(count, game.state_words), "to_play": tree.to_play.reshape(count)}
    return (make_arrays(DiceBuffers, memory.zeros, rows, B=tree.size.shape[0], C=game.num_outcomes),)


def _select(tree, buffers, settings):
    """Thread b walks down tree b."""
    b = cuda.grid(1)
    if b < tree.size.shape[0]:
        walk(tree, b, settings, buffers.scratch[b], buffers)


def _advance(tree, buffers):
    """Thread i plays the action that leads to leaf i and, unless the game is over, writes the network's input."""
    i = cuda.grid(1)
    if i < buffers.parents.shape[0] and buffers.parents[i] >= 0:
        num_nodes = tree.proven.shape[1]
        b = buffers.parents[i] // num_nodes
        parent, child = buffers.parents[i] % num_nodes, buffers.children[i] % num_nodes
        for word in range(tree.states.shape[2]):
            tree.states[b, child, word] = tree.states[b, parent, word]
        state = tree.states[b, child]
        step(state, buffers.actions[i])
        tree.to_play[b, child] = mover(state, following(tree.to_play[b, parent]))
        buffers.terminal[i] = is_terminal(state)
        if buffers.terminal[i]:
            write_result(state, buffers.results, i)
        else:
            describe(state, i, buffers)


def _advance_through_dice(tree, buffers, dice):
    """`_advance` in a game with dice: thread b goes on until no die is due, as `cpu_kernels.simulate` does."""
    b = cuda.grid(1)
    if b < tree.size.shape[0]:
        end = b + 1
        while buffers.parents[b] >= 0:
            advance_to_die(
                dice.states, dice.to_play, buffers.parents[b:end], buffers.actions[b:end], buffers.children[b:end],
                buffers.terminal[b:end], buffers.results[b:end], buffers.after[b:end], buffers.legal_masks[b:end],
                buffers.chances[b:end], dice.probabilities[b],
            )  # fmt: skip
            if buffers.chances[b, 0] == ZERO:
                break
            go_on(tree, b, b, buffers)
        if buffers.parents[b] >= 0 and not buffers.terminal[b]:
            show(dice.states[buffers.children[b]], b, buffers)


def _describe(state, i, buffers):
    """Writes the legal actions of leaf i, and row i of the network's input."""
    legal(state, buffers.legal_masks[i])
    show(state, i, buffers)


def _show(state, i, buffers):
    """Writes row i of the network's input, whose legal actions are there."""
    buffers.symmetries[i] = to_canonical(state, buffers.after[i], buffers.canonical[i])
    for action in range(buffers.priors.shape[1]):
        buffers.asked_masks[i, action] = buffers.legal_masks[i, buffers.permutations[buffers.symmetries[i], action]]
    planes = buffers.planes[i]
    for plane in range(planes.shape[0]):
        for row in range(planes.shape[1]):
            for column in range(planes.shape[2]):
                planes[plane, row, column] = np.float32(0.0)
    observe(buffers.canonical[i], planes)


def _take_leaves(tree, buffers, sees_wins):
    """Thread i reads the network's answer for leaf i."""
    i = cuda.grid(1)
    if i < buffers.parents.shape[0] and buffers.parents[i] >= 0 and not buffers.terminal[i]:
        num_nodes = tree.proven.shape[1]
        state = tree.states[buffers.parents[i] // num_nodes, buffers.children[i] % num_nodes]
        take_answer(state, i, buffers, sees_wins)


def _take_roots(tree, buffers, count, sees_wins):
    """Thread i reads the network's answer for the root of tree `trees[i]`, if that root is pending."""
    i = cuda.grid(1)
    if i < count and tree.proven[buffers.trees[i], ROOT] == PENDING:
        take_answer(tree.states[buffers.trees[i], ROOT], i, buffers, sees_wins)


def _take_answer(state, i, buffers, sees_wins):
    """Turns the canonical image's answer back to the position.

    With `sees_wins`, a position in which an action wins at once gets value 1, and such actions get all the weight.
    """
    for action in range(buffers.priors.shape[1]):
        buffers.priors[i, buffers.permutations[buffers.symmetries[i], action]] = buffers.answers[i, action]
    if not sees_wins:
        return
    found = False
    for action in range(buffers.priors.shape[1]):
        if buffers.legal_masks[i, action] and wins_by(state, action, buffers.after[i]):
            if not found:
                for other in range(buffers.priors.shape[1]):
                    buffers.priors[i, other] = np.float32(0.0)
            found = True
            buffers.priors[i, action] = np.float32(1.0)
    if found:
        buffers.values[i, 0] = np.float32(1.0)


def _expand_and_backup(tree, buffers, settings):
    """Thread b opens the new leaves of tree b and backs up their values."""
    b = cuda.grid(1)
    if b < tree.size.shape[0]:
        for i in range(b * settings.leaves_per_step, (b + 1) * settings.leaves_per_step):
            finish_walk(tree, b, i, buffers, i, buffers, settings)


def _move_roots(tree, buffers, count, num_kept):
    """Thread i moves the root of tree `trees[i]` and writes the network's input if that root is pending.

    There is one thread for every tree, and trees that are not in `trees` stop searching.
    """
    i = cuda.grid(1)
    if i < tree.size.shape[0]:
        tree.remaining[i] = 0
    if i < count:
        b, action = buffers.trees[i], buffers.root_actions[i]
        state, to_play = buffers.root_states[i], buffers.root_to_play[i]
        move_root(tree, b, action, state, to_play, num_kept, buffers.new_index[b])
        if tree.proven[b, ROOT] == PENDING:
            describe(tree.states[b, ROOT], i, buffers)


def _begin_roots(tree, buffers, count, seed, settings):
    """Thread i opens the root of tree `trees[i]` if it is pending, and begins its search."""
    i = cuda.grid(1)
    if i < count:
        budget, game, ply = buffers.budgets[i], buffers.games[i], buffers.plies[i]
        begin_root(tree, buffers.trees[i], buffers, i, budget, seed, game, ply, settings)


def _read_roots(tree, buffers, count, settings):
    """Thread i writes the result of the search in tree `trees[i]`."""
    i = cuda.grid(1)
    if i < count:
        buffers.best[i] = read_root(
            tree, buffers.trees[i], settings, buffers.visit_counts[i], buffers.policies[i], buffers.qs[i],
            buffers.root_values[i],
        )  # fmt: skip


class CudaKernels:
    """The search's kernels for one game; each is called as `kernel(threads, stream, tree, buffers, ...)`.

    They are compiled when they are first called, for the device that is current then.
    """

    def __init__(self, rules: BoundRules):
        made: dict[Callable[..., Any], Any] = {} if SIMULATED else {rounded_product.py_func: _rounded_product()}
        scope = dict(rules.scope)
        dice = "chance" in scope
        templates: list[Any] = [_wins_by, _to_canonical, _show, _describe, _take_answer, *[_advance_to_die] * dice]
        for template in templates:
            scope[template.__name__[1:]] = bound(template, scope)

        def kernel(template: Callable[..., Any]) -> Callable[..., None]:
            compiled = cuda.jit(with_callees(bound(template, scope), _for_cuda, made))

            def launch(threads: int, stream: Any, tree: Tree, buffers: SearchBuffers, *arguments: Any) -> None:
                compiled[max(1, -(-threads // BLOCK)), BLOCK, stream](tree, buffers, *arguments)

            return launch

        self.select = kernel(_select)
        self.advance = kernel(_advance_through_dice if dice else _advance)
        self.take_leaves = kernel(_take_leaves)
        self.take_roots = kernel(_take_roots)
        self.expand_and_backup = kernel(_expand_and_backup)
        self.move_roots = kernel(_move_roots)
        self.begin_roots = kernel(_begin_roots)
        self.read_roots = kernel(_read_roots)


def _for_cuda(function: types.FunctionType) -> Any:
    """A function that a kernel calls, compiled for the GPU; in the simulator it stays as it is."""
    return function if SIMULATED else cuda.jit(device=True)(function)


def _rounded_product() -> Any:
    """`tree.rounded_product` by an instruction that is never fused with a sum."""
    from numba.cuda import libdevice

    @cuda.jit(device=True)
    def product(a, b):
        return libdevice.fmul_rn(a, b)

    return product
