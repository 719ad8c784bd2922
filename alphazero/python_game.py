"""Games whose positions are Python objects, such as those of a wrapped library: slower, but nothing else changes.

A state's words hold the actions played so far. They say all about a position, so that they can be stored, compared and
sent elsewhere like the states of any game; the objects behind recent ones are remembered, others are played anew.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import numpy as np

from alphazero.game import Game, Rules

REMEMBERED = 1 << 16
"""Positions that are remembered at least; twice as many at most."""

Object = TypeVar("Object")


class PythonGame(Game, Generic[Object]):
    """Subclasses set `name`, `num_actions`, `max_plies` and `observation_shape`, then call `prepare`.

    An object is never changed once it is made: `after` gives a new one.
    """

    compiled = False

    @abstractmethod
    def begin(self) -> Object:
        """The start position."""

    @abstractmethod
    def after(self, position: Object, action: int) -> Object:
        """The position after a legal action."""

    @abstractmethod
    def allowed(self, position: Object) -> Iterable[int]:
        """The legal actions of a position that is not over."""

    @abstractmethod
    def over(self, position: Object) -> bool:
        """The game is over."""

    @abstractmethod
    def result(self, position: Object) -> float:
        """-1, 0 or 1 for the player to move at the end."""

    @abstractmethod
    def player(self, position: Object) -> int:
        """Who moves, 0 or 1; also at the end."""

    @abstractmethod
    def planes(self, position: Object) -> np.ndarray:
        """What the network sees, `observation_shape`."""

    def prepare(self) -> None:
        """Makes the rules, once the sizes are known."""
        bits = max(1, int(self.num_actions - 1).bit_length())
        self._bits, self._per_word = bits, 64 // bits
        self.state_words = 1 + -(-self.max_plies // self._per_word)
        self._young: dict[bytes, Object] = {}
        self._old: dict[bytes, Object] = {}
        self._lock = threading.Lock()

        def init(state):
            state[:] = 0

        def legal(state, legal_mask):
            legal_mask[:] = False
            legal_mask[list(self.allowed(self.object_of(state)))] = True

        def step(state, action):
            self._step(state, int(action))

        def is_terminal(state):
            return self.over(self.object_of(state))

        def terminal_value(state):
            return self.result(self.object_of(state))

        def observe(state, planes):
            planes[:] = self.planes(self.object_of(state))

        def to_play(state):
            return self.player(self.object_of(state))

        self.rules = Rules(init, legal, step, is_terminal, terminal_value, observe, to_play=to_play)

    def actions_of(self, state: np.ndarray) -> list[int]:
        """The actions that led to a state."""
        mask = (1 << self._bits) - 1
        words = [int(word) for word in state]
        places = (divmod(ply, self._per_word) for ply in range(words[0]))
        return [words[1 + word] >> self._bits * place & mask for word, place in places]

    def object_of(self, state: np.ndarray) -> Object:
        """The object behind a state."""
        key = state.tobytes()
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None:
                found = self.begin()
                for action in self.actions_of(state):
                    found = self.after(found, action)
            self._remember(key, found)
        return found

    def _step(self, state: np.ndarray, action: int) -> None:
        position = self.after(self.object_of(state), action)
        ply = int(state[0])
        word, place = divmod(ply, self._per_word)
        if ply < self.max_plies:  # beyond it nobody reads the state: the game is refused
            state[1 + word] |= np.uint64(action << self._bits * place)
        state[0] = np.uint64(ply + 1)
        self._remember(state.tobytes(), position)

    def _remember(self, key: bytes, position: Object) -> None:
        with self._lock:
            if len(self._young) >= REMEMBERED:
                self._old, self._young = self._young, {}
            self._young[key] = position


def as_planes(values: Any, shape: tuple[int, int, int]) -> np.ndarray:
    """`float32` of that shape from any array of as many numbers."""
    return np.asarray(values, np.float32).reshape(shape)
