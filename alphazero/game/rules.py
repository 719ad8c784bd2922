"""The rules of a game, as functions of one position that numba can compile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

MANY, MOST_IN_PAIRS = 256, 1 << 16
"""More actions are many; a pair has 16 bits for an action."""


@dataclass(frozen=True)
class Score:
    """The meaning of `terminal_value` in a game with points.

    >>> Score(-3, 3).value(2), Score(-3, 3).points(0.5)
    (0.6666666666666666, 1.5)
    """

    low: float
    """The fewest points; minus the highest in a game for two, where one player wins what the other loses."""
    high: float
    """The most points; more are won, but the network and the search take them for so many."""
    unit: str = "points"
    """Their name for people."""

    def value(self, points: float) -> float:
        """The points on the scale from -1 to 1, where no points are 0."""
        return min(max(points, self.low), self.high) / self.size

    def points(self, value: float) -> float:
        """The points that a value from -1 to 1 stands for."""
        return value * self.size

    @property
    def size(self) -> float:
        """The points of the value 1."""
        return max(-self.low, self.high)


@dataclass(frozen=True)
class Rules:
    """Scalar functions of one `state` (`uint64[K]`, seen by the player to move); no Python objects inside.

    They are compiled for CPU threads and CUDA alike, so they may use numbers, tuples, module constants
    and other such functions, and nothing else. Words stay `np.uint64`.

    The rules of a race to 100, each player adding 1 to 10 to the sum; who reaches 100 wins:

    >>> import alphazero as az
    >>> def init(state):
    ...     state[0] = 0
    >>> def legal(state, legal_mask):
    ...     for action in range(10):
    ...         legal_mask[action] = state[0] + action + 1 <= 100
    >>> def step(state, action):
    ...     state[0] += action + 1
    >>> def is_terminal(state):
    ...     return state[0] == 100
    >>> def terminal_value(state):
    ...     return -1.0  # the other player has just reached 100
    >>> def observe(state, planes):
    ...     planes[0, 0, state[0]] = 1.0
    >>> rules = az.Rules(init, legal, step, is_terminal, terminal_value, observe)
    """

    init: Callable[..., None]
    """`init(state)` writes the start position."""
    legal: Callable[..., None]
    """`legal(state, legal_mask)` writes all A entries of `bool[A]`; at least one is true unless the game is over."""
    step: Callable[..., None]
    """`step(state, action)` plays a legal action in place; the state is then seen by whoever moves next."""
    is_terminal: Callable[..., bool]
    """`is_terminal(state)`: the game is over."""
    terminal_value: Callable[..., float] | None
    """`terminal_value(state)`: -1, 0 or +1 for the player to move there; asked of terminal states only.
    In a game with a `score` the points of that player, all that the game has brought.
    None in a game for more than two, which has `returns`."""
    observe: Callable[..., None]
    """`observe(state, planes)` fills `float32[P, H, W]`, which comes all zero; the mover's view."""
    to_play: Callable[..., int] | None = None
    """`to_play(state)`: the number of the player to move, from 0. Needed only if players do not take turns in order,
    as where one can move twice in a row, or leave early."""
    transform: Callable[..., None] | None = None
    """`transform(state, symmetry)` applies the game's symmetry of that index in place; lets mirrored positions
    share cache entries and samples."""
    heuristic: Callable[..., float] | None = None
    """`heuristic(state)`: a guess in (-1, 1) for the player to move, used by the baselines `minimax` and `greedy`."""
    chance: Callable[..., int] | None = None
    """`chance(state, probabilities)`: how many outcomes n a die has that is due now; 0 if a player is to move.
    Writes their probabilities, all above 0 and 1 in sum, into the first n entries of `float64[C]`. It is asked after
    `init`, `step` and `settle`, of states that are not terminal; never keep random numbers in the state."""
    settle: Callable[..., None] | None = None
    """`settle(state, outcome)` puts an outcome of the die, 0 to n-1, into effect in place. Another die may be due then.
    Where players alternate, the player to move stays the same."""
    returns: Callable[..., None] | None = None
    """`returns(state, results)`, in a game for more than two: writes the result of each player into `float32[n]`, first
    that of the player to move, then the others' in turn order, in which 0 follows the last number. Each lies between
    -1 and 1, or is points if the game has a `score`. Who gets 1, or the highest score, has won alone: the others'
    results are then always the same.
    Asked of terminal states only."""


def results_of(rules: Rules, state: np.ndarray, to_play: int, num_players: int) -> tuple[float, ...]:
    """Each player's result at the end of a game, by plain rules; the first player's first."""
    if rules.returns is not None:
        results = np.zeros(num_players, np.float32)
        rules.returns(state, results)
        return by_player(results, to_play, num_players)
    assert rules.terminal_value is not None
    return by_player(np.array([rules.terminal_value(state)], np.float64), to_play, num_players)


def by_player(values: np.ndarray, to_play: int, num_players: int) -> tuple[float, ...]:
    """Each player's value, the first player's first, from `values float[V]`, which begin with that of `to_play`."""
    if len(values) > 1:
        return tuple(np.roll(values, to_play).tolist())
    own = float(values[0])
    return (own, -own)[:num_players] if to_play == 0 else (-own, own)


def seen_by(viewers: np.ndarray, players: np.ndarray, values: np.ndarray) -> np.ndarray:
    """`values float32[n]` of the players `int[n]` as the viewers `int[n]` see them.

    Of two players one loses what the other wins. `float32[n, V]`, in a game for more, begins with the viewer's number.
    """
    if values.ndim == 1:
        return np.where(viewers == players, values, -values)
    seats = np.arange(values.shape[1]) + (viewers.astype(np.int64) - players)[:, None]
    return np.take_along_axis(values, seats % values.shape[1], axis=1)


def points_so_far(states: np.ndarray, points_word: int | None) -> np.ndarray:
    """The points `float64[...]` that the `points_word` of a game counts in `uint64[..., K]`; 0 where it is None."""
    counted = np.zeros_like(states[..., 0]) if points_word is None else states[..., points_word]
    return counted.astype(np.int64).astype(np.float64)


def shown_words(game: Any) -> int:
    """The words of a Game's states that are not history."""
    return int(game.state_words - game.history_words)


def room_for_pairs(game: Any) -> int:
    """The pairs of an action and its weight that a row has in a Game with many actions, of which few are legal; it has
    room for three times as many as are legal on average. 0 in other games, whose rows have a number for each action."""
    room = 3 * (game.mean_legal or game.num_actions)
    return room if max(MANY, 2 * room) < game.num_actions <= MOST_IN_PAIRS else 0


def without_points(state: np.ndarray, points_word: int | None) -> np.ndarray:
    """A copy of the state with no points so far."""
    state = state.copy()
    if points_word is not None:
        state[points_word] = 0
    return state
