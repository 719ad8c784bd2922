"""The worker that measures OpenSpiel's search in Python, one tree at a time: `python openspiel_tree.py TASK`.

It runs in the peers' environment. Its C++ search takes no network from Python. The network is that of pgx_mctx.py.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pyspiel
from open_spiel.python.algorithms import mcts
from pgx_mctx import LONGEST_START, apply, make_weights
from turns import read_task, serve

NAMES = {"connect4": "connect_four"}
UCT_C, EXPLORATION = 1.5, (0.25, 1.0)
"""The constant of PUCT; share and alpha of the noise at the root."""


class Free(mcts.Evaluator):
    """Answers at once: equal priors, value 0."""

    def evaluate(self, state: Any) -> np.ndarray:
        return np.zeros(2)

    def prior(self, state: Any) -> list[tuple[int, float]]:
        if state.is_chance_node():
            return state.chance_outcomes()
        legal = state.legal_actions()
        return [(action, 1 / len(legal)) for action in legal]


class Network(mcts.Evaluator):
    """Asks the network about one position, and keeps the answers of one search."""

    def __init__(self, ask: Any, shape: tuple[int, ...]):
        self._ask, self._shape = ask, shape
        self.answers: dict[str, tuple[np.ndarray, float]] = {}

    def _answer(self, state: Any) -> tuple[np.ndarray, float]:
        name = state.history_str()
        if name not in self.answers:
            numbers = np.array(state.observation_tensor(state.current_player()), np.float32).reshape(self._shape)
            logits, values = self._ask(_channels_last(numbers)[None])
            self.answers[name] = np.asarray(logits[0]), float(values[0])
        return self.answers[name]

    def evaluate(self, state: Any) -> np.ndarray:
        value = self._answer(state)[1]
        return np.array([value, -value] if state.current_player() == 0 else [-value, value])

    def prior(self, state: Any) -> list[tuple[int, float]]:
        if state.is_chance_node():
            return state.chance_outcomes()
        legal = state.legal_actions()
        logits = self._answer(state)[0][legal]
        weights = np.exp(logits - logits.max())
        return list(zip(legal, weights / weights.sum(), strict=True))


def _channels_last(numbers: np.ndarray) -> np.ndarray:
    """The planes last; a table is one plane, and a list stays as it is."""
    return np.moveaxis(numbers, 0, -1) if numbers.ndim == 3 else numbers[..., None] if numbers.ndim == 2 else numbers


def main() -> None:
    task, random = read_task(), np.random.RandomState(0)
    game, simulations = pyspiel.load_game(NAMES.get(task["game"], task["game"])), task["simulations"]
    shape = tuple(game.observation_tensor_shape())
    weights = make_weights(
        jax.random.PRNGKey(0), _channels_last(np.zeros(shape)).shape, game.num_distinct_actions(), task["net"]
    )
    ask = jax.jit(lambda observations: apply(weights, observations))

    def roll(state: Any) -> Any:
        while state.is_chance_node():
            outcomes, probabilities = zip(*state.chance_outcomes(), strict=True)
            state.apply_action(random.choice(outcomes, p=probabilities))
        return state

    def after(actions: list[int]) -> Any:
        state = game.new_initial_state()
        for action in actions:
            state.apply_action(action)
        return roll(state)

    def after_random(plies: int) -> Any:
        state = after([])
        for _ in range(plies):
            state = roll(state)
            if state.is_terminal():
                return after([])
            state.apply_action(random.choice(state.legal_actions()))
        return after([]) if roll(state).is_terminal() else state

    states = [after(opening) for opening in task["openings"]]
    while len(states) < task["batch"]:
        states.append(after_random(random.randint(LONGEST_START)))

    def bot(evaluator: mcts.Evaluator) -> mcts.MCTSBot:
        return mcts.MCTSBot(
            game, UCT_C, simulations, evaluator, dirichlet_noise=EXPLORATION,
            child_selection_fn=mcts.SearchNode.puct_value, random_state=random, dont_return_chance_node=True,
        )  # fmt: skip

    network = Network(ask, shape)
    free_bot, net_bot = bot(Free()), bot(network)
    memory = {"next": 0, "state": after([])}

    def search_free() -> int:
        memory["next"] = (memory["next"] + 1) % len(states)
        free_bot.mcts_search(states[memory["next"]])
        return simulations

    def self_play() -> int:
        state = memory["state"]
        network.answers.clear()
        root, choice = net_bot.mcts_search(state), len(state.legal_actions()) > 1
        state.apply_action(max(root.children, key=lambda child: child.explore_count).action)
        memory["state"] = after([]) if roll(state).is_terminal() else state
        return choice

    def network_alone() -> int:
        network.answers.clear()
        network.evaluate(states[0])
        return 1

    serve({"network": network_alone, "search": search_free, "self-play": self_play})


if __name__ == "__main__":
    main()
