"""B search trees side by side in arrays.

The functions that grow them know no game and no network: `selection` walks down, `backup` opens leaves and backs up
their values, `roots` begins and reads a search. Each works on one tree, and runs on the processor (`cpu_kernels`) and
on a GPU (`cuda_kernels`). All arithmetic on values is float32, in a fixed order, so a tree is the same alone or among
others, compiled or as plain Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

import numpy as np

from alphazero.game import Game
from alphazero.game.kernels import inlined

ROOT = 0
UNVISITED = -1
SURE = np.float32(1e6)
"""The size of q of an action that is proven to win (+) or lose (-), beyond what exploration can outweigh."""
UNPROVEN = np.int8(2)
"""In place of a proven value -1, 0, +1: the exact value is not known."""
PENDING = np.int8(3)
"""In place of a proven value: the node waits for its evaluation."""
BETWEEN = np.int8(4)
"""In place of a proven value: the game is over, and its result, which stands in `raw_value`, is none of -1, 0, +1."""
EDGE = 5
"""The words of an edge in the memory of a tree."""
KNOWN_BITS = 2
"""The lowest bits of an edge's word `action` hold its exact value."""
KNOWN_MASK = (1 << KNOWN_BITS) - 1
ZERO, ONE = np.float32(0.0), np.float32(1.0)


class Tree(NamedTuple):
    """B trees of at most N nodes and E edges; node 0 is the root. An edge is a legal action of the player to move at a
    node, or an outcome of the die that is due there.

    An edge is known by the place of its first word, so that what belongs to it stands in the arrays at one index. The
    edges of a node lie side by side, EDGE words apart, in the order of their actions; those of the root are the first
    of the tree. W is the most that a node can have.
    """

    states: Annotated[np.ndarray, "uint64[B, N, K]"]
    to_play: Annotated[np.ndarray, "int8[B, N]"]  # and DIE more where a die is due, whose outcomes are the actions
    proven: Annotated[np.ndarray, "int8[B, N]"]  # the exact value for the player to move, UNPROVEN or PENDING
    raw_value: Annotated[np.ndarray, "float32[B, N]"]  # the evaluation of the node itself
    node_visits: Annotated[np.ndarray, "float32[B, N]"]  # N(s) = 1 + the sum of N(s, a); 0 if the game is over
    node_value: Annotated[np.ndarray, "float32[B, N]"]  # the sum of those N(s) values, for the player to move
    visited_prior: Annotated[np.ndarray, "float32[B, N]"]  # the sum of P(s, a) over the visited actions
    parent: Annotated[np.ndarray, "int32[B, N]"]
    num_edges: Annotated[np.ndarray, "int32[B, N]"]  # 0: nobody is to move, or no room: see `expansion.expand`
    first_edge: Annotated[np.ndarray, "int64[B, N]"]
    edge: Annotated[np.ndarray, "int64[B, N]"]  # the parent's edge that leads here
    in_flight: Annotated[np.ndarray, "int32[B, N]"]  # walks under way through here, with several leaves per step
    edges: Annotated[np.ndarray, "int32[B, E, 5]"]  # the memory of those below
    prior: Annotated[np.ndarray, "float32[]"]  # P(s, a)
    visits: Annotated[np.ndarray, "int32[]"]  # N(s, a)
    q: Annotated[np.ndarray, "float32[]"]  # mean value for the player who chooses a; once proven 0 or +-SURE
    child: Annotated[np.ndarray, "int32[]"]  # node, or UNVISITED
    action: Annotated[np.ndarray, "int32[]"]  # see `action_of` and `known_of`
    size: Annotated[np.ndarray, "int32[B]"]  # nodes in use
    next_edge: Annotated[np.ndarray, "int64[B]"]  # the first edge that is not in use
    budget: Annotated[np.ndarray, "int32[B]"]  # simulations of this search
    remaining: Annotated[np.ndarray, "int32[B]"]  # simulations still to come
    root_prior: Annotated[np.ndarray, "float32[B, W]"]  # the root's priors with noise, edge after edge
    root_gumbel: Annotated[np.ndarray, "float32[B, W]"]  # the Gumbel variates of this search, likewise
    lowest: Annotated[np.ndarray, "float32[B]"]  # the lowest value of an action so far, in a game for one
    highest: Annotated[np.ndarray, "float32[B]"]
    # a game for more than two: one entry for each of its S players, the first player's first; other games: S = 0
    seat_values: Annotated[np.ndarray, "float32[B, N, S]"]  # the evaluation of the node itself; exact once proven
    seat_sums: Annotated[np.ndarray, "float32[B, N, S]"]  # `node_value` for each player
    gains: Annotated[np.ndarray, "float32[B, S]"]  # the value that is being backed up


class KernelSettings(NamedTuple):
    """The settings of a search as its kernels take them; made by `SearchConfig.settings_for` a game."""

    leaves_per_step: int
    c_puct: np.float32
    fpu_reduction: np.float32
    max_considered: int  # actions of sequential halving at the root; 0: PUCT there too
    visit_offset: np.float32
    value_scale: np.float32
    prior_exponent: float  # 1 / temperature of the priors below the root
    root_prior_exponent: float
    noise_fraction: np.float32  # of Dirichlet noise in the root's priors
    noise_total: float
    draws_gumbel: bool
    prove: bool
    # None in place of False: of such a type, and the compiled code has no branch for it
    dice: bool | None = None  # the game has some
    alone: bool | None = None  # it is for one: values have no natural scale, and are of the points from the root on
    seats: bool | None = None  # it is for more than two: see `Tree.seat_values`
    lots: bool | None = None  # there players draw lots among equal actions: see `backup.weigh_equals`
    points_word: int = -1  # of the states, or -1: see `Game`
    value_of_point: np.float32 = ZERO


class Walks(NamedTuple):
    """The walks of one step, L of them: entry b * `leaves_per_step` + l is walk l of tree b.

    `cuda_kernels.SearchBuffers` has arrays of the same names and serves in its place.
    """

    parents: Annotated[np.ndarray, "int64[L]"]  # row b * N + node of the leaf's parent, or -1 if the leaf is not new
    actions: Annotated[np.ndarray, "int64[L]"]  # the action from the parent to a new leaf
    children: Annotated[np.ndarray, "int64[L]"]  # row of a new leaf, or -1
    leaves: Annotated[np.ndarray, "int64[L]"]  # node, -1 if the budget is spent, -2 - node if that node is pending
    terminal: Annotated[np.ndarray, "bool[L]"]  # the game is over at the new leaf
    results: Annotated[np.ndarray, "float32[L, V]"]  # and the result there: see `Game.value_shape`
    chances: Annotated[np.ndarray, "float32[L, C]"]  # probabilities of the die that is due at the leaf; else 0 first


class LeafAnswers(NamedTuple):
    """The network's answers about L new leaves; `SearchBuffers` serves in its place as well."""

    legal_masks: Annotated[np.ndarray, "bool[L, A]"]
    priors: Annotated[np.ndarray, "float32[L, A]"]  # weights of any sum
    values: Annotated[np.ndarray, "float32[L, V]"]  # see `Game.value_shape`


class Step(NamedTuple):
    """All that a step of B searches reads and writes, apart from the network's answers; L = `leaves_per_step`."""

    tree: Tree
    settings: KernelSettings
    walks: Walks
    scratch: np.ndarray  # float32[A]
    states: np.ndarray  # uint64[B * N, K]: those of the tree, in one row
    to_play: np.ndarray  # int8[B * N]: likewise
    leaf_states: np.ndarray  # uint64[B * L, K]: the new leaves that need a network, packed
    leaf_masks: np.ndarray  # bool[B * L, A]: their legal actions
    probabilities: np.ndarray  # float64[C]: scratch space


class Memory:
    """The processor's memory; a subclass is a GPU's."""

    def zeros(self, shape: tuple[int, ...], kind: Any) -> Any:
        """An array of zeros."""
        return np.zeros(shape, kind)

    def part(self, words: Any, kind: np.dtype[Any], at: int) -> Any:
        """`words[:, :, at]` of 32-bit words as numbers of a kind, a view."""
        return words.view(kind)[:, :, at]

    def tail(self, words: Any, kind: np.dtype[Any], at: int) -> Any:
        """All of the 32-bit words but the first `at`, in one row, as numbers of a kind, a view."""
        return words.view(kind).reshape(-1)[at:]


HOST = Memory()
Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def fields_of(kind: type[tuple[Any, ...]]) -> dict[str, tuple[np.dtype[Any], list[str]]]:
    """The fields of a named tuple, which are `Annotated[..., "float32[A]"]`: the type and the letters of each."""
    hints = get_type_hints(kind, include_extras=True)
    words = {name: re.findall(r"\w+", hint.__metadata__[0]) for name, hint in hints.items()}
    return {name: (np.dtype(dtype), letters) for name, (dtype, *letters) in words.items()}


def make_arrays(
    kind: type[Arrays],
    zeros: Callable[[tuple[int, ...], Any], Any],
    made: Mapping[str, Any] = MappingProxyType({}),
    /,
    **sizes: int | tuple[int, ...],
) -> Arrays:
    """The arrays of a named tuple as `fields_of` finds them; `sizes` has those of the letters.

    Those that are `made` already are taken as they are.
    """
    arrays = dict(made)
    for name, (dtype, letters) in fields_of(kind).items():
        if name not in arrays:
            shape = np.concatenate([np.atleast_1d(int(x) if x.isdigit() else sizes[x]) for x in letters])
            arrays[name] = zeros(tuple(shape.tolist()), dtype)
    return kind(**arrays)


BLOCKS = (
    ("raw_value", "node_visits", "node_value", "visited_prior", "parent", "num_edges"),
    ("prior", "visits", "q", "child", "action"),
)
"""All that a walk reads at a node, or of an edge, lies side by side, so that it is fetched from memory at once: a third
faster at 200 simulations than an array for each field."""


def make_tree(
    num_trees: int,
    num_nodes: int,
    width: int,
    state_words: int,
    memory: Memory = HOST,
    num_seats: int = 0,
    edges_of_node: int | None = None,
) -> Tree:
    """`num_trees` empty trees with room for `num_nodes` nodes each; a node is written when it is opened.

    `width` is the most edges that a node can have, `edges_of_node` the number for which there is room on average.
    """
    sizes = {"N": num_nodes, "E": max(width, num_nodes * (edges_of_node or width))}
    kinds = {name: kind for name, (kind, _) in fields_of(Tree).items()}
    words, edges = (
        memory.zeros((num_trees, size, len(names)), np.dtype(np.int32))
        for names, size in zip(BLOCKS, sizes.values(), strict=True)
    )
    made = {name: memory.part(words, kinds[name], at) for at, name in enumerate(BLOCKS[0])}
    made |= {"edges": edges} | {name: memory.tail(edges, kinds[name], at) for at, name in enumerate(BLOCKS[1])}
    return make_arrays(Tree, memory.zeros, made, **sizes, B=num_trees, W=width, K=state_words, S=num_seats)


def make_step(tree: Tree, settings: KernelSettings, num_actions: int, num_outcomes: int = 0) -> Step:
    """A step of the trees with its memory; no walk is under way."""
    (num_trees, width), state_words = tree.root_prior.shape, tree.states.shape[2]
    entries = num_trees * settings.leaves_per_step
    walks = make_arrays(Walks, HOST.zeros, L=entries, C=num_outcomes, V=max(1, tree.gains.shape[1]))
    walks.parents[:] = walks.leaves[:] = -1
    return Step(
        tree, settings, walks,
        scratch=np.zeros(width, np.float32),
        states=tree.states.reshape(-1, state_words),
        to_play=tree.to_play.reshape(-1),
        leaf_states=np.zeros((entries, state_words), np.uint64),
        leaf_masks=np.zeros((entries, num_actions), bool),
        probabilities=np.zeros(num_outcomes),
    )  # fmt: skip


def room_of(game: Game) -> tuple[int, int]:
    """The most nodes that a simulation makes, and the most edges that a node has.

    With dice, those before the leaf have nodes of their own, whose outcomes stand in the place of actions.
    """
    return 1 + (game.dice_in_a_row if game.num_outcomes else 0), max(game.num_actions, game.num_outcomes)


def tree_for(game: Game, num_trees: int, num_nodes: int, memory: Memory = HOST) -> Tree:
    """`make_tree` for a game."""
    (nodes, width), mean = room_of(game), game.mean_legal
    if mean is not None:
        mean = -(-(mean + (nodes - 1) * game.num_outcomes) // nodes)
    return make_tree(num_trees, num_nodes, width, game.state_words, memory, sum(game.value_shape), mean)


def edges_below(tree: Tree, b: int, node: int) -> np.ndarray:
    """The edges `int64[n]` of a node, as `selection.edges_of` has them, for indexing by numpy."""
    return tree.first_edge[b, node] + EDGE * np.arange(tree.num_edges[b, node])


def unpacked(actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`action_of` and `known_of` of the words `action` of edges, two arrays of integers."""
    return actions >> KNOWN_BITS, (actions & KNOWN_MASK) - 1


def bytes_of_simulation(game: Game) -> int:
    """The memory of the nodes that one simulation makes."""
    count, _ = room_of(game)
    sizes = []
    for nodes in (1000, 1000 + count):
        owners = [array if array.base is None else array.base for array in tree_for(game, 1, nodes)]
        sizes.append(sum({id(owner): owner.nbytes for owner in owners}.values()))
    return sizes[1] - sizes[0]


@inlined
def action_of(tree, edge):
    """The action of an edge, or the outcome."""
    return np.int64(tree.action[edge] >> KNOWN_BITS)


@inlined
def known_of(tree, edge):
    """The exact value of an edge for the player who chooses it, -1, 0 or 1, or UNPROVEN."""
    return np.int8((tree.action[edge] & KNOWN_MASK) - 1)


@inlined
def set_known(tree, edge, known):
    """Keeps the exact value of an edge."""
    tree.action[edge] = (tree.action[edge] & ~KNOWN_MASK) | (known + 1)


@inlined
def rounded_product(a, b):
    """a * b rounded to float32, before a sum.

    A GPU would compute product and sum in one operation and round once. `cuda_kernels` replaces this function by an
    instruction that rounds the product, so trees are the same there.
    """
    return a * b
