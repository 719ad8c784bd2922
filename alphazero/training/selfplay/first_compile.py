"""Compiles all that a generation calls, before the clock of a run starts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from alphazero.game.kernels import Kernels
from alphazero.matches.openings import choose_openings
from alphazero.nets.neural_net import NeuralNet
from alphazero.players.net_players import make_net_player
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import SearchConfig
from alphazero.search.placement import runs_on_cuda
from alphazero.training.config import SelfPlayConfig
from alphazero.training.health import count_positions
from alphazero.training.selfplay.games import SelfPlay


def compile_all(kernels: Kernels, config: SelfPlayConfig, search: SearchConfig, net: NeuralNet) -> None:
    """Plays a game with few simulations and no network; asks the network, and chooses a move and an opening, once.

    What a run computes does not depend on it. Of a game whose rules run as plain Python, the search alone is compiled,
    and no game is played; a search on the GPU has compiled its code when it was made.
    """
    if runs_on_cuda(kernels, net):
        return
    quick = replace(search, num_simulations=2, leaves_per_step=1)
    states, zero = kernels.start_states(1), np.zeros(1, np.int64)
    make_net_player("", kernels, net, quick, seed=0, threads=1).select_actions(states, zero, zero)
    if not kernels.game.compiled:
        return
    SelfPlay(kernels, config, quick, _equal_priors, 1, seed=0).play(1)
    masks, _, _ = kernels.describe_all(states)
    Evaluator(kernels, net, cache_size=4, sees_wins=True)(states, masks)
    choose_openings(kernels.game, 1, 0)
    count_positions(kernels)


def _equal_priors(states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return legal_masks.astype(np.float32), np.zeros(len(states), np.float32)
