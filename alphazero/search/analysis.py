"""Searches of one position: `search_position` runs a whole search, and `Analysis` can be read while it runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

import numpy as np

from alphazero.catalogue import registry
from alphazero.errors import IllegalAction, InvalidSetting, NetError, quote
from alphazero.game import Game, Position
from alphazero.game.kernels import DIE, Kernels, kernels_of
from alphazero.game.record import words_of
from alphazero.game.rules import by_player
from alphazero.nets.neural_net import NeuralNet, check_net, on_one_thread
from alphazero.search import cpu_kernels
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import QUIET, Evaluate, SearchConfig, SearchResult, grows_anew
from alphazero.search.placement import on_processor
from alphazero.search.tree import (
    BETWEEN,
    PENDING,
    ROOT,
    UNPROVEN,
    UNVISITED,
    Tree,
    edges_below,
    unpacked,
)
from alphazero.settings import check_range

LEAVES = 8
"""Leaves of one tree that a network evaluates at once: a few take it little longer than one."""
SIMULATIONS_PER_LEAF = 25
"""A short search has fewer leaves in flight, since each is chosen before the values of the others are known."""


@dataclass(frozen=True, eq=False)
class Found:
    """The result of searching one position.

    >>> import alphazero as az
    >>> game = az.load_game("connect4")
    >>> found = az.search(game.position("4453"), az.load_net("best", game), simulations=100)
    >>> int(found.visits.sum()), found.best == found.line[0]
    (100, True)
    >>> picture = found.svg()  # a notebook shows it by itself
    """

    position: Position
    best: int
    """The best action."""
    policy: np.ndarray
    """`float32[A]`: the share of each action, sums to 1; 0 on illegal actions and on proven mistakes."""
    visits: np.ndarray
    """`int32[A]`: simulations spent on each action."""
    q: np.ndarray
    """`float32[A]` in [-1, 1]: the value of each action for the player to move; nan on illegal actions."""
    value: float
    """The position's value in [-1, 1] for the player to move."""
    values: tuple[float, ...]
    """Its value for each player, the first player's first."""
    proven: bool
    """`value` is the exact result with perfect play: -1, 0 or 1."""
    line: tuple[int, ...]
    """The best action and the expected play after it."""

    def __repr__(self) -> str:
        words = words_of(self.position, self.line)
        return (
            f"<Found {words[0]}: value {self.value:+.3f}{', proven' * self.proven}, "
            f"{self.visits[self.best]} of {self.visits.sum()} simulations, line {' '.join(words)}>"
        )

    def svg(self) -> str:
        """A picture of the position: visits as shading, the values of the visited actions as numbers."""
        visited = np.flatnonzero(self.visits)
        return self.position.svg(
            policy={int(action): int(self.visits[action]) for action in visited},
            values={int(action): float(self.q[action]) for action in visited},
        )

    _repr_svg_ = svg


def search_position(
    position: Position,
    net: NeuralNet | Evaluate,
    simulations: int | None = None,
    config: SearchConfig | None = None,
    seed: int = 0,
) -> Found:
    """Searches one position on the processor, with a network or any `evaluate` function of `mcts`.

    Without `config` it is PUCT without noise, and a network is asked about several positions at once. `simulations`
    replaces the number in `config`; `seed` matters only to a config with noise, or with sequential halving, whose ties
    it breaks. The canonical mirror image is searched (`Kernels.canonical`), so mirrored positions get mirrored results;
    but not in a game with history, which the image would not have.
    Raises IllegalAction if the game is over at `position`, and NetError if the net is for another game.

    >>> import alphazero as az
    >>> game = az.load_game("connect4")
    >>> net = az.load_net("best", game)
    >>> found = az.search(game.position("121314"), net, simulations=400)  # three on top of each other
    >>> found.best, found.value, found.proven
    (0, 1.0, True)
    """
    if not isinstance(position, Position):  # notebooks have no type checker
        raise InvalidSetting(f"a search takes a Position, as of game.position(...), not a {type(position).__name__}")
    if config is not None and not isinstance(config, SearchConfig):
        raise InvalidSetting(f"config must be a SearchConfig, not a {type(config).__name__}")
    check_range("seed", seed, 0, (1 << 63) - 1)
    if isinstance(net, NeuralNet):
        check_net(net, position.game)
    elif not callable(net) or isinstance(net, type) or hasattr(net, "forward"):
        raise NetError(
            "a search takes a NeuralNet, or a function from states and legal masks to priors and values, not "
            f"{quote(net)}: az.load_net loads a net, az.TorchNet(game, module) makes one of a torch module"
        )
    registry.try_rules(position.game)
    if position.terminal:
        raise IllegalAction("the game is over at this position, so there is nothing to search: take back a move")
    if position.chances:
        raise IllegalAction("a die is due at this position, so nobody is to move: play an outcome first")
    chosen = QUIET if config is None else config
    if simulations is not None:
        chosen = replace(chosen, num_simulations=simulations)
    kernels = kernels_of(position.game)
    evaluate = Evaluator(kernels, net, 1 << 14, sees_wins=True) if isinstance(net, NeuralNet) else net
    if config is None:
        chosen = replace(chosen, leaves_per_step=leaves_for(position.game, evaluate, chosen.num_simulations))
    states, symmetries = kernels.canonical(position.state[None])
    if position.game.history_words:
        states, symmetries = position.state[None], np.zeros(1, np.int64)
    own = kernels.symmetries[1][symmetries[0]]  # the canonical image's action a is the position's own[a]
    search = on_processor(kernels, chosen, evaluate, 1, seed)
    with on_one_thread(net):
        result = search.run(states, np.zeros(1, np.int64), np.array([position.ply]))
    best = int(result.actions[0])
    back, values = np.argsort(own), np.atleast_1d(result.values[0])
    q = np.where(position.legal_mask, np.clip(result.q[0, back], -1.0, 1.0), np.float32(np.nan))
    line = best, *_best_line(search.tree, child_by(search.tree, ROOT, best))
    return Found(
        position=position, best=int(own[best]), policy=result.policy[0, back], visits=result.visit_counts[0, back],
        q=q, value=float(values[0]), values=by_player(values, position.to_play, position.game.num_players),
        proven=bool(search.tree.proven[0, ROOT] != UNPROVEN), line=tuple(int(own[action]) for action in line),
    )  # fmt: skip


def leaves_for(game: Game, evaluate: Evaluate, num_simulations: int) -> int:
    """Leaves of one tree in flight at once: LEAVES where a network answers, fewer in a short search.

    One in games that `grows_anew` names.
    """
    if not isinstance(evaluate, Evaluator) or grows_anew(game):
        return 1
    return max(1, min(LEAVES, num_simulations // SIMULATIONS_PER_LEAF))


@dataclass(frozen=True)
class Edge:
    """One action at a node of a search tree, for the player to move there; or an outcome of the die that is due."""

    action: int
    visits: int
    value: float | None
    """In [-1, 1]; exact if the action is proven, None if it was not visited."""
    prior: float
    """P(s, a), or the probability of the outcome."""
    proven: bool


@dataclass(frozen=True)
class Line(Edge):
    """A visited action at the root."""

    value: float
    moves: tuple[int, ...]
    """The action and the expected play after it."""
    plies: int | None
    """The length of the game from here on if the action is a proven win, which can be forced within that many plies, or
    a proven loss; None elsewhere, and where the proof leads through a die."""


@dataclass(frozen=True)
class TreeNode:
    """A node of a search tree."""

    visits: int
    """Simulations that went on to one of its actions."""
    value: float
    """In [-1, 1] for the player to move; exact if it is proven."""
    values: tuple[float, ...]
    """The value for each player, the first player's first."""
    proven: bool
    edges: tuple[Edge, ...]
    """Its legal actions, the most visited first; none if the game is over or the node waits for its evaluation."""


class Analysis:
    """One tree, grown by PUCT without noise, whose visits can be read at any time.

    It follows a game: if a position comes after the last one, its subtree is kept, unless the game has dice or is for
    one. A network evaluates several leaves at once (`leaves_for`).
    """

    def __init__(self, kernels: Kernels, config: SearchConfig, evaluate: Evaluate):
        leaves, anew = leaves_for(kernels.game, evaluate, config.num_simulations), grows_anew(kernels.game)
        config = replace(
            config, noise_fraction=0.0, gumbel_actions=0, reuse_subtree=not anew,
            leaves_per_step=1 if anew else max(config.leaves_per_step, leaves),
        )  # fmt: skip
        self._search = on_processor(kernels, config, evaluate, 1)
        self.on_one_thread = partial(on_one_thread, evaluate.net if isinstance(evaluate, Evaluator) else None)
        """Inside, the analysis runs its network on one processor thread; see the function of this name."""
        self._last: Position | None = None

    def begin(self, position: Position, among: Sequence[int] = ()) -> None:
        """Begins a search of `position`, where a player is to move; its subtree is kept if the tree has one.

        With `among` it begins anew, and only these legal actions are searched.
        """
        last, self._last = self._last, None  # until it has begun: an evaluation may fail
        steps = [(position, -1)]
        keeps = self._search.config.keeps_subtree and not among
        allowed = np.isin(np.arange(position.game.num_actions), among) if among else None
        if keeps and last is not None and position.ply > last.ply and position.follows(last):
            actions = position.actions[last.ply :]
            steps = list(zip(accumulate(actions, Position.play, initial=last), (-1, *actions), strict=True))[1:]
        zero = np.zeros(1, np.int64)
        for at, action in steps:
            self._search.start(zero, at.state[None], zero, np.array([at.ply]), np.array([action]), allowed=allowed)
        self._last = position

    @property
    def finished(self) -> bool:
        """All simulations are spent."""
        return len(self._search.finished()) > 0

    def step(self) -> None:
        """Runs one more simulation, or several that a network evaluates at once; none if the search is finished."""
        self._search.step()

    def run(self, position: Position) -> list[Line]:
        """Runs a whole search; returns its lines."""
        with self.on_one_thread():
            self.begin(position)
            while not self.finished:
                self.step()
        return self.lines()

    @property
    def simulations(self) -> int:
        """Simulations of the position so far, those of a kept subtree included."""
        return int(self._search.tree.visits[edges_below(self._search.tree, 0, ROOT)].sum())

    def node(self, path: Sequence[int] = ()) -> TreeNode:
        """The node to which the actions of `path` lead. Raises KeyError if there is none."""
        tree, at = self._search.tree, ROOT
        for action in path:
            at = child_by(tree, at, action)
            if at == UNVISITED:
                raise KeyError(action)
        exact = tree.proven[0, at] not in (UNPROVEN, PENDING)
        count = max(1, tree.node_visits[0, at])  # 0: the game is over, or the answer of the network is still to come
        value = tree.proven[0, at] if exact else np.clip(tree.node_value[0, at] / count, -1.0, 1.0)
        if tree.proven[0, at] == BETWEEN:
            value = tree.raw_value[0, at]
        values, mover = self._values(at, float(value))
        value = values[mover]
        if tree.node_visits[0, at] == 0:
            return TreeNode(0, float(value) if exact else 0.0, values, bool(exact), ())
        here = edges_below(tree, 0, at)
        visits, priors, q = tree.visits[here], tree.prior[here], tree.q[here]
        actions, known = unpacked(tree.action[here])
        total = float(priors.sum()) or 1.0
        edges = tuple(
            Edge(
                int(actions[i]), int(visits[i]), float(np.clip(q[i], -1.0, 1.0)) if visits[i] else None,
                float(priors[i]) / total, bool(known[i] != UNPROVEN),
            )
            for i in np.lexsort((-priors, -visits))
        )  # fmt: skip
        return TreeNode(int(visits.sum()), float(value), values, bool(exact), edges)

    def _values(self, at: int, value: float) -> tuple[tuple[float, ...], int]:
        """The value of a node for each player, and who is to move there; in a game for up to two, with that `value`."""
        tree, last = self._search.tree, self._last
        assert last is not None
        # a tree numbers the players from 0 for who moved at its first root, unless the rules tell their numbers
        count, ahead = last.game.num_players, last.to_play - int(tree.to_play[0, ROOT])
        mover = (int(tree.to_play[0, at]) % DIE + ahead) % count
        if not last.game.value_shape:
            return by_player(np.array([value]), mover, count), mover
        sums, visits = tree.seat_sums[0, at], max(1.0, float(tree.node_visits[0, at]))
        values = tree.seat_values[0, at] if tree.proven[0, at] == BETWEEN else sums / visits
        return by_player(np.clip(values, -1.0, 1.0), ahead % count, count), mover

    def result(self) -> SearchResult:
        """The search's result up to now, with one row."""
        return self._search.read(np.zeros(1, np.int64))

    @property
    def settled(self) -> bool:
        """The position's exact value is proven: more simulations change nothing."""
        return self._search.tree.proven[0, ROOT] not in (UNPROVEN, PENDING)

    def lines(self) -> list[Line]:
        """All visited actions, the best first; of proven wins the shortest, and if all actions lose the longest."""
        policy, tree = self.result().policy[0], self._search.tree
        visited = [edge for edge in self.node().edges if edge.visits]
        found, plies = list[Line](), np.empty(int(tree.size[0]), np.int32)
        cpu_kernels.count_plies(tree, 0, plies)
        for edge in visited:
            child = child_by(tree, ROOT, edge.action)
            rest = _forced_line(tree, child, plies) if plies[child] >= 0 else _best_line(tree, child)
            found.append(Line(**vars(edge), moves=(edge.action, *rest), plies=1 + int(plies[child]) or None))

        def order(line: Line) -> tuple[float, float]:
            chosen = policy[line.action]
            return line.value * line.plies if chosen and line.plies else math.inf, -chosen

        return sorted(found, key=order)


def child_by(tree: Tree, node: int, action: int) -> int:
    """The node below an action; UNVISITED if there is none."""
    edges = edges_below(tree, 0, node)
    found = tree.child[edges][unpacked(tree.action[edges])[0] == action]
    return int(found[0]) if len(found) else UNVISITED


def _forced_line(tree: Tree, node: int, plies: np.ndarray) -> list[int]:
    """The play from a proven win or loss to the end, as `cpu_kernels.count_plies` has counted it."""
    line = list[int]()
    while plies[node] > 0:
        edges = edges_below(tree, 0, node)
        actions, known = unpacked(tree.action[edges])
        fits = (known == tree.proven[0, node]) & (tree.child[edges] != UNVISITED)
        at = np.flatnonzero(fits & (plies[tree.child[edges]] == plies[node] - 1))[0]
        line.append(int(actions[at]))
        node = tree.child[edges[at]]
    return line


def _best_line(tree: Tree, node: int) -> list[int]:
    """The expected play from `node` to the end of the tree: wins before losses, then the most visited action."""
    line = np.empty(int(tree.size[0]), np.int32)
    return line[: cpu_kernels.read_line(tree, 0, node, line)].tolist()
