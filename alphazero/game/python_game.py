"""Games whose positions are Python objects, such as those of a wrapped library: slower, but nothing else changes.

A state's words hold the actions played so far, so states can be stored, compared and sent like those of any game. The
objects behind recent states are remembered; older ones are made again by playing the actions.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

import numpy as np

from alphazero.errors import GameError
from alphazero.game.board import Clicks
from alphazero.game.game import Game, Position
from alphazero.game.rules import Rules
from alphazero.game.views import clicks_by_difference

REMEMBERED = 1 << 16
"""At least so many positions are remembered, and at most twice as many; fewer in long games."""
REMEMBERED_PLIES = 1 << 22
"""The remembered positions have at most about so many plies in all: objects of long games are large."""

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
        """The player to move, 0 or 1; asked of finished games, too."""

    @abstractmethod
    def planes(self, position: Object) -> np.ndarray:
        """The network's view of a position, of shape `observation_shape`."""

    def cut(self, position: Object) -> bool:
        """The game is over only because it has lasted `max_plies`; by its own rules it goes on."""
        return False

    def mirrored(self, symmetry: int) -> PythonGame[Object] | None:
        """The same game, begun from the image of its start by a symmetry; None if nobody can make it."""
        return None

    def prepare(self) -> None:
        """Makes the rules, once the sizes are known."""
        bits = max(1, int(self.num_actions - 1).bit_length())
        self._bits, self._per_word = bits, 64 // bits
        self.state_words = 1 + -(-self.max_plies // self._per_word)
        self._remembered = max(1, min(REMEMBERED, REMEMBERED_PLIES // self.max_plies))
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

    def clicks(self, position: Position) -> Clicks:
        return clicks_by_difference(position)

    def is_like(self, other: Game) -> bool:
        return self is other  # what differs between two objects of other people's code cannot be seen

    def actions_of(self, state: np.ndarray) -> list[int]:
        """The actions that led to a state."""
        mask = (1 << self._bits) - 1
        words = [int(word) for word in state]
        if words[0] > self.max_plies:
            raise GameError(f"{self.name}: no game leads to a state of {words[0]:,} plies")
        places = (divmod(ply, self._per_word) for ply in range(words[0]))
        return [words[1 + word] >> self._bits * place & mask for word, place in places]

    def object_of(self, state: np.ndarray) -> Object:
        """The object behind a state."""
        found = self._recall(state.tobytes())
        if found is None:
            actions = self.actions_of(state)
            start, found = self._longest_known(state, actions)
            for action in actions[start:]:
                found = self.after(found, action)
            self._remember(state.tobytes(), found)
        return found

    def forget(self) -> None:
        """Drops all remembered objects; they are made again by playing the actions."""
        with self._lock:
            self._young, self._old = {}, {}

    def _recall(self, key: bytes) -> Object | None:
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self._remember(key, found)
        return found

    def _longest_known(self, state: np.ndarray, actions: list[int]) -> tuple[int, Object]:
        """The latest position on the way to `state` that is remembered, and its ply."""
        earlier = state.copy()
        for ply in range(len(actions) - 1, 0, -1):
            word, place = divmod(ply, self._per_word)
            earlier[1 + word] ^= np.uint64(actions[ply] << self._bits * place)
            earlier[0] = np.uint64(ply)
            found = self._recall(earlier.tobytes())
            if found is not None:
                return ply, found
        return 0, self.begin()

    def _step(self, state: np.ndarray, action: int) -> None:
        ply = int(state[0])
        if ply >= self.max_plies:
            law = f"a game must end within `max_plies` = {self.max_plies}, and one goes on"
            raise GameError(f"{self.name}: {law}: {self.too_long}")
        position = self.after(self.object_of(state), action)
        word, place = divmod(ply, self._per_word)
        state[1 + word] |= np.uint64(action << self._bits * place)
        state[0] = np.uint64(ply + 1)
        self._remember(state.tobytes(), position)

    def _remember(self, key: bytes, position: Object) -> None:
        with self._lock:
            if len(self._young) >= self._remembered:
                self._old, self._young = self._young, {}
            self._young[key] = position
