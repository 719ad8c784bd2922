"""Connect Four positions of known worth, and players with planted answers, for tests of the benchmark and players."""

import functools

import numpy as np

from alphazero.catalogue import registry
from alphazero.game import Position
from alphazero.matches.judge import Labelled
from alphazero.players.contestants import make_player
from alphazero.players.player import Assessment, Player
from games.connect4.benchmark import load_frozen
from games.connect4.solver import GAME

CONNECT_4 = registry.load("connect4")


def after(moves: str) -> Position:
    return GAME.position([int(move) - 1 for move in moves])


def state_after(moves: str) -> np.ndarray:
    return after(moves).state


def written(position: Position) -> str:
    return "".join(str(action + 1) for action in position.actions)


def labelled_of(rows: list[tuple[str, list[int]]], values: list[tuple[str, int]] = ()) -> Labelled:
    states, value_states = (
        np.array([state_after(moves) for moves, _ in part], np.uint64).reshape(-1, 2) for part in (rows, values)
    )
    scores = np.array([scores for _, scores in rows], np.int8).reshape(-1, 7)
    return Labelled(
        [moves for moves, _ in rows], states, scores, value_states, np.array([x for _, x in values], np.int8)
    )


class Planted(Player):
    """Answers by the position, as planted."""

    name = "planted"

    def __init__(self, actions: dict[str, int], policies: dict[str, list[float]] | None = None, values=None):
        self._actions, self._policies, self._values = (
            planted and {tuple(state_after(moves).tolist()): answer for moves, answer in planted.items()}
            for planted in (actions, policies, values)
        )

    def select_actions(self, states, games, plies):
        return self.assess(states, games, plies).actions

    def assess(self, states, games, plies):
        keys = [tuple(state.tolist()) for state in states]
        actions = np.array([self._actions.get(key, 0) for key in keys])
        policy = self._policies and np.array([self._policies.get(key, [1 / 7] * 7) for key in keys], np.float32)
        values = self._values and np.array([self._values.get(key, 0.0) for key in keys], np.float64)
        return Assessment(actions, policy, values)


@functools.cache
def late_positions() -> Labelled:
    """400 positions of the frozen set from ply 20 on, and 400 others."""
    frozen = load_frozen()
    rows = np.random.default_rng(1).permutation(np.flatnonzero(plies_of(frozen) >= 20))[:400]
    return Labelled(
        [frozen.names[row] for row in rows], frozen.states[rows], frozen.scores[rows], frozen.value_states[rows],
        frozen.value_scores[rows],
    )  # fmt: skip


def plies_of(labelled: Labelled) -> np.ndarray:
    return np.bitwise_count(labelled.states).sum(axis=1, dtype=np.int64)


def open_player(text: str, seed: int = 1, threads: int = 1, **more) -> Player:
    return make_player(text, CONNECT_4, seed=seed, threads=threads, **more)


def states_of(positions: list[Position]) -> np.ndarray:
    return np.array([position.state for position in positions], np.uint64).reshape(-1, 2)


def random_position(rng: np.random.Generator, ply: int) -> Position:
    """After `ply` random plies, not over."""
    while True:
        position = GAME.start()
        while position.ply < ply and not position.terminal:
            position = position.play(int(rng.choice(position.legal_actions)))
        if not position.terminal:
            return position
