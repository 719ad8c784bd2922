"""Random playouts: games played at random from a position to the end.

The templates call the rules by name; `Kernels.bind` compiles them for one game, as in `alphazero.game.kernels`.
"""

from __future__ import annotations

import numpy as np

from alphazero.game.kernels import Kernels
from alphazero.game.randomness import CHANCE, ROLLOUT, combine, make_key, uniform


def _play_at_random(state, mark, legal_mask):
    """Plays a legal action, all equally likely if `mark` is uniform in (0, 1); `legal_mask bool[A]`: scratch space."""
    legal(state, legal_mask)
    num_legal = 0
    for action in range(len(legal_mask)):
        num_legal += legal_mask[action]
    choice = int(mark * num_legal)
    for action in range(len(legal_mask)):
        if legal_mask[action]:
            if choice == 0:
                step(state, action)
                break
            choice -= 1


def _roll_out(states, seed, state, legal_mask, probabilities, outcomes, values):
    """Plays random games to the end; `values float32[n, V]` are the results as of `states`: see `Game.value_shape`.

    The games depend on (seed, state) alone. `state uint64[K]`, `legal_mask bool[A]`, `probabilities float64[C]` and
    `outcomes int64[0]` are scratch space.
    """
    seats = values.shape[1]
    for i in range(len(states)):
        key = make_key(seed, 0, 0, ROLLOUT)
        for word in range(len(state)):
            state[word] = states[i, word]
            key = combine(key, state[word])
        player = first = mover(state, 0)
        ply = 0
        while not is_terminal(state):
            play_at_random(state, uniform(key, ply), legal_mask)
            player = mover(state, following(player))
            ply += 1
            player = roll_dice(state, player, combine(combine(key, CHANCE), ply), probabilities, outcomes)
        write_result(state, values, i)
        values[i, 0] = min(max(values[i, 0] + gained(states[i], state), -1.0), 1.0)
        if seats == 1 and player != first:
            values[i, 0] = -values[i, 0]
        for _ in range((first - player) % seats):  # the last mover's number is the first one: turn them
            turned = values[i, 0]
            for seat in range(seats - 1):
                values[i, seat] = values[i, seat + 1]
            values[i, seats - 1] = turned


class Playouts:
    """An `evaluate` for the search: equal priors, and the result of one random game as the value."""

    def __init__(self, kernels: Kernels, seed: int):
        self._game, self._seed = kernels.game, seed
        self._kernel = kernels.bind(_roll_out, _play_at_random)

    def __call__(self, states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        game = self._game
        values = np.empty((len(states), game.num_values), np.float32)
        state, mask = np.empty(game.state_words, np.uint64), np.empty(game.num_actions, bool)
        self._kernel(states, self._seed, state, mask, np.empty(game.num_outcomes), np.empty(0, np.int64), values)
        return legal_masks.astype(np.float32), values.reshape(-1, *game.value_shape)
