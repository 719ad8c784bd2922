"""Connect Four positions of known worth, and players with planted answers, for tests of the benchmark and players."""

import functools

import numpy as np

from alphazero.catalogue import registry
from alphazero.game import Position
from alphazero.players.contestants import make_player
from alphazero.players.player import Assessment, Player
from games.connect4.solver.labelled import Labelled, load_frozen
from games.connect4.solver.notation import GAME

CONNECT_4 = registry.load("connect4")


def state_after(moves: str) -> np.ndarray:
    return GAME.position([int(move) - 1 for move in moves]).state


def labelled_of(rows: list[tuple[str, list[int]]], values: list[tuple[str, int]] = ()) -> Labelled:
    return Labelled(
        [moves for moves, _ in rows],
        np.array([state_after(moves) for moves, _ in rows], np.uint64).reshape(-1, 2),
        np.array([scores for _, scores in rows], np.int8).reshape(-1, 7),
        [moves for moves, _ in values],
        np.array([state_after(moves) for moves, _ in values], np.uint64).reshape(-1, 2),
        np.array([score for _, score in values], np.int8),
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


def part_of(labelled: Labelled, rows: np.ndarray) -> Labelled:
    return Labelled(
        [labelled.moves[row] for row in rows], labelled.states[rows], labelled.column_scores[rows],
        [labelled.value_moves[row] for row in rows], labelled.value_states[rows], labelled.value_scores[rows],
    )  # fmt: skip


@functools.cache
def late_positions() -> Labelled:
    """400 positions of the frozen set from ply 20 on."""
    frozen = load_frozen()
    rows = np.flatnonzero([len(moves) >= 20 for moves in frozen.moves])
    return part_of(frozen, np.random.default_rng(1).permutation(rows)[:400])


def plies_of(labelled: Labelled) -> np.ndarray:
    return np.array([len(moves) for moves in labelled.moves])


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
