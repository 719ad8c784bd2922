"""The evaluator between a search and a network: it merges mirror images, removes duplicates and caches answers.

The cache is a table of buckets with four entries each, keyed by the whole state but for its history, so positions are
never confused. A full bucket drops its least recently used entry.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from alphazero.errors import EvaluationError, NetError, quote
from alphazero.game import Game
from alphazero.game.kernels import Kernels, _to_canonical, _wins_by, kernel, of_fixed_types
from alphazero.game.randomness import combine
from alphazero.game.rules import room_for_pairs, shown_words
from alphazero.nets.neural_net import NeuralNet
from alphazero.search.tree import make_arrays
from alphazero.settings import check_function, check_range

FLOAT32 = np.dtype(np.float32)
BUCKET = 4
LARGEST_VALUE = 1 + 1e-3
"""The largest value that is taken for one in [-1, 1], since sums are rounded."""
MOST_BYTES = 1 << 28
"""Most memory of a cache; it limits games with many actions or long states."""
NOWHERE = -(1 << 62)
"""In place of an entry: there is none."""


class Cache(NamedTuple):
    """The table of answers: E entries, in buckets of BUCKET; no entries if nothing is to be kept."""

    keys: Annotated[Any, "uint64[E, K]"]  # the canonical states, without the words of their history
    used: Annotated[Any, "int64[E]"]  # the number of the last batch that asked for the state; 0 in an empty entry
    actions: Annotated[Any, "uint16[E, M]"]  # those with a prior, where `room_for_pairs` says so; M = 0 elsewhere
    priors: Annotated[Any, "float32[E, W]"]  # of these actions, 0 behind them; elsewhere of all actions
    values: Annotated[Any, "float32[E, V]"]


class Batch(NamedTuple):
    """The findings about a batch of n states; the first entries of each array belong to them.

    The m states whose answer is not in the cache are its misses.
    """

    entries: Annotated[Any, "int64[n]"]  # for each state its entry in the cache, or -1 - j if it is miss j
    symmetries: Annotated[Any, "int64[n]"]  # for each state, by which symmetry the canonical one is its image
    misses: Annotated[Any, "int64[n]"]  # for each miss its state
    places: Annotated[Any, "int64[n]"]  # for each miss its entry; NOWHERE if the bucket is full of this batch's states
    asked: Annotated[Any, "int64[n]"]  # for each row of the network's batch its miss
    priors: Annotated[Any, "float32[n, A]"]  # of the misses
    values: Annotated[Any, "float32[n, V]"]  # of the misses


class Evaluator:
    """The `evaluate` of a search, by a network.

    With `sees_wins`, positions in which the mover wins at once never reach the network: their value is 1, and the
    winning actions get all the weight. Networks that only play against themselves misjudge moves that they never play
    (docs/log.md). The network sees canonical states alone, in training too (`Kernels.canonical`).
    The cache has `cache_size` entries (rounded up to a power of two), or as many as fit into 256 MB; 0 turns it off.
    An evaluator belongs to one thread. Raises EvaluationError if the network answers with nan,
    inf, a negative prior, or a value outside of [-1, 1].
    """

    def __init__(self, kernels: Kernels, net: NeuralNet, cache_size: int = 1 << 20, sees_wins: bool = False):
        check_range("the cache size", cache_size, 0)
        self.kernels, self.net = kernels, net
        # rules that run as Python take longer than the network
        sees_wins = sees_wins and kernels.game.compiled and kernels.game.num_players == 2
        self.num_requests = 0
        """Positions that the search asked for."""
        self.num_evaluations = 0
        """Positions that reached the network."""
        game = kernels.game
        self._permutations = kernels.symmetries[1]
        room = room_for_pairs(game)
        row = 6 * room or 4 * game.num_actions
        fitting = int(MOST_BYTES // (8 * shown_words(game) + row + 4 * game.num_values + 8))
        most = 1 << max(0, fitting.bit_length() - 3)
        entries = BUCKET * min(most, 1 << max(0, (cache_size - 1).bit_length() - 2)) if cache_size else 0
        self._sizes = {"A": game.num_actions, "V": game.num_values}
        width = {"M": room, "W": room or game.num_actions}
        self.cache = make_arrays(Cache, np.zeros, E=entries, K=shown_words(game), **width, **self._sizes)
        self._fixed = self.cache, self._permutations, sees_wins, np.empty((3, game.state_words), np.uint64)
        """Arguments of `_look_up` that are always the same."""
        self._number = 0
        self._batch = make_arrays(Batch, np.empty, n=0, **self._sizes)

    def clear(self) -> None:
        """Empties the cache, after the weights have changed."""
        self.cache.used[:] = 0
        self._number = 0

    def __call__(self, states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        count, game, num_actions = len(states), self.kernels.game, self.kernels.game.num_actions
        priors, values = np.empty((count, num_actions), np.float32), np.empty((count, game.num_values), np.float32)
        self.num_requests += count
        if count > len(self._batch.entries):
            self._batch = make_arrays(Batch, np.empty, n=count, **self._sizes)
        self._number += 1
        planes = np.empty((count, *self.kernels.game.observation_shape), np.float32)
        masks = np.empty((count, num_actions), bool)
        states = self.kernels.rows(states)
        legal_masks = np.ascontiguousarray(legal_masks, bool)
        answers = priors[:0], values[:0]
        try:
            num_misses, num_asked = self._look_up(
                states, legal_masks, self._number, *self._fixed, self._batch, planes, masks
            )
            if num_asked:
                self.num_evaluations += num_asked
                given = self.net.evaluate(planes[:num_asked], masks[:num_asked])
                asked = states[self._batch.misses[self._batch.asked[:num_asked]]]
                found = _checked(
                    f"{type(self.net).__name__}.evaluate", given, masks[:num_asked], game,
                    lambda row: self.kernels.canonical(asked[row : row + 1])[0][0],
                )  # fmt: skip
                answers = found[0], found[1].reshape(num_asked, -1)
            _take(*answers, masks, count, num_misses, self.cache, self._batch, self._permutations, priors, values)
        except BaseException:
            self.clear()  # this batch's entries have no answers
            raise
        return priors, values.reshape(count, *game.value_shape)

    @functools.cached_property
    def _look_up(self) -> Callable[..., tuple[int, int]]:
        game = self.kernels.game
        kernel = self.kernels.bind(_look_up, _to_canonical, _wins_by, find_entry)
        return kernel.entry_point(
            self.kernels.start_states(1), np.empty((1, game.num_actions), bool), 0, *self._fixed, self._batch,
            np.empty((1, *game.observation_shape), np.float32), np.empty((1, game.num_actions), bool),
        )  # fmt: skip


class CheckedFunction:
    """A function as the `evaluate` of a search: its answers are checked as those of a network are."""

    def __init__(self, kernels: Kernels, function: Callable[[np.ndarray, np.ndarray], tuple[Any, Any]]):
        check_function("the evaluate of a search", function, "states", "legal_masks")
        self._game, self._function = kernels.game, function
        self._name = f"the function {getattr(function, '__name__', type(function).__name__)}"

    def __call__(self, states: np.ndarray, legal_masks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if len(states) == 0:  # where all leaves are terminal
            return np.empty(legal_masks.shape, np.float32), np.empty((0, *self._game.value_shape), np.float32)
        answer = self._function(states, legal_masks)
        return _checked(self._name, answer, legal_masks, self._game, lambda row: states[row].copy())


def _checked(
    who: str, answer: Any, legal_masks: np.ndarray, game: Game, state_of: Callable[[int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """The answer as `float32[m, A]` and values of the game's shape; these are cut to [-1, 1].

    Raises NetError for an answer that is no such pair of real numbers, EvaluationError for other numbers.
    """
    try:
        priors, values = answer
        if not (_is_plain(priors) and _is_plain(values)):
            priors, values = np.asarray(priors), np.asarray(values)
            if "c" in priors.dtype.kind + values.dtype.kind:  # numpy would drop a part of them
                raise TypeError("they are complex")
            priors, values = np.ascontiguousarray(priors, np.float32), np.ascontiguousarray(values, np.float32)
        if priors.shape != legal_masks.shape or values.shape != (len(legal_masks), *game.value_shape):
            raise ValueError(f"the shapes {priors.shape} and {values.shape}")
    except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:  # torch raises the second
        raise NetError(
            f"{who} must give a pair (priors, values) of real numbers, of the shapes {legal_masks.shape} and "
            f"{(len(legal_masks), *game.value_shape)}, not {quote(answer)}: {' '.join(str(error).split())}"
        ) from error
    cut = np.empty(values.size, np.float32)  # of two dimensions, they would take longer to make than to cut
    wrong = _cut(priors, values.reshape(-1), cut)
    if wrong >= 0:
        state = state_of(wrong)
        raise EvaluationError(
            f"{who} must give finite priors that are not negative, which are no logits, and a value between -1 and 1, "
            f"not the priors {priors[wrong]} and the value {values[wrong]}, for this position:\n"
            f"{game.render(state, game.mover(state, 0))}"
        )
    return priors, cut.reshape(values.shape)


def _is_plain(array: Any) -> bool:
    """An array that kernels take as it is. To find that out takes a third of the time of numpy's conversions."""
    return type(array) is np.ndarray and array.dtype is FLOAT32 and array.flags.c_contiguous


@kernel
def find_entry(keys, used, number, state):
    """The entry of the cache that holds the state, or -1 - e if it is to go into entry e; NOWHERE if there is no room.

    `number` is that of the batch. An entry that is found or given is marked as used in it.
    """
    if len(used) == 0:
        return NOWHERE
    key = np.uint64(0)
    for word in range(keys.shape[1]):
        key = combine(key, state[word])
    first = int(key % np.uint64(len(used) // BUCKET)) * BUCKET
    oldest = first
    for entry in range(first, first + BUCKET):
        if used[entry] < used[oldest]:
            oldest = entry
        same = used[entry] > 0
        for word in range(keys.shape[1]):
            same = same and keys[entry, word] == state[word]
        if same:
            used[entry] = number
            return entry
    if used[oldest] == number:
        return NOWHERE
    used[oldest] = number
    for word in range(keys.shape[1]):
        keys[oldest, word] = state[word]
    return -1 - oldest


def _look_up(states, legal_masks, number, cache, permutations, sees_wins, scratch, batch, planes, masks):
    """Finds the answers in the cache, and prepares the network's batch: `planes float32[n, P, H, W]` and the legal
    actions `masks bool[n, A]` of canonical states. Returns the number of misses and that of the network's rows.

    With `sees_wins`, misses in which the mover wins at once have their answers already, in `batch`. `scratch
    uint64[3, K]` is scratch space.
    """
    canonical, image, after = scratch[0], scratch[1], scratch[2]
    num_misses, num_asked, room = 0, 0, cache.actions.shape[1]
    for i in range(len(states)):
        symmetry = to_canonical(states[i], image, canonical)
        batch.symmetries[i] = symmetry
        entry = find_entry(cache.keys, cache.used, number, canonical)
        if entry >= 0:
            batch.entries[i] = entry
            continue
        miss = num_misses
        num_misses += 1
        batch.entries[i] = -1 - miss
        batch.misses[miss] = i
        batch.places[miss] = entry if entry == NOWHERE else -1 - entry
        num_legal = 0
        if symmetry == 0:  # the identity
            for action in range(masks.shape[1]):
                masks[num_asked, action] = legal_masks[i, action]
                num_legal += legal_masks[i, action]
        else:
            for action in range(masks.shape[1]):
                masks[num_asked, action] = legal_masks[i, permutations[symmetry, action]]
                num_legal += masks[num_asked, action]
        if room > 0 and num_legal > room and entry != NOWHERE:
            cache.used[-1 - entry] = 0
            batch.places[miss] = NOWHERE
        if sees_wins:
            won = False
            for action in range(masks.shape[1]):
                wins = masks[num_asked, action] and wins_by(canonical, action, after)
                batch.priors[miss, action] = 1.0 if wins else 0.0
                won = won or wins
            batch.values[miss, 0] = 1.0
            if won:
                continue
        planes[num_asked] = 0.0
        observe(canonical, planes[num_asked])
        batch.asked[num_asked] = miss
        num_asked += 1
    return num_misses, num_asked


@kernel
def cut_values(priors, values, cut):
    """Writes `values float32[n V]` into `cut`, in [-1, 1]. Returns -1, or the first row that is no answer: the values
    must lie there, but for rounding, and all priors must be finite and not negative."""
    for row in range(len(priors)):
        right, num_values = True, len(values) // len(priors)
        for i in range(row * num_values, (row + 1) * num_values):
            right = right and abs(values[i]) <= LARGEST_VALUE  # not true of nan
            cut[i] = min(max(values[i], np.float32(-1.0)), np.float32(1.0))
        for action in range(priors.shape[1]):
            right &= (priors[row, action] >= 0) & (priors[row, action] < math.inf)  # a branch would take longer
        if not right:
            return row
    return -1


_cut = of_fixed_types(cut_values)


@kernel
def take_answers(asked_priors, asked_values, masks, count, num_misses, cache, batch, permutations, priors, values):
    """Keeps the network's answers, and writes the answer for each of `count` states into `priors`, `values`.

    Answers are for canonical states: the canonical state's action a is the state's own action `permutations[s, a]`.
    """
    room = cache.actions.shape[1]
    for row in range(len(asked_values)):
        miss = batch.asked[row]
        for seat in range(values.shape[1]):
            batch.values[miss, seat] = asked_values[row, seat]
        for action in range(priors.shape[1]):  # an entry of the cache has no room for illegal actions
            batch.priors[miss, action] = asked_priors[row, action] if room == 0 or masks[row, action] else 0.0
    for miss in range(num_misses):
        place = batch.places[miss]
        if place != NOWHERE:
            for seat in range(values.shape[1]):
                cache.values[place, seat] = batch.values[miss, seat]
            if room == 0:
                for action in range(priors.shape[1]):
                    cache.priors[place, action] = batch.priors[miss, action]
                continue
            pair = 0
            for action in range(priors.shape[1]):
                if batch.priors[miss, action] > 0 and pair < room:
                    cache.actions[place, pair], cache.priors[place, pair] = action, batch.priors[miss, action]
                    pair += 1
            if pair < room:
                cache.priors[place, pair] = 0.0
    for i in range(count):
        entry, symmetry = batch.entries[i], batch.symmetries[i]
        for seat in range(values.shape[1]):
            values[i, seat] = cache.values[entry, seat] if entry >= 0 else batch.values[-1 - entry, seat]
        if entry >= 0 and room > 0:
            priors[i] = 0.0
            for pair in range(room):
                if cache.priors[entry, pair] == 0:
                    break
                priors[i, permutations[symmetry, cache.actions[entry, pair]]] = cache.priors[entry, pair]
            continue
        answers, row = (cache.priors, entry) if entry >= 0 else (batch.priors, -1 - entry)
        if symmetry == 0:
            for action in range(priors.shape[1]):
                priors[i, action] = answers[row, action]
        else:
            for action in range(priors.shape[1]):
                priors[i, permutations[symmetry, action]] = answers[row, action]


_take = of_fixed_types(take_answers)
