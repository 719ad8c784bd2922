"""The search on a GPU against the one on the processor, for some games: run by test_cuda_search.py.

`python tests/search/cuda_search_check.py GAME ...` with NUMBA_ENABLE_CUDASIM=1 does it in numba's simulator, which has
to be chosen before numba is imported, hence in a process of its own.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.errors import IllegalAction, InvalidSetting
from alphazero.game.kernels import DIE, Kernels
from alphazero.nets.neural_net import CudaEvaluator
from alphazero.search import cuda_search as on_device
from alphazero.search.cuda_search import CudaSearch
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Search, SearchConfig, SearchResult
from alphazero.search.tree import BETWEEN, UNPROVEN
from alphazero.training.config import SelfPlayConfig
from alphazero.training.selfplay import SelfPlay
from tests.search.reference_search import plies_of, random_positions, states_of

BASE = SearchConfig(
    num_simulations=6, c_puct=1.5, fpu_reduction=0.2, noise_fraction=0.0, noise_total=10.0,
    gumbel_actions=0, gumbel_visit_offset=50.0, gumbel_value_scale=1.0, reuse_subtree=False, prove=True,
    leaves_per_step=1, prior_temperature=1.0,
)  # fmt: skip
CONFIGS = {
    "kept subtrees": replace(BASE, noise_fraction=0.25, reuse_subtree=True, c_puct=0.8, prior_temperature=1.7),
    "halving": replace(BASE, gumbel_actions=5, prior_temperature=1.7, noise_fraction=0.25, gumbel_value_scale=0.1),
    "leaves in flight": replace(BASE, leaves_per_step=3, num_simulations=9, prove=False, c_puct=3.0),
}
WITH_DICE = {
    "noise": replace(BASE, num_simulations=40, noise_fraction=0.25, c_puct=0.8, prior_temperature=1.7),
    "halving": replace(CONFIGS["halving"], num_simulations=40),
}
FIELDS = "visit_counts", "policy", "q", "values", "actions"
TREES = 2
SEED = 7


class Planted:
    """Priors and values that depend on what the network sees alone, in whole numbers: the same on every processor."""

    def __init__(self, kernels: Kernels):
        game = kernels.game
        self.kernels = kernels
        rng = np.random.default_rng(5)
        self.weights = rng.integers(1, 1000, (int(np.prod(game.observation_shape)), game.num_actions + game.num_values))

    def answers(self, planes: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen = np.rint(planes.reshape(len(planes), len(self.weights)) * 64).astype(np.int64)
        marks = (seen @ self.weights) % 257
        actions = legal_masks.shape[1]
        priors = np.where(legal_masks, 1 + marks[:, :actions] % 32, 0).astype(np.float32)
        values = (marks[:, actions:].astype(np.float32) - 128) / 129
        return priors, values.reshape(-1, *self.kernels.game.value_shape)

    def __call__(self, states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As a search on the GPU asks: about the smallest mirror image, whose answer is turned back."""
        game = self.kernels.game
        _, permutations = game.symmetries
        priors = np.empty(legal_masks.shape, np.float32)
        values = np.empty((len(states), *game.value_shape), np.float32)
        for i, state in enumerate(states):
            images = [state.copy() for _ in permutations]
            for symmetry, image in enumerate(images):
                if game.rules.transform is not None:
                    game.rules.transform(image, symmetry)
            best = min(range(len(images)), key=lambda symmetry: images[symmetry].tolist())
            mask = legal_masks[i, permutations[best]]
            answer, values[i : i + 1] = self.answers(self.kernels.observations(images[best][None]), mask[None])
            priors[i, permutations[best]] = answer[0]
        return priors, values


class PlantedOnCuda(CudaEvaluator):
    """The same for a search on a GPU; it computes on the processor, so that no graph can be made of it."""

    search: CudaSearch

    def __init__(self, planted: Planted):
        self.planted = planted

    def __call__(self, planes: Any, legal_masks: Any, priors: Any, values: Any) -> None:
        memory = self.search._memory
        with memory.stream() as stream:
            seen, masks = memory.read((planes, legal_masks), len(planes), stream)
            for array, answer in zip((priors, values), self.planted.answers(seen, masks), strict=True):
                memory.write(array, answer, stream)


def cuda_search(kernels: Kernels, config: SearchConfig, planted: Planted) -> CudaSearch:
    """A search that has been tried out when it was made, in the simulator, too."""
    evaluate = PlantedOnCuda(planted)
    evaluate.search = search = CudaSearch.__new__(CudaSearch)
    with mock.patch.object(on_device, "SIMULATED", False):
        search.__init__(kernels, config, evaluate, TREES + 1, SEED)  # type: ignore[misc]
    return search


def play_two_plies(
    search: Search | CudaSearch, states: np.ndarray, plies: np.ndarray
) -> tuple[list[SearchResult], list[tuple[np.ndarray, ...]]]:
    """A search from every state, then one from those after the best actions, in fewer trees and in another order.

    Returns what was found, and what is then at the nodes of the trees.
    """
    kernels, everyone = search.kernels, np.arange(TREES)
    found, nodes = [], []
    trees, actions = everyone, None
    for later in (False, True):
        search.start(trees, states[trees], trees, plies[trees] + later, actions)
        steps = 0
        while not np.isin(trees, search.finished()).all():
            search.step()
            steps += 1
            assert steps <= 4 * search.config.num_simulations
        found.append(search.read(trees))
        nodes += nodes_of(search)
        best, movers = np.full(TREES, -1), np.zeros(TREES, np.int8)
        best[trees] = found[-1].actions
        states = states.copy()
        kernels.play(states, movers, best)
        kernels.roll(states, movers, SEED, everyone, plies + 1)
        trees = np.flatnonzero(~kernels.describe_all(states)[1])[::-1].copy()
        actions = best[trees]
        if len(trees) == 0:
            break
    return found, nodes


def nodes_of(search: Search | CudaSearch) -> list[tuple[np.ndarray, ...]]:
    """The states, movers and exact values at the nodes of each tree."""
    tree = search.tree
    arrays = tree.size, tree.states, tree.to_play, tree.proven
    if isinstance(search, CudaSearch):
        with search._memory.stream() as stream:
            arrays = search._memory.read(arrays, TREES, stream)
    return [tuple(array[b, : arrays[0][b]].copy() for array in arrays[1:]) for b in range(TREES)]


def bytes_of(nodes: list[tuple[np.ndarray, ...]]) -> list[bytes]:
    return [array.tobytes() for arrays in nodes for array in arrays]


def differences(name: str) -> list[str]:
    """Where the GPU's search differs from that of the processor."""
    kernels = Kernels(registry.load(name).game)
    planted = Planted(kernels)
    wrong, all_nodes = [], list[tuple[np.ndarray, ...]]()
    for config_name, config in (WITH_DICE if kernels.game.num_outcomes else CONFIGS).items():
        positions = random_positions(kernels.game, TREES, len(config_name), keep=lambda at: not at.chances)
        states, plies = states_of(positions), plies_of(positions)
        search = Search(kernels, config, planted, TREES + 1, SEED)
        search.tree.remaining[:] = 0
        expected, nodes = play_two_plies(search, states, plies)
        found, nodes_found = play_two_plies(cuda_search(kernels, config, planted), states, plies)
        if bytes_of(nodes_found) != bytes_of(nodes):
            wrong.append(f"{name}, {config_name}: nodes differ")
        if len(found) != len(expected):
            wrong.append(f"{name}, {config_name}: {len(found)} plies instead of {len(expected)}")
        all_nodes += nodes
        for ply, (one, other) in enumerate(zip(found, expected, strict=False)):
            for field in FIELDS:
                if getattr(one, field).tobytes() != getattr(other, field).tobytes():
                    wrong.append(f"{name}, {config_name}: {field} differ at ply {ply}")
    if kernels.game.name == "points_race":
        check_that_a_race_has(all_nodes)
    if kernels.game.num_outcomes:
        check_refusals(kernels, planted)
    return wrong


def check_refusals(kernels: Kernels, planted: Planted) -> None:
    """A search of dice refuses on a GPU, too, what it cannot do."""
    for setting in ({"reuse_subtree": True}, {"leaves_per_step": 2}):
        with pytest.raises(InvalidSetting, match="keeps no subtree and takes a leaf a step"):
            cuda_search(kernels, replace(BASE, **setting), planted)
    (due,) = random_positions(kernels.game, 1, keep=lambda at: bool(at.chances))
    with pytest.raises(IllegalAction, match="a die is due"):
        cuda_search(kernels, BASE, planted).run(due.state[None], np.zeros(1, np.int64), np.zeros(1, np.int64))


def check_that_a_race_has(nodes: list[tuple[np.ndarray, ...]]) -> None:
    """Points that are no whole win, dice that are proven by all their outcomes, and second dice."""
    states, to_play, proven = (np.concatenate(arrays) for arrays in zip(*nodes, strict=True))
    assert (proven == BETWEEN).any()
    assert (proven[to_play >= DIE] < UNPROVEN).any()
    assert (states[to_play >= DIE, 2] == 1).any()


def self_play_differences(name: str) -> list[str]:
    """Where games played by a search on the GPU differ from those of one on the processor."""
    kernels = Kernels(registry.load(name).game)
    planted, config = Planted(kernels), SelfPlayConfig(random_plies=2, temperature_plies=3)
    network: Any = SimpleNamespace(evaluate=planted.answers)
    evaluate, settings = PlantedOnCuda(planted), replace(BASE, num_simulations=4, gumbel_actions=4)
    evaluate.sees_wins = True
    here = SelfPlay(kernels, config, settings, Evaluator(kernels, network, 0, sees_wins=True), 2, SEED)
    on_cuda = SelfPlay(kernels, config, settings, evaluate, 2, SEED)
    assert isinstance(on_cuda.search, CudaSearch)
    evaluate.search = on_cuda.search
    wrong = []
    for search_anew in (True, False):
        found, expected = (each.play(2, search_anew=search_anew).arrays() for each in (on_cuda, here))
        for field, samples in expected.items():
            if found[field].tobytes() != samples.tobytes():
                wrong.append(f"{name}: self-play's {field} differ")
    return wrong


if __name__ == "__main__":
    failed = False
    for name in sys.argv[1:]:
        found = differences(name)
        if registry.load(name).game.max_plies <= 24:
            found += self_play_differences(name)
        print("\n".join(found) or f"{name}: all equal")
        failed |= bool(found)
    sys.exit(failed)
