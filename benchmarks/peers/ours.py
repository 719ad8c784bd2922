"""The worker that measures this framework: `python -m benchmarks.peers.ours TASK`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from alphazero.catalogue import registry
from alphazero.game.kernels import Kernels
from alphazero.nets.neural_net import NeuralNet
from alphazero.nets.resnet import NetConfig, make_net
from alphazero.search.evaluator import Evaluator
from alphazero.search.mcts import Evaluate, Search, SearchConfig
from alphazero.training.config import SelfPlayConfig
from alphazero.training.replay_buffer import Samples
from alphazero.training.selfplay import SelfPlay, Until
from benchmarks.peers.turns import read_task, serve

LONGEST_START = 200
"""Plies, at most, before the games of self-play."""


class Counted(SelfPlay):
    """Counts the positions with a choice; and stops when it has played a ply in each game, on average.

    Whole games take minutes, and the peers stop after a ply, too.
    """

    num_choices = 0

    def _play_ply(self, slots: np.ndarray, go_on: bool) -> Samples:
        masks, _, _ = self.kernels.describe_all(self.states[slots])
        self.num_choices += int((masks.sum(axis=1) > 1).sum())
        return super()._play_ply(slots, go_on)

    def play_on(self) -> int:
        """Plays and returns the number of positions with a choice."""
        before, enough = self.num_choices, self.num_positions + self.num_slots
        self.play(self.num_slots, Until(lambda: self.num_positions >= enough), search_anew=False)
        return self.num_choices - before


def stagger(worker: SelfPlay, free: Evaluate) -> None:
    """Gives the worker games at all stages, played with a free network.

    The search asks the network ten times as often in the middle of a game as in its first plies, so the speed of games
    that all begin together depends on how long one measures.
    """
    kernels, slots = worker.kernels, worker.num_slots
    player = Counted(kernels, worker.config, worker.search.config, free, slots, worker.seed)
    most = min(2 * kernels.game.max_plies, LONGEST_START)
    plies = np.random.default_rng(0).integers(most, size=slots)
    own = worker.state()
    for ply in range(int(plies.max()) + 1):  # a slot gets its game as it stands after so many plies
        for name, array in player.state().items():
            if array.ndim:
                at = (plies == ply, slice(ply + 1)) if name.startswith("past_") else plies == ply
                own[name][at] = array[at]
        player.play_on()
    worker.next_game = player.next_game


def make_game_and_net(task: dict[str, Any]) -> tuple[Kernels, NeuralNet]:
    """The task's game, and its network with random weights on one thread."""
    loaded = registry.load(task["game"])
    game = loaded.game
    torch.manual_seed(0)
    if task["game"].startswith(("backgammon", "cantstop")):
        net = loaded.make_net(game, dict(zip(("value_units", "policy_units"), task["net"], strict=True)))
    else:
        make = make_net if task["considered"] else loaded.make_net
        net = make(game, asdict(NetConfig(*task["net"])))
    net.use_threads(1)
    net.use_inference(task.get("inference", "auto"))
    return Kernels(game), net


def main() -> None:
    task = read_task()
    kernels, net = make_game_and_net(task)
    game, batch, simulations = kernels.game, task["batch"], task["simulations"]
    config = SearchConfig(num_simulations=simulations, gumbel_actions=task["considered"])

    def free(leaves: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return ones[: len(leaves)], zeros[: len(leaves)]

    ones = np.ones((batch, game.num_actions), np.float32)
    zeros = np.zeros((batch, *game.value_shape), np.float32)
    worker = Counted(kernels, SelfPlayConfig(num_slots=batch), config, Evaluator(kernels, net), batch, 0, 0, 1)
    stagger(worker, free)
    states = np.array([game.position(opening).state for opening in task["openings"]] or worker.states)
    states = states[np.arange(batch) % len(states)]
    masks, _, _ = kernels.describe_all(states)
    observations, numbers = kernels.observations(states), np.arange(batch)
    search = Search(kernels, config, free, batch)

    def search_free() -> int:
        search.run(states, numbers, numbers * 0)
        return batch * simulations

    def ask() -> int:
        net.evaluate(observations, masks)
        return batch

    # a new generation begins with an empty cache, too
    serve({"network": ask, "search": search_free, "self-play": worker.play_on}, worker.forget)


if __name__ == "__main__":
    main()
