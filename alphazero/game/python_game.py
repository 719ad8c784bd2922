"""Games whose positions are Python objects, such as those of a wrapped library: slower, but nothing else changes.

A state's words hold the actions and outcomes of dice so far, so states can be stored, compared and sent like those of
any game. The objects behind recent states are remembered; older ones are made again by playing the actions.
"""

from __future__ import annotations

import threading
import uuid
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from alphazero.errors import GameError
from alphazero.game.board import Clicks
from alphazero.game.game import Game, Position
from alphazero.game.rules import Rules
from alphazero.game.views import clicks_by_difference

REMEMBERED = 1 << 17
"""So many positions are remembered, those that were asked for last; fewer in long games."""
REMEMBERED_PLIES = 1 << 23
"""The remembered positions have at most about so many plies in all: objects of long games are large."""


class PythonGame(Game):
    """Subclasses set `name`, `num_actions`, `max_plies` and `observation_shape`, then call `prepare`.

    An object is never changed once it is made: `after` gives a new one.
    """

    compiled = False

    @abstractmethod
    def begin(self) -> Any:
        """The start position."""

    @abstractmethod
    def after(self, position: Any, action: int) -> Any:
        """The position after a legal action, or after an outcome where a die is due."""

    @abstractmethod
    def allowed(self, position: Any) -> Iterable[int]:
        """The legal actions of a position that is not over."""

    @abstractmethod
    def over(self, position: Any) -> bool:
        """The game is over."""

    @abstractmethod
    def result(self, position: Any) -> float:
        """-1, 0 or 1 for the player to move at the end."""

    @abstractmethod
    def player(self, position: Any) -> int:
        """The player to move, 0 for the first one; asked of finished games, too."""

    @abstractmethod
    def planes(self, position: Any) -> np.ndarray:
        """The network's view of a position, of shape `observation_shape`."""

    def results(self, position: Any) -> Sequence[float]:
        """In a game for more than two, in place of `result`: each player's, from -1 to 1, the first player's first."""
        raise NotImplementedError

    def odds(self, position: Any) -> Sequence[float]:
        """The probabilities of the die that is due, in a game with `num_outcomes`; none where a player is to move."""
        return ()

    def cut(self, position: Any) -> bool:
        """The game is over only because it has lasted `max_plies`; by its own rules it goes on."""
        return False

    def prepare(self) -> None:
        """Makes the rules, once the sizes are known."""
        bits = max(1, int(max(self.num_actions, self.num_outcomes) - 1).bit_length())
        self._most_moves = (self.max_plies + 1) * (1 + self.dice_in_a_row) - 1 if self.num_outcomes else self.max_plies
        self._bits, self._per_word = bits, 64 // bits
        self.state_words = 1 + -(-self._most_moves // self._per_word)
        self._most_kept = max(1, min(REMEMBERED, REMEMBERED_PLIES // self._most_moves))
        self._kept: OrderedDict[bytes, Any] = OrderedDict()
        self._lock = threading.Lock()

        def legal(state, legal_mask):
            legal_mask[:] = False
            legal_mask[list(self.allowed(self.object_of(state)))] = True

        def chance(state, probabilities):
            odds = self.odds(self.object_of(state))
            probabilities[: len(odds)] = odds
            return len(odds)

        def returns(state, results):
            position = self.object_of(state)
            results[:] = np.roll(self.results(position), -self.player(position))

        def move(state, number):
            self._step(state, int(number))

        self.rules = Rules(
            init=lambda state: state.fill(0),
            legal=legal,
            step=move,
            is_terminal=lambda state: self.over(self.object_of(state)),
            terminal_value=None if self.value_shape else lambda state: self.result(self.object_of(state)),
            observe=lambda state, planes: np.copyto(planes, self.planes(self.object_of(state))),
            to_play=lambda state: self.player(self.object_of(state)),
            chance=chance if self.num_outcomes else None,
            settle=move if self.num_outcomes else None,
            returns=returns if self.value_shape else None,
        )

    def clicks(self, position: Position) -> Clicks:
        return clicks_by_difference(position)

    @cached_property
    def _fingerprint(self) -> str:
        return uuid.uuid4().hex  # what differs between two objects of other people's code cannot be seen

    def actions_of(self, state: np.ndarray) -> list[int]:
        """The actions, and outcomes of dice, that led to a state."""
        if state[0] > self._most_moves:
            raise GameError(f"{self.name}: no game leads to a state of {int(state[0]):,} plies")
        mask = (1 << self._bits) - 1
        places = (divmod(ply, self._per_word) for ply in range(int(state[0])))
        return [int(state[1 + word]) >> self._bits * place & mask for word, place in places]

    def object_of(self, state: np.ndarray) -> Any:
        """The object behind a state, made from the latest remembered one on the way to it."""
        if (found := self._recall(state)) is None:
            actions, earlier = self.actions_of(state), state.copy()
            ply = len(actions)
            while found is None and ply:
                ply -= 1
                word, place = divmod(ply, self._per_word)
                earlier[0], earlier[1 + word] = ply, earlier[1 + word] ^ np.uint64(actions[ply] << self._bits * place)
                found = self._recall(earlier)
            if found is None:
                found = self.begin()
            for action in actions[ply:]:
                found = self.after(found, action)
            self._remember(state, found)
        return found

    def forget(self) -> None:
        """Drops all remembered objects; they are made again by playing the actions."""
        with self._lock:
            self._kept.clear()

    def _recall(self, state: np.ndarray) -> Any:
        with self._lock:
            if (found := self._kept.get(key := state.tobytes())) is not None:
                self._kept.move_to_end(key)
            return found

    def _step(self, state: np.ndarray, action: int) -> None:
        if (ply := int(state[0])) >= self._most_moves:
            law = f"a game must end within `max_plies` = {self.max_plies}, and one goes on"
            raise GameError(f"{self.name}: {law}: {self.too_long}")
        position = self.after(self.object_of(state), action)
        word, place = divmod(ply, self._per_word)
        state[1 + word] |= np.uint64(action << self._bits * place)
        state[0] = np.uint64(ply + 1)
        self._remember(state, position)

    def _remember(self, state: np.ndarray, position: Any) -> None:
        with self._lock:
            self._kept[state.tobytes()] = position
            if len(self._kept) > self._most_kept:
                self._kept.popitem(last=False)
