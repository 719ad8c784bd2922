"""One game, and the search of one tree, as a WebAssembly module: the third target of the same functions.

The templates below call the rules by their names, as those of `game.kernels` do, and the functions of `search` that run
on the processor and on a GPU. `ModuleBuilder` gives them these names, and those of the module's own functions and
arrays (`page()`, `scratch()`, `tree()`, `walks()`, `answers()`). All arrays lie at fixed places of the module's memory.
A page calls the entry points and reads the arrays; `GameModule.places` says where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numba import types

from alphazero.errors import GameError
from alphazero.game import Game
from alphazero.game.functions import bound, rebuilt, rule_functions
from alphazero.game.kernels import DIE, Kernels, _advance, _advance_to_die, _to_canonical, _wins_by, reason_of
from alphazero.search.backup import finish_walk, seat_mean
from alphazero.search.cpu_kernels import read_line
from alphazero.search.mcts import QUIET, SearchConfig
from alphazero.search.roots import begin_root, find_edge, move_root, read_root
from alphazero.search.selection import edges_of, walk
from alphazero.search.tree import (
    BETWEEN,
    PENDING,
    ROOT,
    UNPROVEN,
    Arrays,
    LeafAnswers,
    Walks,
    action_of,
    bytes_of_simulation,
    known_of,
    make_arrays,
    room_of,
    tree_for,
)
from alphazero.wasm.compiler import EntryPoint, Layout, compile_module, compiled_as
from alphazero.wasm.dice import Dice, describe_with_die, reach_leaf_through_dice, settle_die, throw

MOST_SIMULATIONS = 20_000
"""Simulations of one search, if so many nodes fit into MOST_BYTES."""
MOST_BYTES = 1 << 26

Template = Callable[..., Any]


class Page(NamedTuple):
    """The arrays that the page reads. W is A, or the most outcomes of a die if there are more."""

    state: Annotated[np.ndarray, "uint64[K]"]  # the position
    to_play: Annotated[np.ndarray, "int8[1]"]
    legal_mask: Annotated[np.ndarray, "bool[A]"]  # all false when the game is over
    planes: Annotated[np.ndarray, "float32[P]"]  # the position as the network sees it
    result: Annotated[np.ndarray, "float32[1, V]"]  # when the game is over: see `Game.value_shape`
    visits: Annotated[np.ndarray, "int32[W]"]  # of the last search, or of the node that was looked at
    policy: Annotated[np.ndarray, "float32[W]"]
    q: Annotated[np.ndarray, "float32[W]"]
    value: Annotated[np.ndarray, "float32[V]"]  # the value of the searched position
    proven: Annotated[np.ndarray, "bool[1]"]  # the value is the exact result
    line: Annotated[np.ndarray, "int32[line]"]  # the expected play
    prior: Annotated[np.ndarray, "float32[W]"]  # of the node that was looked at, 0 where an action is not legal
    child: Annotated[np.ndarray, "int32[W]"]  # the nodes below it, -1 where there is none yet
    known: Annotated[np.ndarray, "int8[W]"]  # the exact result of each action for who plays it, or UNPROVEN


class Scratch(NamedTuple):
    """Arrays that the search alone uses."""

    root: Annotated[np.ndarray, "uint64[K]"]  # the searched position, or its smallest mirror image
    symmetry: Annotated[np.ndarray, "int64[1]"]  # by which symmetry it is one
    image: Annotated[np.ndarray, "uint64[K]"]
    canonical: Annotated[np.ndarray, "uint64[K]"]
    leaf_states: Annotated[np.ndarray, "uint64[1, K]"]
    completed: Annotated[np.ndarray, "float32[W]"]
    weights: Annotated[np.ndarray, "float32[A]"]  # the network's answer about it
    own_mask: Annotated[np.ndarray, "bool[A]"]  # the legal actions of the mirror image
    considered: Annotated[np.ndarray, "int64[1]"]  # actions that sequential halving considers in the search for a move
    new_index: Annotated[np.ndarray, "int32[N]"]
    visits: Annotated[np.ndarray, "int32[W]"]  # before they are turned back from the mirror image
    policy: Annotated[np.ndarray, "float32[W]"]
    q: Annotated[np.ndarray, "float32[W]"]


def _start():
    """Sets up the start position."""
    here = page()
    here.state[:] = np.uint64(0)
    init(here.state)
    here.to_play[0] = mover(here.state, np.int8(0))


def _play(action):
    """Plays a legal action."""
    here = page()
    step(here.state, np.int64(action))
    here.to_play[0] = mover(here.state, following(here.to_play[0]))


def _describe():
    """Writes the legal actions and the result; returns whether the game is over."""
    here = page()
    over = is_terminal(here.state)
    here.result[:] = np.float32(0.0)
    here.legal_mask[:] = False
    if over:
        write_result(here.state, here.result, 0)
    else:
        legal(here.state, here.legal_mask)
    return np.int32(1 if over else 0)  # a rule may give any number that is not 0, and cutting its bits off could give 0


def _observe():
    """Writes the observation."""
    planes = page().planes
    planes[:] = np.float32(0.0)
    observe(page().state, planes)


def _settings():
    """The settings of an analysis."""
    return QUIET_SETTINGS


def open_tree(simulations, seed, ply):
    """Begins a search of the scratch's root, which is not terminal."""
    own, one_tree, given = scratch(), tree(), answers()
    move_root(one_tree, 0, -1, own.root, page().to_play[0], 0, own.new_index)
    legal(own.root, given.legal_masks[0])
    evaluate(own.root, given.legal_masks[0], given.priors[0], given.values[0])
    budget = np.int32(min(simulations, len(own.new_index) - 1))
    begin_root(one_tree, 0, given, 0, budget, seed, seed, ply, settings())


def _begin(simulations):
    """Begins a search of the position, where a player is to move.

    It searches the smallest mirror image; the position itself with dice, whose outcomes the page knows by number, and
    where the state has a history, which has no mirror images.
    """
    own = scratch()
    if HAS_DICE or HISTORY_WORDS:
        own.symmetry[0] = 0
        for word in range(len(own.root)):
            own.root[word] = page().state[word]
    else:
        own.symmetry[0] = to_canonical(page().state, own.image, own.root)
    open_tree(simulations, 0, 0)


def _reach_leaf(one_tree, own, given, steps):
    """Plays the action that leads to the new leaf; returns 1 if it needs the network."""
    return advance(
        one_tree.states[0], one_tree.to_play[0], steps.parents, steps.actions, steps.children, steps.terminal,
        steps.results, own.leaf_states, given.legal_masks,
    )  # fmt: skip


def run_simulations(simulations):
    """Adds up to so many simulations; returns how many the search still has to do."""
    own, one_tree, given, steps = scratch(), tree(), answers(), walks()
    for _ in range(simulations):
        if one_tree.remaining[0] == 0:
            break
        walk(one_tree, 0, settings(), own.completed, steps)
        if reach_leaf(one_tree, own, given, steps) > 0:
            evaluate(own.leaf_states[0], given.legal_masks[0], given.priors[0], given.values[0])
        finish_walk(one_tree, 0, 0, steps, 0, given, settings())
    return np.int32(one_tree.remaining[0])


def read_tree():
    """Writes the result of the search; returns the best action."""
    here, own, one_tree = page(), scratch(), tree()
    best = read_root(one_tree, 0, settings(), own.visits, own.policy, own.q, here.value)
    here.proven[0] = one_tree.proven[0, ROOT] != UNPROVEN
    turned = PERMUTATIONS[own.symmetry[0]]
    for action in range(len(turned)):
        here.visits[turned[action]] = own.visits[action]
        here.policy[turned[action]] = own.policy[action]
        here.q[turned[action]] = own.q[action]
    return np.int32(turned[best])


def _line(action):
    """Writes the expected play that begins with an action of the position; returns its length."""
    here, own, one_tree = page(), scratch(), tree()
    turned, first = PERMUTATIONS[own.symmetry[0]], 0
    while turned[first] != action:
        first += 1
    here.line[0] = first
    length = 1 + read_line(one_tree, 0, one_tree.child[find_edge(one_tree, 0, first)], here.line[1:])
    for i in range(length):
        here.line[i] = turned[here.line[i]]
    return np.int32(length)


def _look(node):
    """Writes what the search knows of a node, 0 for the root; returns whether actions were searched or can be there."""
    here, one_tree = page(), tree()
    turned = PERMUTATIONS[scratch().symmetry[0]]
    proven = one_tree.proven[0, node]
    here.proven[0] = proven != UNPROVEN and proven != PENDING
    open_node = proven != PENDING and one_tree.node_visits[0, node] > 0
    here.value[0] = one_tree.node_value[0, node] / one_tree.node_visits[0, node] if open_node else np.float32(0.0)
    if here.proven[0]:
        here.value[0] = one_tree.raw_value[0, node] if proven == BETWEEN else np.float32(proven)
    if HAS_SEATS and (open_node or here.proven[0]):
        for i in range(len(here.value)):
            seat = (one_tree.to_play[0, node] % DIE + i) % len(here.value)
            here.value[i] = seat_mean(one_tree, 0, node, seat)
    here.visits[:], here.child[:], here.known[:] = 0, -1, UNPROVEN
    here.prior[:] = here.q[:] = np.float32(0.0)
    for edge in edges_of(one_tree, 0, node):
        if not open_node:
            break
        action = action_of(one_tree, edge)
        to = turned[action] if action < len(turned) else action
        here.visits[to] = one_tree.visits[edge]
        here.prior[to] = one_tree.prior[edge]
        here.q[to] = one_tree.q[edge]
        here.child[to] = one_tree.child[edge]
        here.known[to] = known_of(one_tree, edge)
    return np.int32(open_node)


def evaluate_by_network(state, legal_mask, priors, values):
    """The network's answer about a position of a game for two: writes weights of the legal actions, and the value.

    Where actions win at once they get all the weight, and the network is not asked.
    """
    own, found = scratch(), False
    for action in range(len(priors)):
        wins = legal_mask[action] and wins_by(state, action, own.image)
        priors[action] = np.float32(1.0) if wins else np.float32(0.0)
        found = found or wins
    if found:
        values[0] = 1.0
    else:
        opinion(state, legal_mask, priors, values)


def opinion_of_network(state, legal_mask, priors, values):
    """The same for any number of players, where wins do not matter. The network sees the smallest mirror image."""
    own = scratch()
    turned = PERMUTATIONS[to_canonical(state, own.image, own.canonical)]
    planes = page().planes
    planes[:] = np.float32(0.0)
    observe(own.canonical, planes)
    for action in range(len(priors)):
        own.own_mask[action] = legal_mask[turned[action]]
    ask_network(planes, own.own_mask, own.weights, values)
    for action in range(len(priors)):
        priors[turned[action]] = own.weights[action]


@dataclass(frozen=True)
class GameModule:
    """A module, and where its arrays are."""

    module: bytes
    places: dict[str, tuple[str, int, int]]
    """By name: numpy's name of the type, the address, the number of entries."""
    most_simulations: int
    """Simulations of one search at most."""


class ModuleBuilder:
    """Collects the entry points of one game's module; raises GameError for rules that numba does not compile.

    >>> import alphazero as az
    >>> from alphazero.wasm.engine import ModuleBuilder
    >>> engine = ModuleBuilder(az.load_game("tictactoe")).build()
    >>> engine.module[:4], engine.places["legal_mask"][2]
    (b'\x00asm', 9)
    """

    def __init__(self, game: Game):
        if not game.compiled:
            raise GameError(
                f"the rules of {game.name} run as Python objects, which a web page cannot run: write them as scalar "
                "functions that numba compiles (docs/guides/writing_rules.md)"
            )
        self.game, self.layout = game, Layout()
        self._made: dict[Template, Any] = {}
        self._entry_points: dict[str, EntryPoint] = {}
        self._most_simulations = 0
        self._sizes: dict[str, Any] = {
            "A": game.num_actions, "K": game.state_words, "P": game.observation_shape, "V": game.num_values,
            "W": room_of(game)[1], "C": max(1, game.num_outcomes), "D": game.dice_in_a_row,
        }  # fmt: skip
        self.page = self.arrays(Page, line=game.max_plies + 1)
        self.readable: dict[str, np.ndarray] = self.page._asdict()
        """The arrays that the page knows by name."""
        kernels = Kernels(game)
        # a rule that divides by zero stops the module, as it stops the program
        for rule in rule_functions(game.rules).values():
            rebuilt(rule, compiled_as("python"), self._made)
        self._scope = dict(kernels.scope)
        self.name(page=self.layout.placed(self.page), PERMUTATIONS=kernels.symmetries[1])
        self.name(HAS_DICE=game.num_outcomes > 0, HAS_SEATS=bool(game.value_shape))
        self.bind(_wins_by, _advance, _to_canonical)
        self.add("start", _start)
        self.add("play", _play, types.int32)
        if game.num_outcomes:
            arrays = self.arrays(Dice)
            self.readable |= {"chances": arrays.chances, "outcomes": arrays.outcomes}
            self.name(dice=self.layout.placed(arrays))
            self.bind(_advance_to_die, _describe)
            self.add("settle", settle_die, types.int32)
            self.add("throw", throw, types.int32, types.int32)
        self.add("describe", describe_with_die if game.num_outcomes else _describe)
        self.add("observe", _observe)

    def arrays(self, kind: type[Arrays], **sizes: int) -> Arrays:
        """Arrays in the module's memory, as `make_arrays` makes them; A, K and P are known."""
        return make_arrays(kind, self.layout.zeros, **self._sizes | sizes)

    def name(self, **values: Any) -> None:
        """Makes values known to the templates that are added later."""
        self._scope |= values

    def bind(self, *templates: Template, **named: Template) -> None:
        """Makes templates known by their names less the underscore, or by others; each knows those before it."""
        for name, template in ({each.__name__.lstrip("_"): each for each in templates} | named).items():
            self._scope[name] = self._bound(template)

    def _bound(self, template: Template) -> Template:
        """The template with the rules and all that has a name by now; a compiled function stays as it is."""
        return template if hasattr(template, "py_func") else bound(template, self._scope)

    def add(self, name: str, template: Template, *arguments: Any) -> None:
        """Adds an entry point that takes numbers of these types of numba's."""
        function = rebuilt(self._bound(template), compiled_as("numpy"), self._made)
        self._entry_points[name] = function, arguments

    def add_search(self, evaluate: Template, config: SearchConfig = QUIET, opinion: Template | None = None) -> None:
        """Adds the search of the position, PUCT without noise; `num_simulations` and `leaves_per_step` do not matter.

        `evaluate(state uint64[K], legal_mask bool[A], priors float32[A], values float32[V])` answers for new leaves: it
        writes weights of the actions and the value. `opinion` is the same for who plays without a search; None:
        `evaluate`.
        """
        game = self.game
        self._most_simulations = max(1, min(MOST_SIMULATIONS, MOST_BYTES // bytes_of_simulation(game)))
        nodes = 1 + self._most_simulations * room_of(game)[0]
        scratch, walks = self.arrays(Scratch, N=nodes), self.arrays(Walks, L=1)
        answers, tree = self.arrays(LeafAnswers, L=1), tree_for(game, 1, nodes, self.layout)
        placed = self.layout.placed
        self.name(scratch=placed(scratch), walks=placed(walks), answers=placed(answers), tree=placed(tree))
        quiet = replace(config, noise_fraction=0.0, gumbel_actions=0, leaves_per_step=1)
        self.name(QUIET_SETTINGS=quiet.settings_for(game))
        self.bind(_settings, reach_leaf=reach_leaf_through_dice if game.num_outcomes else _reach_leaf)
        self.bind(opinion=opinion or evaluate, evaluate=evaluate, open_tree=open_tree)
        self.add("begin", _begin, types.int32)
        self.add("search", run_simulations, types.int32)
        self.add("read", read_tree)
        self.add("line", _line, types.int32)
        self.add("look", _look, types.int32)

    def build(self) -> GameModule:
        """Compiles the module; raises GameError if numba cannot."""
        try:
            module = compile_module(self._entry_points, self.layout.size)
        except (GameError, OSError):
            raise
        except Exception as error:  # not all that numba raises is a NumbaError
            raise GameError(
                f"numba cannot compile the rules of {self.game.name}, so a web page cannot run them: {reason_of(error)}"
            ) from error
        places = {
            name: (array.dtype.name, self.layout.address(array), array.size) for name, array in self.readable.items()
        }
        return GameModule(module, places, self._most_simulations)
