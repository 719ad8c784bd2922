"""The worker that measures a plain max^n search in numpy: `python -m benchmarks.peers.plain_numpy TASK`.

No other program has games for more than two with a search for them, so this is what one would write first: all trees
grow together, a node in each simulation, and every step is one of numpy over the whole batch. It has this framework's
network and its compiled rules. A node holds what the dice showed when it was made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from alphazero.game.kernels import Kernels
from benchmarks.peers.ours import LONGEST_START, make_game_and_net
from benchmarks.peers.turns import read_task, serve

PUCT, SHARE, ALPHA = 1.5, 0.25, 1.0
"""The constant of PUCT; share and alpha of the noise at the root."""


class PlainSearch:
    """Searches a batch of positions, none of which is over, with PUCT; each mover wants the most of its own value."""

    def __init__(self, kernels: Kernels, evaluate: Any, batch: int, simulations: int):
        game, size = kernels.game, simulations + 1
        self.kernels, self.evaluate, self.simulations = kernels, evaluate, simulations
        self.rng = np.random.default_rng(0)
        self.states = np.zeros((batch, size, game.state_words), np.uint64)
        self.movers, self.over = np.zeros((batch, size), np.int8), np.zeros((batch, size), bool)
        self.masks = np.zeros((batch, size, game.num_actions), bool)
        self.priors, self.totals, self.visits = np.zeros((3, *self.masks.shape), np.float32)
        self.children = np.zeros(self.masks.shape, np.int32)
        self.values = np.zeros((batch, size, game.num_players), np.float32)
        """Each player's, the first one's first."""

    def run(self, states: np.ndarray, movers: np.ndarray) -> np.ndarray:
        """The visits `float32[n, A]` of each action."""
        rows = np.arange(len(states))
        self.totals[:], self.visits[:], self.children[:] = 0, 0, 0
        self._open(rows, 0, states, movers)
        noise = self.rng.standard_gamma(ALPHA, self.masks[:, 0].shape) * self.masks[:, 0]
        self.priors[:, 0] += SHARE * (noise / noise.sum(1, keepdims=True) - self.priors[:, 0])
        for node in range(1, self.simulations + 1):
            self._simulate(node)
        return self.visits[:, 0]

    def _simulate(self, node: int) -> None:
        """Goes down each tree, opens a node, and takes its value up."""
        rows = np.arange(len(self.states))
        at, leaves, path, parents = rows * 0, rows * 0, [], []
        while len(rows):
            actions = self._select(rows, at)
            path.append((rows, at, actions))
            children = self.children[rows, at, actions]
            fresh = children == 0
            leaves[rows] = np.where(fresh, node, children)
            parents.append((rows[fresh], at[fresh], actions[fresh]))
            goes_on = ~fresh & ~self.over[rows, children]
            rows, at = rows[goes_on], children[goes_on]
        rows, at, actions = map(np.concatenate, zip(*parents, strict=True))
        if len(rows):
            self.children[rows, at, actions] = node
            states, movers = self.states[rows, at], self.movers[rows, at]
            self.kernels.play(states, movers, actions)
            self.kernels.roll(states, movers, node, rows, rows * 0)
            self._open(rows, node, states, movers)
        values = self.values[np.arange(len(leaves)), leaves]
        for rows, at, actions in path:
            self.totals[rows, at, actions] += values[rows, self.movers[rows, at]]
            self.visits[rows, at, actions] += 1

    def _select(self, rows: np.ndarray, at: np.ndarray) -> np.ndarray:
        visits = self.visits[rows, at]
        scores = self.totals[rows, at] / np.maximum(visits, 1)
        scores += PUCT * self.priors[rows, at] * np.sqrt(visits.sum(1, keepdims=True) + 1) / (1 + visits)
        actions: np.ndarray = np.where(self.masks[rows, at], scores, -np.inf).argmax(1)
        return actions

    def _open(self, rows: np.ndarray, node: int, states: np.ndarray, movers: np.ndarray) -> None:
        masks, over, values = self.kernels.describe_all(states)
        if not over.all():
            asked = states[~over]
            self.priors[rows[~over], node], values[~over] = self.evaluate(asked, masks[~over])
        seats = (np.arange(values.shape[1]) - movers[:, None]) % values.shape[1]
        self.values[rows, node] = np.take_along_axis(values, seats, axis=1)
        self.states[rows, node], self.movers[rows, node] = states, movers
        self.masks[rows, node], self.over[rows, node] = masks, over


def main() -> None:
    task = read_task()
    kernels, net = make_game_and_net(task)
    game, batch, simulations, rng = kernels.game, task["batch"], task["simulations"], np.random.default_rng(0)
    numbers = np.arange(batch)

    def ask(states: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return net.evaluate(kernels.observations(states), masks)

    def free(states: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return masks / masks.sum(1, keepdims=True), np.zeros((len(states), game.num_players), np.float32)

    def play(actions: np.ndarray, ply: int) -> None:
        """Plays in all games; those that are over begin anew."""
        kernels.play(states, movers, actions)
        kernels.roll(states, movers, 0, numbers, numbers * 0 + ply)
        over = kernels.describe_all(states)[1]
        states[over], movers[over] = kernels.rolled_states(batch)[over], 0

    states, movers, plies = (
        kernels.rolled_states(batch),
        np.zeros(batch, np.int8),
        rng.integers(LONGEST_START, size=batch),
    )
    for ply in range(LONGEST_START):  # games at all stages
        noise = rng.random((batch, game.num_actions)) * kernels.describe_all(states)[0]
        play(np.where(ply < plies, noise.argmax(1), -1), ply)
    observations, masks = kernels.observations(states), kernels.describe_all(states)[0]
    searches, memory = {"free": PlainSearch(kernels, free, batch, simulations)}, {"ply": LONGEST_START}
    searches["net"] = PlainSearch(kernels, ask, batch, simulations)

    def search_free() -> int:
        searches["free"].run(states, movers)
        return batch * simulations

    def self_play() -> int:
        visits = searches["net"].run(states, movers)
        choices = int((kernels.describe_all(states)[0].sum(1) > 1).sum())
        memory["ply"] += 1
        play(visits.argmax(1), memory["ply"])
        return choices

    def network_alone() -> int:
        net.evaluate(observations, masks)
        return batch

    serve({"network": network_alone, "search": search_free, "self-play": self_play})


if __name__ == "__main__":
    main()
