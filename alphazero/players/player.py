"""Players: positions in, actions out; nothing is kept between calls, and chance depends on (seed, game, ply) alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from alphazero.errors import InvalidSetting
from alphazero.game import Game, Position
from alphazero.game.kernels import kernel
from alphazero.game.randomness import MOVE, TIE, make_key, uniform
from alphazero.settings import check_ranges


@dataclass(frozen=True)
class Assessment:
    """A player's opinion of n positions, as far as it has one."""

    actions: np.ndarray
    """`int64[n]`: the actions that it plays."""
    policy: np.ndarray | None = None
    """`float[n, A]`: the share of each action, rows sum to 1."""
    values: np.ndarray | None = None
    """`float[n]` in [-1, 1], for the player to move."""


class Player(ABC):
    """Chooses an action for every position of a batch.

    >>> import alphazero as az
    >>> class FirstLegal(az.Player):
    ...     name = "first"
    ...     def __init__(self, game):
    ...         self.kernels = az.Kernels(game)
    ...     def select_actions(self, states, games, plies):
    ...         legal_masks, _, _ = self.kernels.describe_all(states)
    ...         return legal_masks.argmax(axis=1)
    >>> game = az.load_game("tictactoe")
    >>> az.match(FirstLegal(game), "minimax:4", game, games=20).score < 0.5
    True
    """

    name: str
    """The player's name in results; that of its class, if it has none."""
    one_at_a_time: bool = False
    """The player follows one game only: the arena plays the games one after the other."""

    @abstractmethod
    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        """Legal actions `int64[n]` for `states uint64[n, K]`, none of them terminal, n at least 1.

        `games`, `plies int64[n]`: the number of the game in its match and the actions played in it so far.
        """

    def assess(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> Assessment:
        """The actions of `select_actions`, with the policy and values behind them."""
        return Assessment(self.select_actions(states, games, plies))

    def interrupt(self) -> None:  # noqa: B027
        """Lets a call that runs on another thread, or else the next one, soon raise Stopped or Forfeit."""


class FollowingPlayer(Player):
    """Chooses by whole positions, which know their history, instead of states."""

    one_at_a_time = True

    def __init__(self, game: Game):
        self._game = game

    @abstractmethod
    def choose(self, position: Position, game: int) -> int:
        """A legal action at `position`, which knows its history, in the game of that number.

        Raises Forfeit to lose the game, or TakeBack to have it go on from an earlier position.
        """

    def meet(self, opponent: Player) -> None:
        """Called before a match with the opponent."""

    def select_actions(self, states: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        """Actions for start positions; raises InvalidSetting for others, since their history is not known."""
        if plies.any():
            raise InvalidSetting(f"{self.name} follows whole games, and cannot be asked about single positions")
        return np.array([self.choose(self._game.start(), int(game)) for game in games])


class Forfeit(Exception):
    """A following player gives up its game; `str(error)` says why."""


class TakeBack(Exception):
    """A following player takes moves back: its game goes on from the position after the first `ply` actions."""

    def __init__(self, ply: int):
        super().__init__(f"back to ply {ply}")
        self.ply = ply


@dataclass(frozen=True)
class Temperature:
    """The temperature T of a player: it draws an action in proportion to weight^(1/T); T = 0 takes the best."""

    temperature: float = 0.0
    """T at the start of a game."""
    temperature_plies: int = 1 << 30
    """From this ply on T is `final_temperature`; the plies of the opening count."""
    final_temperature: float = 0.0

    def __post_init__(self) -> None:
        check_ranges(self, "the", temperature=(0, 100), final_temperature=(0, 100), temperature_plies=(0, math.inf))

    def at(self, plies: np.ndarray) -> np.ndarray:
        """T, `float64[n]`, after so many plies, `int64[n]`."""
        return np.where(plies < self.temperature_plies, self.temperature, self.final_temperature)


BEST = Temperature()


@kernel
def draw(weights, seed, games, plies, purpose, actions):
    """Writes `actions int64[n]`, each drawn by its `weights float64[n, A]` with the key (seed, game, ply, purpose)."""
    for i in range(len(weights)):
        left = uniform(make_key(seed, games[i], plies[i], purpose), 0) * weights[i].sum()
        for action in range(weights.shape[1]):
            if weights[i, action] > 0.0:
                actions[i] = action
                left -= weights[i, action]
                if left < 0.0:
                    break


class Chooser:
    """Draws actions for one seed."""

    def __init__(self, seed: int):
        self._seed = seed

    def by_weight(self, weights: np.ndarray, games: np.ndarray, plies: np.ndarray, purpose: int = MOVE) -> np.ndarray:
        """`int64[n]` with probabilities in proportion to `weights [n, A]`."""
        actions = np.empty(len(weights), np.int64)
        draw(weights.astype(np.float64), self._seed, games, plies, purpose, actions)
        return actions

    def at_temperature(
        self, temperature: Temperature, weights: np.ndarray, best: np.ndarray, games: np.ndarray, plies: np.ndarray
    ) -> np.ndarray:
        """`int64[n]`: drawn by `weights [n, A]` where the temperature is above 0, else `best int64[n]`."""
        temperatures = temperature.at(plies)
        rows = np.flatnonzero(temperatures > 0)
        actions = best.copy()
        if len(rows):
            weights = weights[rows].astype(np.float64)
            sharpened = (weights / weights.max(axis=1, keepdims=True)) ** (1 / temperatures[rows, None])
            actions[rows] = self.by_weight(sharpened, games[rows], plies[rows])
        return actions

    def best(self, scores: np.ndarray, games: np.ndarray, plies: np.ndarray) -> np.ndarray:
        """`int64[n]` of the highest score in `[n, A]`; equally good ones are equally likely."""
        return self.by_weight(scores == scores.max(axis=1, keepdims=True), games, plies, TIE)
