"""The batched search with its trees on a GPU: nothing is copied to the host, or waited for, inside a search."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from alphazero.errors import DeviceMemoryError, EvaluationError, is_out_of_memory
from alphazero.game.kernels import Kernels
from alphazero.nets.neural_net import CudaEvaluator, NeuralNet
from alphazero.search.cuda_kernels import CudaKernels, SearchBuffers, make_buffers
from alphazero.search.cuda_memory import open_device
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Evaluate, Search, SearchConfig, SearchResult
from alphazero.search.tree import Memory, Tree, make_tree

Made = TypeVar("Made")
logger = logging.getLogger(__name__)

cuda_kernels = functools.cache(CudaKernels)
"""A game's kernels, compiled once."""


class CudaSearch:
    """As `mcts.Search`, with the same results; all its trees search at the same time and with the same simulations.

    The network is asked about every leaf, without a cache: on a GPU an answer costs less than looking it up.
    """

    def __init__(self, kernels: Kernels, config: SearchConfig, evaluate: CudaEvaluator, num_trees: int, seed: int = 0):
        self.kernels, self.config, self.seed, self.evaluate = kernels, config, seed, evaluate
        self._cuda = cuda_kernels(kernels)
        self._device = open_device()
        num_nodes = config.num_nodes
        self.num_trees, self._num_kept = num_trees, num_nodes - config.num_simulations
        self._running = np.zeros(0, np.int64)
        self._simulations_left = 0
        self._settings = config.walk_settings
        try:
            self.tree, self.work = room_for(kernels, config, num_trees, self._device)
            with self._device.stream() as stream:
                self._device.write(self.work.permutations, kernels.game.symmetries[1], stream)
            self._simulate = self._device.captured(self._launch_simulation)
            self._device.get_ready(self._warm_up)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            raise DeviceMemoryError(
                f"the GPU's memory does not hold the search of {num_trees:,} positions at once with "
                f"{config.num_simulations:,} simulations: choose fewer, or close what else uses the GPU"
            ) from error

    def _warm_up(self) -> None:
        """Compiles what is left, and takes the memory that questions about roots need."""
        everyone = np.arange(self.num_trees)
        self.start(everyone, self.kernels.start_states(self.num_trees), everyone, everyone * 0)
        self.read(everyone)
        self._running, self._simulations_left = everyone[:0], 0

    def start(
        self,
        trees: np.ndarray,
        states: np.ndarray,
        games: np.ndarray,
        plies: np.ndarray,
        actions: np.ndarray | None = None,
    ) -> None:
        """As `mcts.Search.start`, of all trees that are to search until the next call; other trees rest."""
        config, work, count = self.config, self.work, len(trees)
        to_play = np.zeros(count, np.int8)
        self.kernels.find_movers(states, to_play)
        if actions is None or not config.keeps_subtree:
            actions = np.full(count, -1, np.int64)
        with self._device.stream() as stream:
            for array, rows in (
                (work.trees, trees), (work.root_states, states), (work.root_to_play, to_play),
                (work.root_actions, actions), (work.games, games), (work.plies, plies),
            ):  # fmt: skip
                self._device.write(array, rows, stream)
            self._cuda.move_roots(self.num_trees, stream, self.tree, work, count, self._num_kept)
            self._ask()
            self._cuda.take_roots(count, stream, self.tree, work, count, self.evaluate.sees_wins)
            self._cuda.prepare_roots(
                count, stream, self.tree, work, count, config.prior_exponents[0], config.num_simulations, self.seed,
                *config.root_settings,
            )  # fmt: skip
        self._running = trees
        self._simulations_left = config.num_simulations

    def step(self) -> None:
        """One simulation (`leaves_per_step` of them) in every tree that has any left; returns before it is done."""
        with self._device.stream() as stream:
            self._simulate()
            self._simulations_left = max(0, self._simulations_left - self.config.leaves_per_step)
            if self._simulations_left == 0 and self.config.leaves_per_step > 1:
                # walks that met a leaf in flight are walked again; only the device knows how many
                (remaining,) = self._device.read((self.tree.remaining,), self.num_trees, stream)
                self._simulations_left = int(remaining.max())

    def finished(self) -> np.ndarray:
        """`int64[m]`: the trees whose search is over: all of the last start, or none."""
        return self._running if self._simulations_left == 0 else self._running[:0]

    def read(self, trees: np.ndarray) -> SearchResult:
        """As `mcts.Search.read`; waits for the device."""
        count, work = len(trees), self.work
        with self._device.stream() as stream:
            self._device.write(work.trees, trees, stream)
            self._cuda.read_roots(
                count, stream, self.tree, work, count, self.config.gumbel_actions > 0, *self._settings[3:5]
            )
            found = (work.visit_counts, work.policies, work.qs, work.root_values, work.best)
            result = SearchResult(*self._device.read(found, count, stream))
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
        leaves, tree, work = self.config.leaves_per_step, self.tree, self.work
        _, exponent = self.config.prior_exponents
        with self._device.stream() as stream:
            self._cuda.select(self.num_trees, stream, tree, work, leaves, *self._settings)
            self._cuda.advance(self.num_trees * leaves, stream, tree, work)
            self._ask()
            self._cuda.take_leaves(self.num_trees * leaves, stream, tree, work, self.evaluate.sees_wins)
            self._cuda.expand_and_backup(self.num_trees, stream, tree, work, leaves, exponent, self.config.prove)

    def _ask(self) -> None:
        work = self.work
        self.evaluate(work.planes, work.asked_masks, work.answers, work.values)


def room_for(kernels: Kernels, config: SearchConfig, num_trees: int, memory: Memory) -> tuple[Tree, SearchBuffers]:
    """All that a search of so many trees works on."""
    game, num_nodes = kernels.game, config.num_nodes
    return (
        make_tree(num_trees, num_nodes, game.num_actions, game.state_words, memory),
        make_buffers(kernels, num_trees, num_nodes, config.leaves_per_step, memory),
    )


def as_many_as_fit(make: Callable[[int], Made], count: int) -> tuple[Made, int]:
    """What `make` makes for `count`, or for half as many, and so on, as the GPU's memory allows; and that number."""
    while True:
        try:
            return make(count), count
        except DeviceMemoryError as error:
            if count == 1:
                raise
            logger.warning("%s; going on with half of them", str(error).split(":")[0])
        open_device().wait()  # until here the error holds what was made
        count = (count + 1) // 2


def make_search(
    kernels: Kernels, config: SearchConfig, evaluate: Evaluate | CudaEvaluator, num_trees: int, seed: int = 0
) -> Search | CudaSearch:
    """A search where `evaluate` is: on the GPU or on the processor."""
    if isinstance(evaluate, CudaEvaluator):
        return CudaSearch(kernels, config, evaluate, num_trees, seed)
    return Search(kernels, config, evaluate, num_trees, seed)


def make_evaluators(
    kernels: Kernels, net: NeuralNet, threads: int, cache_size: int
) -> Sequence[Evaluator | CudaEvaluator]:
    """What searches by a network ask it through, one for each search that is to go on beside the others.

    On the GPU, if the network is there and the rules compile for it, two: while the host plays what one has found, the
    other searches. On the processor one for each of `threads`, with a cache of `cache_size` entries.
    """
    if runs_on_device(kernels, net):
        evaluators = [net.cuda_evaluator() for _ in range(2)]
        return [evaluate for evaluate in evaluators if evaluate is not None]
    return [Evaluator(kernels, net, cache_size, sees_wins=True) for _ in range(threads)]


@functools.cache
def runs_on_device(kernels: Kernels, net: NeuralNet) -> bool:
    """The network is on a GPU and a search of the game can be set up there; says once why not, if it cannot."""
    evaluate = net.cuda_evaluator() if kernels.game.compiled else None
    if evaluate is None:
        return False
    try:
        CudaSearch(kernels, SearchConfig(num_simulations=1), evaluate, 1)
    except Exception as error:  # numba raises many kinds
        reason = " ".join(str(error).split())
        logger.warning(
            "the search of %s cannot be set up on the GPU; its trees stay on the processor, the network on the GPU: %s",
            kernels.game.name, reason[:300],
        )  # fmt: skip
        return False
    return True
