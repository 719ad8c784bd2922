"""Players: positions in, actions out.

A player keeps nothing between calls, and its randomness is a function of (seed, game, ply) alone. So a match with the
same seed is the same match, whatever else is in the batch.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from alphazero.analysis import Analysis
from alphazero.device_search import DeviceSearch, as_many_as_fit, make_search
from alphazero.errors import InvalidSetting
from alphazero.game import Game, Position
from alphazero.kernels import Kernels
from alphazero.mcts import Evaluate, Search, SearchConfig, SearchResult
from alphazero.neural_net import DeviceEvaluate
from alphazero.noise import MOVE, TIE, make_key, uniform
from alphazero.playouts import action_values

MAX_TREES = 256
"""Trees that one search player grows at once."""
MAX_EDGES = 1 << 25
"""Edges of all its trees together: about 0.7 GB."""


@dataclass(frozen=True)
class Assessment:
    """What a player thinks of n positions, as far as it can say."""

    actions: np.ndarray
    """`int64[n]`: what it plays."""
    policy: np.ndarray | None = None
    """`float[n, A]`: the share of each action, rows sum to 1."""
    values: np.ndarray | None = None
    """`float[n]` in [-1, 1], for the player to move."""


class Player(ABC):
    """Chooses an action for every position of a batch."""

    name: str
    one_at_a_time: bool = False
    """The player follows one game only: the arena plays the games one after the other."""

    @abstractmethod
    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        """Legal actions `int64[n]` for `states uint64[n, K]`, none of them terminal, n at least 1.

        `games`, `plies int64[n]`: the number of the game in its match and the actions played in it so far.
        """

    def assess(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> Assessment:
        """The actions that `select_actions` gives, and what they rest on."""
        return Assessment(self.select_actions(states, games, plies))


class FollowingPlayer(Player):
    """Follows one game from move to move: it is asked with all that was played before."""

    one_at_a_time = True

    def __init__(self, game: Game):
        self._game = game

    @abstractmethod
    def choose(self, position: Position, game: int) -> int:
        """A legal action at `position`, which knows its history, in the game of that number.

        Raises Forfeit to lose the game, or TakeBack to have it go on from an earlier position.
        """

    def meet(self, opponent: Player) -> None:
        """Told before a match whom it is against, for those who want to know."""

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        """Of start positions alone: of others the history is not known; raises InvalidSetting."""
        if plies.any():
            raise InvalidSetting(f"{self.name} follows whole games, and cannot be asked about single positions")
        return np.array([self.choose(self._game.start(), int(game)) for game in games])


class Forfeit(Exception):
    """A following player loses the game that it was asked about; `str(error)` says why."""


class TakeBack(Exception):
    """A following player wants its game to go on from the position after the first `ply` actions."""

    def __init__(self, ply: int):
        super().__init__(f"back to ply {ply}")
        self.ply = ply


@dataclass(frozen=True)
class Temperature:
    """How a player draws: an action's chance is in proportion to its weight^(1/T), and T = 0 takes the best."""

    temperature: float = 0.0
    """T at first."""
    temperature_plies: int = 1 << 30
    """Plies of a game, its opening's among them, after which T is the next one."""
    final_temperature: float = 0.0

    def __post_init__(self) -> None:
        for value in (self.temperature, self.final_temperature):
            if not 0.0 <= value <= 100.0:
                raise InvalidSetting(f"the temperature must lie between 0 and 100, not {value}")
        if self.temperature_plies < 0:
            raise InvalidSetting(f"temperature_plies must be 0 or more, not {self.temperature_plies}")

    def at(self, plies: np.ndarray) -> np.ndarray:
        """T, `float64[n]`, after so many plies, `int64[n]`."""
        return np.where(plies < self.temperature_plies, self.temperature, self.final_temperature)


BEST = Temperature()


def _draw(weights, seed, games, plies, purpose, actions):
    """Writes `actions int64[n]`, each drawn by its `weights float64[n, A]` with the key (seed, game, ply, purpose)."""
    for i in range(len(weights)):
        left = uniform(make_key(seed, games[i], plies[i], purpose), 0) * weights[i].sum()
        for action in range(weights.shape[1]):
            if weights[i, action] > 0.0:
                actions[i] = action
                left -= weights[i, action]
                if left < 0.0:
                    break


class Chooser:
    """Draws actions for one seed."""

    def __init__(self, kernels: Kernels, seed: int):
        self._kernel, self._seed = kernels.bind(_draw), seed

    def by_weight(self, weights: np.ndarray, games: np.ndarray, plies: np.ndarray, purpose: int = MOVE) -> np.ndarray:
        """`int64[n]` with probabilities in proportion to `weights [n, A]`."""
        actions = np.empty(len(weights), np.int64)
        self._kernel(weights.astype(np.float64), self._seed, games, plies, purpose, actions)
        return actions

    def at_temperature(
        self, temperature: Temperature, weights: np.ndarray, best: np.ndarray, games: np.ndarray, plies: np.ndarray
    ) -> np.ndarray:
        """`int64[n]`: drawn by `weights [n, A]` where the temperature is above 0, else `best int64[n]`."""
        temperatures = temperature.at(plies)
        rows = np.flatnonzero(temperatures > 0)
        actions = best.copy()
        if len(rows):
            weights = weights[rows].astype(np.float64)
            sharpened = (weights / weights.max(axis=1, keepdims=True)) ** (1 / temperatures[rows, None])
            actions[rows] = self.by_weight(sharpened, games[rows], plies[rows])
        return actions

    def best(self, scores: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        """`int64[n]` of the highest score in `[n, A]`; equally good ones are equally likely."""
        return self.by_weight(scores == scores.max(axis=1, keepdims=True), games, plies, TIE)


class RandomPlayer(Player):
    """Every legal action is equally likely."""

    name = "random"

    def __init__(self, kernels: Kernels, seed: int):
        self._kernels, self._chooser = kernels, Chooser(kernels, seed)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        legal_masks, _, _ = self._kernels.describe_all(states)
        return self._chooser.by_weight(legal_masks, games, plies)


class MinimaxPlayer(Player):
    """Alpha-beta to `depth` plies; wins as soon and loses as late as it can see, equal actions at random."""

    def __init__(self, kernels: Kernels, depth: int, seed: int, threads: int = 1):
        if not 1 <= depth <= kernels.game.max_plies:
            raise InvalidSetting(f"the depth of minimax must lie between 1 and {kernels.game.max_plies}, not {depth}")
        self.name = f"minimax:{depth}"
        self._values, self._chooser = action_values(kernels, depth), Chooser(kernels, seed)
        self._pool = ThreadPoolExecutor(threads)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        pieces = [states[start : start + 16] for start in range(0, len(states), 16)]
        return self._chooser.best(np.concatenate(list(self._pool.map(self._values, pieces))), games, plies)


class GreedyPlayer(MinimaxPlayer):
    """Takes a win, blocks a loss, else plays at random (or as the game's `heuristic` says): minimax at two plies."""

    def __init__(self, kernels: Kernels, seed: int):
        super().__init__(kernels, min(2, kernels.game.max_plies), seed)
        self.name = "greedy"


class PolicyPlayer(Player):
    """A network without a search: the action of highest prior, or one drawn at a temperature.

    Positions are split over as many threads as there are `evaluates`; `use_threads` as for SearchPlayer.
    """

    def __init__(
        self,
        name: str,
        kernels: Kernels,
        evaluates: Sequence[Evaluate],
        seed: int,
        temperature: Temperature = BEST,
        use_threads: Callable[[int], None] | None = None,
    ):
        self.name, self._kernels, self._evaluates = name, kernels, evaluates
        self._chooser, self._temperature = Chooser(kernels, seed), temperature
        self._pool = _make_pool(len(evaluates), use_threads)

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        return self.assess(states, games, plies).actions

    def assess(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> Assessment:
        legal_masks, _, _ = self._kernels.describe_all(states)
        threads = min(len(self._evaluates), math.ceil(len(states) / 64))
        pieces = np.array_split(np.arange(len(states)), threads)
        answers = list(
            self._pool.map(lambda evaluate, piece: evaluate(states[piece], legal_masks[piece]), self._evaluates, pieces)
        )
        priors, values = (np.concatenate(parts) for parts in zip(*answers, strict=True))
        weights = np.where(legal_masks, np.maximum(priors, 1e-9), 0.0)  # a legal action beats an illegal one at 0
        best = self._chooser.best(weights, games, plies)
        actions = self._chooser.at_temperature(self._temperature, weights, best, games, plies)
        return Assessment(actions, weights / weights.sum(axis=1, keepdims=True), values)


class SearchPlayer(Player):
    """Monte Carlo tree search over a network's answers, or over random playouts.

    At temperature 0 it plays the most visited action (proven losses aside, proven wins first), ties at random; above it
    draws by the visits. Positions are split over as many threads as there are `evaluates`, each with its own;
    `use_threads(1)` is called in each, so that a network stays on its thread.
    """

    def __init__(
        self,
        name: str,
        kernels: Kernels,
        evaluates: Sequence[Evaluate | DeviceEvaluate],
        config: SearchConfig,
        seed: int,
        temperature: Temperature = BEST,
        use_threads: Callable[[int], None] | None = None,
    ):
        self.name, self._kernels, self._evaluates = name, kernels, evaluates
        self._config = replace(config, reuse_subtree=False)  # nothing is kept between calls
        self._seed, self._chooser = seed, Chooser(kernels, seed)
        self._temperature = temperature
        self._pool = _make_pool(len(evaluates), use_threads)
        self._searches: list[Search | DeviceSearch] = []
        self._num_trees = 0
        edges = config.num_simulations * kernels.game.num_actions
        self._most_trees = max(1, min(MAX_TREES, MAX_EDGES // edges) // len(evaluates))
        self._interrupted = False

    @property
    def num_simulations(self) -> int:
        """Simulations per ply."""
        return self._config.num_simulations

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        return self.assess(states, games, plies).actions

    def assess(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> Assessment:
        size = self._make_room(len(states))
        pieces = [slice(start, start + size) for start in range(0, len(states), size)]
        actions, values = np.empty(len(states), np.int64), np.empty(len(states), np.float32)
        policy = np.empty((len(states), self._kernels.game.num_actions), np.float32)

        def work(thread: int) -> None:
            for piece in pieces[thread :: len(self._searches)]:
                result = self._searches[thread].run(states[piece], games[piece], plies[piece])
                actions[piece] = self._choose(result, games[piece], plies[piece])
                policy[piece], values[piece] = result.policy, result.values

        try:
            list(self._pool.map(work, range(len(self._searches))))
        except (KeyboardInterrupt, SystemExit):
            self._interrupted = True  # Ctrl-C reaches this thread alone, and Python waits for the others when it exits
            raise
        return Assessment(actions, policy, values)

    def analysis(self, num_simulations: int | None = None) -> Analysis:
        """What the player's search thinks of single positions, with its own number of simulations or another."""
        config = replace(self._config, num_simulations=num_simulations or self.num_simulations)
        return Analysis(self._kernels, config, self._evaluates[0])

    def choose_after(self, analysis: Analysis, game: int, ply: int) -> int:
        """What it plays at a position that was analysed: the best line's action, or one drawn at its temperature."""
        best, policy = np.array([analysis.lines()[0].action]), analysis.result().policy
        at = np.array([game]), np.array([ply])
        return int(self._chooser.at_temperature(self._temperature, policy, best, *at)[0])

    def _make_room(self, num_positions: int) -> int:
        """How many positions a thread searches at once; its trees are made when first needed."""
        threads = len(self._evaluates)
        size = min(self._most_trees, math.ceil(num_positions / threads))
        if size > self._num_trees:
            self._searches, self._num_trees = as_many_as_fit(self._make_searches, size)
            if self._num_trees < size:
                size = self._most_trees = self._num_trees
        return size

    def _make_searches(self, num_trees: int) -> list[Search | DeviceSearch]:
        return [
            make_search(self._kernels, self._config, self._interruptible(evaluate), num_trees, self._seed)
            for evaluate in self._evaluates
        ]

    def _interruptible(self, evaluate: Evaluate | DeviceEvaluate) -> Evaluate | DeviceEvaluate:
        if isinstance(evaluate, DeviceEvaluate):  # a search on the GPU is short
            return evaluate

        def ask(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            if self._interrupted:
                raise KeyboardInterrupt
            return evaluate(states, legal_masks)

        return ask

    def _choose(self, result: SearchResult, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        best = result.actions  # the winner of sequential halving
        if self._config.gumbel_actions == 0:
            best = self._chooser.best(result.policy, games, plies)
        return self._chooser.at_temperature(self._temperature, result.policy, best, games, plies)


def _make_pool(threads: int, use_threads: Callable[[int], None] | None) -> ThreadPoolExecutor:
    """Threads on each of which `use_threads(1)` has been called."""
    return ThreadPoolExecutor(threads, initializer=partial(use_threads, 1) if use_threads else None)
