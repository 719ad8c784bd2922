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
ILLEGAL = np.float32(-np.inf)
"""The prior of an action that the rules forbid."""
SURE = np.float32(1e6)
"""The size of q of an action that is proven to win (+) or lose (-), beyond what exploration can outweigh."""
UNPROVEN = np.int8(2)
"""In place of a proven value -1, 0, +1: the exact value is not known."""
PENDING = np.int8(3)
"""In place of a proven value: the node waits for its evaluation."""
BETWEEN = np.int8(4)
"""In place of a proven value: the game is over, and its result, which stands in `raw_value`, is none of -1, 0, +1."""
ZERO, ONE = np.float32(0.0), np.float32(1.0)


class Tree(NamedTuple):
    """B trees of at most N nodes; node 0 is the root. A node's row of actions belongs to the player to move there.

    A is the number of actions, or of a die's outcomes if there are more.
    """

    states: Annotated[np.ndarray, "uint64[B, N, K]"]
    to_play: Annotated[np.ndarray, "int8[B, N]"]  # and DIE more where a die is due, whose outcomes are the actions
    proven: Annotated[np.ndarray, "int8[B, N]"]  # the exact value for the player to move, UNPROVEN or PENDING
    raw_value: Annotated[np.ndarray, "float32[B, N]"]  # the evaluation of the node itself
    node_visits: Annotated[np.ndarray, "float32[B, N]"]  # N(s) = 1 + the sum of N(s, a); 0 if the game is over
    node_value: Annotated[np.ndarray, "float32[B, N]"]  # the sum of those N(s) values, for the player to move
    visited_prior: Annotated[np.ndarray, "float32[B, N]"]  # the sum of P(s, a) over the visited actions
    parent: Annotated[np.ndarray, "int32[B, N]"]
    action: Annotated[np.ndarray, "int32[B, N]"]  # the parent's action that leads here
    prior: Annotated[np.ndarray, "float32[B, N, A]"]  # P(s, a), or ILLEGAL
    visits: Annotated[np.ndarray, "int32[B, N, A]"]  # N(s, a)
    q: Annotated[np.ndarray, "float32[B, N, A]"]  # mean value for the player who chooses a; once proven 0 or +-SURE
    child: Annotated[np.ndarray, "int32[B, N, A]"]  # node, or UNVISITED
    in_flight: Annotated[np.ndarray, "int32[B, N]"]  # walks under way through here, with several leaves per step
    action_proven: Annotated[np.ndarray, "int8[B, N, A]"]  # exact value for the player who chooses a, or UNPROVEN
    size: Annotated[np.ndarray, "int32[B]"]  # nodes in use
    budget: Annotated[np.ndarray, "int32[B]"]  # simulations of this search
    remaining: Annotated[np.ndarray, "int32[B]"]  # simulations still to come
    root_prior: Annotated[np.ndarray, "float32[B, A]"]  # the root's priors with noise
    root_gumbel: Annotated[np.ndarray, "float32[B, A]"]  # the Gumbel variates of this search
    lowest: Annotated[np.ndarray, "float32[B]"]  # the lowest value of an action so far, in a game for one
    highest: Annotated[np.ndarray, "float32[B]"]
    # a game for more than two: one entry for each of its S players, the first player's first; other games: S = 0
    seat_values: Annotated[np.ndarray, "float32[B, N, S]"]  # the evaluation of the node itself; exact once proven
    seat_sums: Annotated[np.ndarray, "float32[B, N, S]"]  # `node_value` for each player
    gains: Annotated[np.ndarray, "float32[B, S]"]  # the value that is being backed up


class KernelSettings(NamedTuple):
    """The settings of a search as its kernels take them; made by `SearchConfig.kernel_settings` for a game."""

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
    dice: bool | None  # the game has some
    alone: bool | None  # it is for one: values have no natural scale, and are those of the points from the root on
    seats: bool | None  # it is for more than two: see `Tree.seat_values`
    num_actions: int  # of a game with dice; a node has room for the more of both
    num_outcomes: int
    points_word: int  # of the states, or -1: see `Game`
    value_of_point: np.float32


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

    def part(self, array: Any, at: int | slice) -> Any:
        """`array[:, :, at]`, a view."""
        return array[:, :, at]


HOST = Memory()
Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


def make_arrays(
    kind: type[Arrays],
    zeros: Callable[[tuple[int, ...], Any], Any],
    made: Mapping[str, Any] = MappingProxyType({}),
    /,
    **sizes: int | tuple[int, ...],
) -> Arrays:
    """The arrays of a named tuple whose fields are `Annotated[..., "float32[A]"]`; `sizes` has those of the letters.

    Those that are `made` already are taken as they are.
    """
    arrays = dict(made)
    for name, hint in get_type_hints(kind, include_extras=True).items():
        dtype, *letters = re.findall(r"\w+", hint.__metadata__[0])
        if name not in arrays:
            shape = np.concatenate([np.atleast_1d(int(x) if x.isdigit() else sizes[x]) for x in letters])
            arrays[name] = zeros(tuple(shape.tolist()), np.dtype(dtype))
    return kind(**arrays)


def make_tree(
    num_trees: int, num_nodes: int, num_actions: int, state_words: int, memory: Memory = HOST, num_seats: int = 0
) -> Tree:
    """`num_trees` empty trees with room for `num_nodes` nodes each; a node is written when it is opened.

    All that a walk reads at a node lies side by side in one block of 32-bit words, so that it is fetched from memory at
    once: a third faster at 200 simulations than an array for each field.
    """
    words = memory.zeros((num_trees, num_nodes, 4 * num_actions + 6), np.float32)
    counts, last = words.view(np.int32), 4 * num_actions
    rows, numbers = ("prior", "visits", "q", "child"), ("raw_value", "node_visits", "node_value", "visited_prior")
    places: dict[str, int | slice] = {
        name: slice(i * num_actions, (i + 1) * num_actions) for i, name in enumerate(rows)
    }
    places |= {name: last + i for i, name in enumerate((*numbers, "parent", "action"))}
    whole = {"visits", "child", "parent", "action"}
    block = {name: memory.part(counts if name in whole else words, place) for name, place in places.items()}
    sizes = {"B": num_trees, "N": num_nodes, "A": num_actions, "K": state_words, "S": num_seats}
    return make_arrays(Tree, memory.zeros, block, **sizes)


def make_step(tree: Tree, settings: KernelSettings, num_actions: int, num_outcomes: int = 0) -> Step:
    """A step of the trees with its memory; no walk is under way."""
    (num_trees, _, width), state_words = tree.prior.shape, tree.states.shape[2]
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
    """The most nodes that a simulation makes, and the entries that a node's row of actions has.

    With dice, those before the leaf have nodes of their own, whose outcomes stand in the place of actions.
    """
    return 1 + (game.dice_in_a_row if game.num_outcomes else 0), max(game.num_actions, game.num_outcomes)


def tree_for(game: Game, num_trees: int, num_nodes: int, memory: Memory = HOST) -> Tree:
    """`make_tree` for a game."""
    seats = sum(game.value_shape)
    return make_tree(num_trees, num_nodes, room_of(game)[1], game.state_words, memory, seats)


def bytes_of_simulation(game: Game) -> int:
    """The memory of the nodes that one simulation makes."""
    count, _ = room_of(game)
    few, more = (sum(array.nbytes for array in tree_for(game, 1, nodes)) for nodes in (1, 1 + count))
    return more - few


@inlined
def rounded_product(a, b):
    """a * b rounded to float32, before a sum.

    A GPU would compute product and sum in one operation and round once. `cuda_kernels` replaces this function by an
    instruction that rounds the product, so trees are the same there.
    """
    return a * b
