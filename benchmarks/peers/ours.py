"""The worker that measures this framework: `python -m benchmarks.peers.ours TASK`."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import torch

from alphazero.catalogue import registry
from alphazero.game.kernels import Kernels
from alphazero.nets.resnet import NetConfig
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Evaluate, Search, SearchConfig
from alphazero.training.config import SelfPlayConfig
from alphazero.training.selfplay import SelfPlay, Until
from benchmarks.peers.turns import read_task, serve


def after_ply(worker: SelfPlay) -> Until:
    """Stops self-play as soon as it has played one ply: whole games take minutes, and the peers stop there, too."""
    before = worker.num_positions
    return Until(lambda: worker.num_positions > before)


def stagger(worker: SelfPlay, free: Evaluate) -> None:
    """Gives the worker games at all stages, played with a free network.

    The search asks the network ten times as often in the middle of a game as in its first plies, so the speed of games
    that all begin together depends on how long one measures.
    """
    kernels, slots = worker.kernels, worker.num_slots
    player = SelfPlay(kernels, worker.config, worker.search.config, free, slots, worker.seed)
    state = {name: array.copy() for name, array in player.state().items()}
    plies = np.random.default_rng(0).integers(2 * kernels.game.max_plies, size=slots)
    for ply in range(int(plies.max()) + 1):  # a slot gets its game as it stands after so many plies
        for name, array in player.state().items():
            if array.ndim:
                state[name][plies == ply] = array[plies == ply]
            else:
                state[name] = array
        player.play(slots, after_ply(player))
    worker.restore(state)


def main() -> None:
    task = read_task()
    loaded = registry.load(task["game"])
    kernels, batch, simulations = Kernels(loaded.game), task["batch"], task["simulations"]
    torch.manual_seed(0)
    net = loaded.make_net(loaded.game, asdict(NetConfig(blocks=task["blocks"], channels=task["channels"])))
    net.use_threads(1)
    net.use_inference("auto")
    states = np.array([loaded.game.position(opening).state for opening in task["openings"]])
    states = states[np.arange(batch) % len(states)]
    masks, _, _ = kernels.describe_all(states)
    observations = kernels.observations(states)
    ones, zeros = np.ones(masks.shape, np.float32), np.zeros(batch, np.float32)
    numbers = np.arange(batch)

    def free(leaves: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return ones[: len(leaves)], zeros[: len(leaves)]

    config = SearchConfig(num_simulations=simulations)
    search = Search(kernels, config, free, batch)
    evaluator = Evaluator(kernels, net)
    worker = SelfPlay(kernels, SelfPlayConfig(num_slots=batch), config, evaluator, batch, 0, 0, 1)

    def play() -> int:
        before = worker.num_positions
        worker.play(batch, after_ply(worker))
        return worker.num_positions - before

    def search_free() -> int:
        search.run(states, numbers, numbers * 0)
        return batch * simulations

    def ask() -> int:
        net.evaluate(observations, masks)
        return batch

    stagger(worker, free)
    # a new generation begins with an empty cache, too
    serve({"network": ask, "search": search_free, "self-play": play}, worker.forget)


if __name__ == "__main__":
    main()
