"""Searches side by side for the tests: three games, settings apart from the defaults, and how to run them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alphazero.catalogue import registry
from alphazero.game import Game, Position
from alphazero.game.kernels import Kernels
from alphazero.nets.neural_net import NeuralNet
from alphazero.search.mcts import Evaluate, Search, SearchConfig, SearchResult
from tests.game.double_move_game import DoubleMove
from tests.search.dense import dense
from tests.search.reference_search import neutral, plies_of, states_of

TICTACTOE, CONNECT4 = (registry.load(name).game for name in ("tictactoe", "connect4"))
DOUBLE_MOVE = DoubleMove()
GAMES = {game.name: game for game in (TICTACTOE, CONNECT4, DOUBLE_MOVE)}
KERNELS = {name: Kernels(game) for name, game in GAMES.items()}
# every setting is written out: the defaults may change
BASE = SearchConfig(
    num_simulations=200, c_puct=1.5, fpu_reduction=0.2, noise_fraction=0.0, noise_total=10.0,
    gumbel_actions=0, gumbel_visit_offset=50.0, gumbel_value_scale=1.0, reuse_subtree=False, prove=True,
    leaves_per_step=1, prior_temperature=1.0,
)  # fmt: skip
UNPROVEN = 2


class ThreadedNet(NeuralNet):
    """Knows nothing, and remembers on how many threads it was asked."""

    save = load = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self.threads, self.used = 2, set[int]()

    def use_threads(self, count: int) -> int:
        before, self.threads = self.threads, count
        return before

    def evaluate(self, observations: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.used.add(self.threads)
        priors = legal_masks / legal_masks.sum(axis=1, keepdims=True)
        return priors.astype(np.float32), np.zeros(len(priors), np.float32)


every_game = pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)


def make_search(game: Game, config: SearchConfig, evaluate: Evaluate, count: int, seed: int = 7) -> Search:
    return Search(KERNELS[game.name], config, evaluate, count, seed)


def run(
    positions: list[Position],
    config: SearchConfig,
    evaluate: Evaluate,
    numbers: np.ndarray | None = None,
    budgets: np.ndarray | None = None,
    seed: int = 7,
) -> tuple[Search, SearchResult]:
    """Searches the positions side by side; position i belongs to game `numbers[i]`, or i."""
    everyone = np.arange(len(positions))
    search = make_search(positions[0].game, config, evaluate, len(positions), seed)
    numbers = everyone if numbers is None else numbers
    search.start(everyone, states_of(positions), numbers, plies_of(positions), budgets=budgets)
    finish(search)
    return search, search.read(everyone)


def finish(search: Search) -> None:
    steps = 0
    everyone = len(search.tree.size)
    while len(search.finished()) < everyone:
        search.step()
        steps += 1
        assert steps <= 4 * search.config.num_simulations, "the search does not come to an end"


def noise_of(positions: list[Position], config: SearchConfig, seed: int = 7) -> list[np.ndarray | None]:
    """The Dirichlet shares of each root: what its priors become when the noise is everything."""
    if config.noise_fraction == 0 or config.gumbel_actions:
        return [None] * len(positions)
    count = len(positions)
    search = make_search(positions[0].game, replace(config, noise_fraction=1.0), neutral, count, seed)
    search.start(np.arange(count), states_of(positions), np.arange(count), plies_of(positions))
    return list(dense(search.tree).root_prior)


def row_bytes(result: SearchResult, i: int) -> tuple[bytes, ...]:
    """All that was found for position i, bit for bit."""
    parts = result.visit_counts, result.policy, result.q, result.values, result.actions
    return tuple(part[i].tobytes() for part in parts)


CONFIGS = {
    "plain": BASE,
    "greedy": replace(BASE, c_puct=0.3, fpu_reduction=0.0),
    "wide": replace(BASE, c_puct=4.0, fpu_reduction=-0.5),
    "unproven": replace(BASE, prove=False),
    "flat": replace(BASE, prior_temperature=1.7, noise_fraction=0.25),
    "noise": replace(BASE, noise_fraction=0.25),
    "three-leaves": replace(BASE, leaves_per_step=3),
    "eight-leaves": replace(BASE, leaves_per_step=8, noise_fraction=0.25),
    "eight-leaves-unproven": replace(BASE, leaves_per_step=8, prove=False),
    "gumbel-2": replace(BASE, gumbel_actions=2, noise_fraction=0.25),
    "gumbel-5": replace(BASE, gumbel_actions=5, noise_fraction=0.25, gumbel_value_scale=0.1),
    "gumbel-4-flat": replace(BASE, gumbel_actions=4, noise_fraction=0.25, prior_temperature=2.5),
    "gumbel-16-quiet": replace(BASE, gumbel_actions=16, noise_fraction=0.0, gumbel_visit_offset=10.0),
}
