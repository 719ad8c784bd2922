"""Policy targets in few bytes: in a game with many actions, of which few are legal, only those that have a weight.

Such a row of `uint32[W]` has an entry for each of them, its action x 2^16 + its weight x (2^16 - 1); 0 fills the rest.
Other games keep `float32[A]`; `room_for_pairs` says which do.
"""

from __future__ import annotations

import numpy as np

from alphazero.game import Game
from alphazero.game.kernels import kernel
from alphazero.game.rules import room_for_pairs
from alphazero.storage.arrays import Array

ROUNDING = 1e-3
"""The most by which sums in float32 leave their range."""
BITS, ONE, HALF = np.uint32(16), np.float32((1 << 16) - 1), np.float32(0.5)


def policies_of(game: Game, *shape: int | str) -> Array:
    """The description of that many policies."""
    if room := room_for_pairs(game):
        return Array(np.uint32, (*shape, room), 0, (game.num_actions << 16) - 1)
    return Array(np.float32, (*shape, game.num_actions), 0.0, 1.0 + ROUNDING)


def packed(policies: np.ndarray, like: Array | np.ndarray) -> np.ndarray:
    """The policies `float[n, A]` as an array of the type and the last size of `like` keeps them.

    Where more actions have a weight than a row has entries, the least are left out.
    """
    if like.dtype != np.uint32:
        return policies.astype(like.dtype, copy=False)
    words = np.zeros((len(policies), int(like.shape[-1])), np.uint32)
    full = np.flatnonzero(np.count_nonzero(policies, axis=1) > words.shape[1])
    if len(full):
        policies = policies.copy()
        least = np.argsort(policies[full], axis=1)[:, : -words.shape[1]]
        policies[full[:, None], least] = 0.0
        policies[full] /= policies[full].sum(axis=1, keepdims=True)
    pack_rows(policies.astype(np.float32, copy=False), words)
    return words


def unpacked(policies: np.ndarray, num_actions: int) -> np.ndarray:
    """`float32[n, A]` of such rows, or of policies that have a number for each action."""
    if policies.dtype != np.uint32:
        return policies.astype(np.float32, copy=False)
    found = np.zeros((len(policies), num_actions), np.float32)
    unpack_rows(policies, found)
    return found


def turned(policies: np.ndarray, permutations: np.ndarray, symmetries: np.ndarray) -> np.ndarray:
    """Each policy with its position, by `symmetries int64[n]`: action a of the image is `permutations[s, a]`."""
    if policies.dtype != np.uint32:
        return np.take_along_axis(policies, permutations[symmetries], axis=1)
    images = np.argsort(permutations, axis=1).astype(np.uint32)
    return images[symmetries[:, None], policies >> BITS] << BITS | policies & np.uint32(ONE)


@kernel
def pack_rows(policies, words):
    """Writes the rows `uint32[n, W]` of `float32[n, A]`, of which no more than W have a weight."""
    for i in range(len(words)):
        entry = 0
        for action in range(policies.shape[1]):
            share = policies[i, action]
            weight = np.uint32(min(share * ONE + HALF, ONE)) if share > 0 else np.uint32(0)
            if weight > 0:
                words[i, entry] = np.uint32(action) << BITS | weight
                entry += 1


@kernel
def unpack_rows(words, policies):
    """Adds the weights in `uint32[n, W]` to `float32[n, A]`."""
    for i in range(len(words)):
        for entry in range(words.shape[1]):
            policies[i, words[i, entry] >> BITS] += np.float32(words[i, entry] & np.uint32(ONE)) / ONE
