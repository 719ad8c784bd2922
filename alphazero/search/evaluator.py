"""The evaluator between a search and a network: it merges mirror images, removes duplicates and caches answers.

The cache is a table of buckets with four entries each, keyed by the whole state, so positions are never confused. A
full bucket drops its least recently used entry.
"""

from __future__ import annotations

import numpy as np

from alphazero.errors import EvaluationError, InvalidSetting, NetError
from alphazero.game import Position
from alphazero.game.kernels import Kernels, kernel
from alphazero.game.randomness import combine
from alphazero.nets.neural_net import NeuralNet

BUCKET = 4
MOST_BYTES = 1 << 28
"""Most memory of a cache; it limits games with many actions or long states."""


class Evaluator:
    """The `evaluate` of a search, by a network.

    With `sees_wins`, positions in which the mover wins at once never reach the network: their value is 1, and the
    winning actions get all the weight. Networks that only play against themselves misjudge moves that they never play
    (docs/log.md). The network sees canonical states alone, in training too (`Kernels.canonical`).
    The cache has `cache_size` entries (rounded up to a power of two), or as many as fit into 256 MB; 0 turns it off.
    An evaluator belongs to one thread. Raises EvaluationError if the network answers with nan or inf.
    """

    def __init__(self, kernels: Kernels, net: NeuralNet, cache_size: int = 1 << 20, sees_wins: bool = False):
        if cache_size < 0:
            raise InvalidSetting(f"the cache size must be at least 0, not {cache_size}")
        self.kernels, self.net = kernels, net
        self._sees_wins = sees_wins and kernels.game.compiled  # rules that run as Python take longer than the network
        self.num_requests = 0
        """Positions that the search asked for."""
        self.num_evaluations = 0
        """Positions that reached the network."""
        game = kernels.game
        self._permutations = game.symmetries[1]
        fitting = MOST_BYTES // (8 * game.state_words + 4 * game.num_actions + 12)
        most = 1 << max(0, fitting.bit_length() - 3)
        self._num_buckets = min(most, 1 << max(0, (cache_size - 1).bit_length() - 2)) if cache_size else 0
        entries = self._num_buckets * BUCKET
        self._keys = np.zeros((entries, game.state_words), np.uint64)
        self._used = np.zeros(entries, np.int64)
        self._priors = np.zeros((entries, game.num_actions), np.float32)
        self._values = np.zeros(entries, np.float32)
        self._batch = 0

    def clear(self) -> None:
        """Empties the cache, after the weights have changed."""
        self._used[:] = 0
        self._batch = 0

    def __call__(self, states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count = len(states)
        self.num_requests += count
        if count == 0:
            return np.empty((0, self._priors.shape[1]), np.float32), np.empty(0, np.float32)
        states, symmetries = self.kernels.canonical(states)
        self._batch += 1
        entries, misses = np.empty(count, np.int64), np.empty(count, np.int64)
        if self._num_buckets:
            num_misses = find(self._keys, self._used, self._batch, states, entries, misses)
        else:
            num_misses, misses[:], entries[:] = count, np.arange(count), -1 - np.arange(count)
        asked = misses[:num_misses]
        fresh = self._priors[:0], self._values[:0]
        if num_misses:
            masks = np.take_along_axis(legal_masks[asked], self._permutations[symmetries[asked]], axis=1)
            try:
                fresh = self._ask(states[asked], masks)
            except BaseException:
                self.clear()  # this batch's entries have no answers
                raise
        priors, values = np.empty((count, self._priors.shape[1]), np.float32), np.empty(count, np.float32)
        keep_and_fetch(
            self._priors, self._values, entries, asked, *fresh, symmetries, self._permutations, priors, values
        )
        return priors, values

    def _ask(self, states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self._sees_wins:
            return self._ask_network(states, legal_masks)
        priors = self.kernels.winning_actions(states, legal_masks).astype(np.float32)
        values = np.ones(len(states), np.float32)
        rows = np.flatnonzero(~priors.any(axis=1))
        if len(rows):
            priors[rows], values[rows] = self._ask_network(states[rows], legal_masks[rows])
        return priors, values

    def _ask_network(self, states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.num_evaluations += len(states)
        priors, values = self.net.evaluate(self.kernels.observations(states), legal_masks)
        if priors.shape != legal_masks.shape or values.shape != (len(states),):
            raise NetError(
                f"{type(self.net).__name__}.evaluate must give priors of shape {list(legal_masks.shape)} and values of "
                f"shape {[len(states)]}; it gives {list(priors.shape)} and {list(values.shape)}"
            )
        finite = np.isfinite(priors).all(axis=1) & np.isfinite(values)
        if not finite.all():
            row, game = int(np.flatnonzero(~finite)[0]), self.kernels.game
            position = Position(game, states[row].copy(), game.mover(states[row], 0), ())
            raise EvaluationError(
                f"the network's answer is not a finite number (value {values[row]}, priors {priors[row]}) "
                f"for this position:\n{position}"
            )
        return priors, values


@kernel
def find(keys, used, batch, states, entries, misses):
    """Finds the cache entry of every state, or makes one; returns the number of states that the network must see.

    Writes `entries int64[m]`: the entry of each state, whose answer is still to come if the state is new in this
    batch, or -1 - j for the j-th miss if its bucket is full of states of this batch. Writes `misses int64[m]`: the rows
    of the states that the network must see.
    """
    num_buckets = len(used) // BUCKET
    count = 0
    for i in range(len(states)):
        key = np.uint64(0)
        for k in range(states.shape[1]):
            key = combine(key, states[i, k])
        first = int(key % np.uint64(num_buckets)) * BUCKET
        found, oldest = -1, first
        for entry in range(first, first + BUCKET):
            if used[entry] < used[oldest]:
                oldest = entry
            same = used[entry] > 0
            for k in range(states.shape[1]):
                same = same and keys[entry, k] == states[i, k]
            if same:
                found = entry
                break
        if found >= 0:
            used[found] = batch
            entries[i] = found
            continue
        misses[count] = i
        if used[oldest] == batch:
            entries[i] = -1 - count
        else:
            used[oldest] = batch
            for k in range(states.shape[1]):
                keys[oldest, k] = states[i, k]
            entries[i] = oldest
        count += 1
    return count


@kernel
def keep_and_fetch(
    cached_priors, cached_values, entries, misses, fresh_priors, fresh_values, symmetries, permutations, priors, values,
):  # fmt: skip
    """Writes the network's answers into the cache, and the answer for every state into `priors`, `values`.

    Answers are for canonical states: the canonical state's action a is the state's own action `permutations[s, a]`.
    """
    for j in range(len(misses)):
        entry = entries[misses[j]]
        if entry >= 0:
            cached_values[entry] = fresh_values[j]
            for action in range(priors.shape[1]):
                cached_priors[entry, action] = fresh_priors[j, action]
    for i in range(len(entries)):
        entry = entries[i]
        values[i] = cached_values[entry] if entry >= 0 else fresh_values[-1 - entry]
        for action in range(priors.shape[1]):
            own = permutations[symmetries[i], action]
            priors[i, own] = cached_priors[entry, action] if entry >= 0 else fresh_priors[-1 - entry, action]
