"""A Connect Four network's figures in every generation of a run: policy and value against the solver's truth."""

from __future__ import annotations

from collections.abc import Callable

from alphazero.contestants import CACHE_SIZE
from alphazero.evaluator import Evaluator
from alphazero.game import Game
from alphazero.kernels import Kernels
from alphazero.neural_net import NeuralNet
from alphazero.players import PolicyPlayer
from games.connect4.labelled import load_frozen
from games.connect4.pons import FIGURES, judge


def make_benchmark(game: Game, threads: int) -> Callable[[NeuralNet], dict[str, float]]:
    """Scores a network, without a search, on the frozen set."""
    kernels, labelled = Kernels(game), load_frozen()

    def benchmark(net: NeuralNet) -> dict[str, float]:
        evaluates = [Evaluator(kernels, net, CACHE_SIZE) for _ in range(threads)]
        player = PolicyPlayer("", kernels, evaluates, seed=0, use_threads=net.use_threads)
        figures = judge(player, labelled).figures()
        return {f"pons_{name}": round(figures[name], 5) for name in FIGURES}

    return benchmark
