"""The batched search with its trees on a GPU: a search copies nothing to the host and waits for nothing."""

from __future__ import annotations

import functools

import numpy as np

from alphazero.errors import DeviceMemoryError, EvaluationError, IllegalAction, count_of, is_out_of_memory
from alphazero.game.kernels import Kernels
from alphazero.nets.neural_net import CudaEvaluator
from alphazero.search.cuda_kernels import CudaKernels, SearchBuffers, make_buffers, make_dice_buffers
from alphazero.search.cuda_memory import SIMULATED, open_cuda
from alphazero.search.mcts import SearchConfig, SearchResult, movers_and_actions
from alphazero.search.tree import Memory, Tree, room_of, tree_for

cuda_kernels = functools.cache(CudaKernels)
"""The kernels of rules, compiled once for all game objects that have them."""


class CudaSearch:
    """`mcts.Search` on a GPU, with the same results; all trees search at the same time, with equal simulations.

    There is no cache: on a GPU the network's answer costs less than looking it up.
    """

    def __init__(self, kernels: Kernels, config: SearchConfig, evaluate: CudaEvaluator, num_trees: int, seed: int = 0):
        self.kernels, self.config, self.seed, self.evaluate = kernels, config, seed, evaluate
        self._cuda = cuda_kernels(kernels.rules)
        self._memory = open_cuda()
        self.num_trees, self._num_kept = num_trees, config.num_nodes - config.num_simulations
        self._sees_wins = evaluate.sees_wins and kernels.game.num_players == 2
        self._running = np.zeros(0, np.int64)
        self._simulations_left = 0
        settings = config.settings_for(kernels.game)
        self._settings = settings._replace(
            dice=bool(settings.dice), alone=bool(settings.alone), seats=bool(settings.seats), lots=bool(settings.lots)
        )
        try:
            self.tree, self.buffers = room_for(kernels, config, num_trees, self._memory)
            self._dice = make_dice_buffers(kernels, self.tree, self._memory)
            with self._memory.stream() as stream:
                self._memory.write(self.buffers.permutations, kernels.symmetries[1], stream)
            self._simulate = self._memory.captured(self._launch_simulation)
            if not SIMULATED:  # compiles the other kernels, and takes the memory that evaluating roots needs
                everyone, states = np.arange(num_trees), kernels.start_states(num_trees)
                kernels.roll(states, np.zeros(num_trees, np.int8), seed, everyone, everyone * 0)
                self.start(everyone, states, everyone, everyone * 0)
                self.read(everyone)
                self._running, self._simulations_left = everyone[:0], 0
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise DeviceMemoryError(
                f"the GPU's memory does not hold the search of {count_of(num_trees, 'position')} at once with "
                f"{count_of(config.num_simulations, 'simulation')}: choose fewer, or close what else uses the GPU"
            ) from error

    def start(
        self,
        trees: np.ndarray,
        states: np.ndarray,
        games: np.ndarray,
        plies: np.ndarray,
        actions: np.ndarray | None = None,
        budgets: np.ndarray | None = None,
    ) -> None:
        """As `mcts.Search.start`, for all trees that search until the next call; other trees rest."""
        config, buffers, count = self.config, self.buffers, len(trees)
        budgets = np.full(count, config.num_simulations, np.int32) if budgets is None else budgets
        to_play, actions = movers_and_actions(self.kernels, config, states, actions)
        if self._dice and self.kernels.find_die(states, np.empty(self.kernels.game.num_outcomes)) >= 0:
            raise IllegalAction("a die is due at a position that is to be searched: roll it first")
        with self._memory.stream() as stream:
            for array, rows in (
                (buffers.trees, trees), (buffers.root_states, states), (buffers.root_to_play, to_play),
                (buffers.root_actions, actions), (buffers.games, games), (buffers.plies, plies),
                (buffers.budgets, budgets),
            ):  # fmt: skip
                self._memory.write(array, rows, stream)
            self._cuda.move_roots(self.num_trees, stream, self.tree, buffers, count, self._num_kept)
            self._ask()
            self._cuda.take_roots(count, stream, self.tree, buffers, count, self._sees_wins)
            self._cuda.begin_roots(count, stream, self.tree, buffers, count, self.seed, self._settings)
        self._running = trees
        self._simulations_left = int(budgets.max(initial=0))

    def step(self) -> None:
        """Begins one simulation (or `leaves_per_step`) in every tree that has any left; returns before it is done."""
        with self._memory.stream() as stream:
            self._simulate()
            self._simulations_left = max(0, self._simulations_left - self.config.leaves_per_step)
            if self._simulations_left == 0 and self.config.leaves_per_step > 1:
                # walks that met a leaf in flight are repeated; only the GPU knows how many
                (remaining,) = self._memory.read((self.tree.remaining,), self.num_trees, stream)
                self._simulations_left = int(remaining.max())

    def finished(self) -> np.ndarray:
        """`int64[m]`: the trees whose search is finished: all trees of the last start, or none."""
        return self._running if self._simulations_left == 0 else self._running[:0]

    def read(self, trees: np.ndarray) -> SearchResult:
        """As `mcts.Search.read`; waits for the GPU."""
        count, buffers = len(trees), self.buffers
        with self._memory.stream() as stream:
            self._memory.write(buffers.trees, trees, stream)
            self._cuda.read_roots(count, stream, self.tree, buffers, count, self._settings)
            found = (buffers.visit_counts, buffers.policies, buffers.qs, buffers.root_values, buffers.best)
            *rows, values, best = self._memory.read(found, count, stream)
        num_actions = self.kernels.game.num_actions
        counts, policy, q = (np.ascontiguousarray(row[:, :num_actions]) for row in rows)
        result = SearchResult(counts, policy, q, values.reshape(-1, *self.kernels.game.value_shape), best)
        if not (np.isfinite(result.values).all() and np.isfinite(result.policy).all()):
            raise EvaluationError("the network's answers on the GPU are not finite numbers")
        return result

    def run(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> SearchResult:
        """As `mcts.Search.run`."""
        if len(states) > self.num_trees:
            raise ValueError(f"{len(states)} positions do not fit into {self.num_trees} trees")
        trees = np.arange(len(states))
        self.start(trees, states, games, plies)
        while self._simulations_left:
            self.step()
        return self.read(trees)

    def _launch_simulation(self) -> None:
        tree, buffers, settings = self.tree, self.buffers, self._settings
        num_walks = self.num_trees * settings.leaves_per_step
        with self._memory.stream() as stream:
            self._cuda.select(self.num_trees, stream, tree, buffers, settings)
            self._cuda.advance(num_walks, stream, tree, buffers, *self._dice)
            self._ask()
            self._cuda.take_leaves(num_walks, stream, tree, buffers, self._sees_wins)
            self._cuda.expand_and_backup(self.num_trees, stream, tree, buffers, settings)

    def _ask(self) -> None:
        buffers = self.buffers
        values = buffers.values.reshape(-1, *self.kernels.game.value_shape)
        self.evaluate(buffers.planes, buffers.asked_masks, buffers.answers, values)


def room_for(kernels: Kernels, config: SearchConfig, num_trees: int, memory: Memory) -> tuple[Tree, SearchBuffers]:
    """The arrays of a search of `num_trees` trees."""
    num_nodes = 1 + (config.num_nodes - 1) * room_of(kernels.game)[0]
    return (
        tree_for(kernels.game, num_trees, num_nodes, memory),
        make_buffers(kernels, num_trees, num_nodes, config.leaves_per_step, memory),
    )
