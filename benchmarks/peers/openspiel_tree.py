"""The worker that measures OpenSpiel's search in Python, one tree at a time: `python openspiel_tree.py TASK`.

It runs in the peers' environment. Its C++ search takes no network from Python. The network is that of pgx_mctx.py.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pyspiel
from open_spiel.python.algorithms import mcts
from pgx_mctx import apply, make_weights
from turns import read_task, serve

NAMES = {"connect4": "connect_four", "othello": "othello"}
UCT_C, EXPLORATION = 1.5, (0.25, 1.0)
"""The constant of PUCT; share and alpha of the noise at the root."""


class Free(mcts.Evaluator):
    """Answers at once: equal priors, value 0."""

    def evaluate(self, state: Any) -> np.ndarray:
        return np.zeros(2)

    def prior(self, state: Any) -> list[tuple[int, float]]:
        legal = state.legal_actions()
        return [(action, 1 / len(legal)) for action in legal]


class Network(mcts.Evaluator):
    """Asks the network about one position, and keeps the answers of one search."""

    def __init__(self, ask: Any, shape: tuple[int, int, int]):
        self._ask, self._shape = ask, shape
        self.answers: dict[str, tuple[np.ndarray, float]] = {}

    def _answer(self, state: Any) -> tuple[np.ndarray, float]:
        name = state.history_str()
        if name not in self.answers:
            planes = np.array(state.observation_tensor(state.current_player()), np.float32).reshape(self._shape)
            logits, values = self._ask(planes.transpose(1, 2, 0)[None])
            self.answers[name] = np.asarray(logits[0]), float(values[0])
        return self.answers[name]

    def evaluate(self, state: Any) -> np.ndarray:
        value = self._answer(state)[1]
        return np.array([value, -value] if state.current_player() == 0 else [-value, value])

    def prior(self, state: Any) -> list[tuple[int, float]]:
        legal = state.legal_actions()
        logits = self._answer(state)[0][legal]
        weights = np.exp(logits - logits.max())
        return list(zip(legal, weights / weights.sum(), strict=True))


def main() -> None:
    task = read_task()
    game, simulations = pyspiel.load_game(NAMES[task["game"]]), task["simulations"]
    planes, height, width = game.observation_tensor_shape()
    weights = make_weights(
        jax.random.PRNGKey(0), (height, width, planes), game.num_distinct_actions(), task["blocks"], task["channels"]
    )
    ask = jax.jit(lambda observations: apply(weights, observations))
    states = []
    for opening in task["openings"]:
        state = game.new_initial_state()
        for action in opening:
            state.apply_action(action)
        states.append(state)

    def bot(evaluator: mcts.Evaluator) -> mcts.MCTSBot:
        return mcts.MCTSBot(
            game, UCT_C, simulations, evaluator, dirichlet_noise=EXPLORATION,
            child_selection_fn=mcts.SearchNode.puct_value, random_state=np.random.RandomState(0),
        )  # fmt: skip

    network = Network(ask, (planes, height, width))
    free_bot, net_bot = bot(Free()), bot(network)
    memory = {"next": 0, "state": game.new_initial_state()}

    def search_free() -> int:
        memory["next"] = (memory["next"] + 1) % len(states)
        free_bot.mcts_search(states[memory["next"]])
        return simulations

    def self_play() -> int:
        state = memory["state"]
        network.answers.clear()
        root = net_bot.mcts_search(state)
        state.apply_action(max(root.children, key=lambda child: child.explore_count).action)
        memory["state"] = game.new_initial_state() if state.is_terminal() else state
        return 1

    def network_alone() -> int:
        network.answers.clear()
        network.evaluate(states[0])
        return 1

    serve({"network": network_alone, "search": search_free, "self-play": self_play})


if __name__ == "__main__":
    main()
