"""The players with a network or playouts: a policy alone, and a search."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from alphazero import interruption
from alphazero.errors import Stopped
from alphazero.game.kernels import Kernels
from alphazero.machine import Threads
from alphazero.nets.neural_net import CudaEvaluator, NeuralNet
from alphazero.players.player import BEST, Assessment, Chooser, Player, Temperature
from alphazero.search.analysis import Analysis
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Evaluate, Search, SearchConfig, SearchResult
from alphazero.search.placement import as_many_as_fit, make_evaluators, make_search
from alphazero.search.tree import room_of

if TYPE_CHECKING:
    from alphazero.search.cuda_search import CudaSearch

CACHE_SIZE = 1 << 16
"""Answers of a network that each thread of a player remembers."""
MAX_TREES = 256
"""Trees that one search player grows at once."""
MAX_EDGES = 1 << 25
"""Edges of all trees of a search player together: about 0.7 GB."""


@dataclass(eq=False, repr=False)
class _NetPlayer(Player):
    """Splits positions over a thread for each of the `evaluators`; `use_threads(1)` keeps a network on its own."""

    name: str
    kernels: Kernels
    evaluators: Sequence[Any]
    seed: int
    temperature: Temperature = BEST
    use_threads: Callable[[int], object] | None = None

    def __post_init__(self) -> None:
        self._chooser = Chooser(self.seed)
        self._pool = Threads(len(self.evaluators), partial(self.use_threads, 1) if self.use_threads else None)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        return self.assess(states, games, plies).actions


class PolicyPlayer(_NetPlayer):
    """A network without a search: the action of highest prior, or one drawn at a temperature.

    An action whose prior is 0 is drawn only if no legal one has a higher prior.
    """

    def assess(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> Assessment:
        legal_masks, _, _ = self.kernels.describe_all(states)
        threads = min(len(self.evaluators), math.ceil(len(states) / 64))
        pieces = np.array_split(np.arange(len(states)), threads)
        answers = self._pool.map(lambda ask, piece: ask(states[piece], legal_masks[piece]), self.evaluators, pieces)
        priors, values = (np.concatenate(parts) for parts in zip(*answers, strict=True))
        weights = np.where(legal_masks, np.maximum(priors, 1e-9), 0.0)  # a legal action beats an illegal one at 0
        best = self._chooser.best(weights, games, plies)
        shares = np.where(legal_masks, np.maximum(priors, 0.0), 0.0)  # at a temperature 1e-9 would become 1e-9^(1/T)
        shares = np.where(shares.sum(axis=1, keepdims=True) == 0.0, weights, shares)
        actions = self._chooser.at_temperature(self.temperature, shares, best, games, plies)
        return Assessment(actions, weights / weights.sum(axis=1, keepdims=True), values)


@dataclass(eq=False, repr=False)
class SearchPlayer(_NetPlayer):
    """Monte Carlo tree search over a network's answers, or over random playouts.

    At temperature 0 it plays the most visited action (proven losses aside, proven wins first), ties at random; above it
    draws by the visits.
    """

    config: SearchConfig = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.config = replace(self.config, reuse_subtree=False)  # nothing is kept between calls
        self._searches: list[Search | CudaSearch] = []
        self._num_trees = 0
        edges = self.num_simulations * math.prod(room_of(self.kernels.game))
        self._most_trees = max(1, min(MAX_TREES, MAX_EDGES // edges) // len(self.evaluators))
        self._interrupted = threading.Event()

    @property
    def num_simulations(self) -> int:
        """Simulations per ply."""
        return self.config.num_simulations

    def assess(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> Assessment:
        size = self._make_room(len(states))
        pieces = [slice(start, start + size) for start in range(0, len(states), size)]
        count, game = len(states), self.kernels.game
        actions, values = np.empty(count, np.int64), np.empty((count, *game.value_shape), np.float32)
        policy = np.empty((count, game.num_actions), np.float32)

        def work(thread: int) -> None:
            for piece in pieces[thread :: len(self._searches)]:
                result = self._searches[thread].run(states[piece], games[piece], plies[piece])
                actions[piece] = self._choose(result, games[piece], plies[piece])
                policy[piece], values[piece] = result.policy, result.values

        try:
            self._pool.run(work, range(len(self._searches)), self._interrupted.set)
        finally:
            self._interrupted.clear()
        return Assessment(actions, policy, values)

    def interrupt(self) -> None:
        self._interrupted.set()

    def analysis(self, num_simulations: int | None = None) -> Analysis:
        """A search of single positions by the player's settings, with its own number of simulations or another."""
        config = replace(self.config, num_simulations=num_simulations or self.num_simulations)
        evaluate = self.evaluators[0]
        if isinstance(evaluate, CudaEvaluator):  # its trees cannot be looked into
            evaluate = Evaluator(self.kernels, evaluate.net, CACHE_SIZE, sees_wins=True)
        return Analysis(self.kernels, config, evaluate)

    def choose_after(self, analysis: Analysis, game: int, ply: int) -> int:
        """The action of the best line, or one drawn at the temperature; if all lines lose, the best of the others."""
        found, best = analysis.result(), np.array([analysis.lines()[0].action])
        if found.policy[0, best[0]] == 0.0:  # nothing that was visited is worth playing
            best = found.actions
        at = np.array([game]), np.array([ply])
        return int(self._chooser.at_temperature(self.temperature, found.policy, best, *at)[0])

    def _make_room(self, num_positions: int) -> int:
        """The number of positions that a thread searches at once; makes its trees when they are first needed."""

        def make_searches(num_trees: int) -> list[Search | CudaSearch]:
            asking = [_interruptible(evaluate, self._interrupted) for evaluate in self.evaluators]
            return [make_search(self.kernels, self.config, ask, num_trees, self.seed) for ask in asking]

        size = min(self._most_trees, math.ceil(num_positions / len(self.evaluators)))
        if size > self._num_trees:
            self._searches, self._num_trees = as_many_as_fit(make_searches, size)
            if self._num_trees < size:
                size = self._most_trees = self._num_trees
        return size

    def _choose(self, result: SearchResult, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        best = result.actions  # the winner of sequential halving
        if self.config.gumbel_actions == 0:
            best = self._chooser.best(result.policy, games, plies)
        return self._chooser.at_temperature(self.temperature, result.policy, best, games, plies)


def _interruptible(evaluate: Evaluate | CudaEvaluator, interrupted: threading.Event) -> Evaluate | CudaEvaluator:
    """The same, which raises Stopped. It does not know its player: else threads of players that nobody has any more
    would stay until Python looks for cycles."""
    if isinstance(evaluate, CudaEvaluator):  # a search on the GPU is short
        return evaluate

    @functools.wraps(evaluate, updated=())
    def ask(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if interrupted.is_set() or interruption.asked():
            raise Stopped
        return evaluate(states, legal_masks)

    return ask


def make_net_player(
    name: str,
    kernels: Kernels,
    net: NeuralNet,
    config: SearchConfig | None,
    *,
    seed: int,
    threads: int,
    temperature: Temperature = BEST,
) -> PolicyPlayer | SearchPlayer:
    """A player with a network: it searches by `config`, or plays by its policy alone if that is None."""
    if config is None:
        policies = [Evaluator(kernels, net, CACHE_SIZE) for _ in range(threads)]
        return PolicyPlayer(name, kernels, policies, seed, temperature, net.use_threads)
    evaluators = make_evaluators(kernels, net, threads, CACHE_SIZE)
    return SearchPlayer(name, kernels, evaluators, seed, temperature, net.use_threads, config=config)
