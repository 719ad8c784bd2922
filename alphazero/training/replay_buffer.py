"""Samples of finished games, the window of recent ones, and the batches that the learner draws from it.

On a GPU, positions are described once a generation; batches are gathered and turned in its memory.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import torch

from alphazero.errors import TrainingError, is_out_of_memory
from alphazero.game import Game
from alphazero.game.kernels import Kernels
from alphazero.game.rules import shown_words
from alphazero.nets.neural_net import Batch
from alphazero.storage.arrays import Array, read_npz
from alphazero.training.config import ReplayConfig
from alphazero.training.policies import ROUNDING, packed, policies_of, turned, unpacked

logger = logging.getLogger(__name__)

MOST_SAMPLES = 1 << 31
"""The most samples that a file may have if nobody knows better."""
MERGED_AT_ONCE = 1 << 14
"""Distinct positions whose samples are merged at once: their sums in float64 take some megabytes, not the window's."""
PIECE = 1 << 13
"""Positions that are described and copied to a GPU at a time, by one thread."""
SHARE = 0.5
"""Share of a GPU's free memory for the positions; the rest is for learning."""


@dataclass(frozen=True)
class Samples:
    """n positions of finished games, as the player to move saw them."""

    states: np.ndarray
    """`uint64[n, K]`, K without the words of history."""
    policies: np.ndarray
    """`float32[n, A]`: the policy target; as `policies_of` says."""
    outcomes: np.ndarray
    """`float32[n]`: z, the game's result for the player to move; if a later ply was played at random, the search's
    value just before it. In a game for more than two these and the values are `float32[n, V]`: see
    `Game.value_shape`."""
    values: np.ndarray
    """`float32[n]`: the value target for the player to move."""

    def __len__(self) -> int:
        return len(self.outcomes)

    def arrays(self) -> dict[str, np.ndarray]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def check(self) -> None:
        """Raises TrainingError if a number is not finite."""
        for name, array in self.arrays().items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise TrainingError(
                    f"self-play gave samples with {name} that are no finite numbers: the network that plays, or the "
                    "function of the value targets, gives such numbers"
                )

    @staticmethod
    def join(parts: list[Samples]) -> Samples:
        """One after another."""
        return Samples(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Samples)))


def no_samples(game: Game) -> Samples:
    """The samples of no games."""
    return Samples(**{name: array.zeros() for name, array in sample_arrays(game, 0).items()})


def read_samples(path: Path, game: Game, most: int = MOST_SAMPLES) -> Samples:
    """The samples of the game in a file, at most so many; raises StorageError."""
    return Samples(**read_npz(path, sample_arrays(game), {"n": most}))


def sample_arrays(game: Game, n: int | str = "n") -> dict[str, Array]:
    """The arrays of `Samples`, of any number `n` or of that many, by their names."""
    values = Array(np.float32, (n, *game.value_shape), -1.0 - ROUNDING, 1.0 + ROUNDING)
    return {
        "states": Array(np.uint64, (n, shown_words(game))),
        "policies": policies_of(game, n),
        "outcomes": values,
        "values": values,
    }


def make_examples(kernels: Kernels, samples: Samples) -> TrainingSet:
    """The images of the positions that the network sees, small in memory; each policy turned with its position."""
    states, symmetries = kernels.canonical(samples.states)
    policies = turned(samples.policies, kernels.symmetries[1], symmetries)
    policies = policies.astype(np.float16) if policies.dtype == np.float32 else policies
    return TrainingSet(kernels, states[:, : shown_words(kernels.game)], policies, samples.values)


class ReplayBuffer:
    """The examples of recent generations."""

    def __init__(self, kernels: Kernels, config: ReplayConfig):
        self.kernels, self.config = kernels, config
        self.generations: deque[tuple[int, TrainingSet]] = deque()

    def window(self, generation: int) -> int:
        """Generations that are kept after `generation` (counted from 1)."""
        config = self.config
        return min(config.window_max, config.window_start + int(config.window_growth * (generation - 1)))

    def add(self, generation: int, samples: Samples) -> None:
        """Adds a generation's samples and drops the oldest generations."""
        self.generations.append((generation, make_examples(self.kernels, samples)))
        while len(self.generations) > self.window(generation):
            self.generations.popleft()

    def training_set(self) -> TrainingSet:
        """All examples of the window, equal positions merged if so configured."""
        states, policies, values = (
            np.concatenate([getattr(examples, name) for _, examples in self.generations])
            for name in ("states", "policies", "values")
        )
        if self.config.merge:
            states, policies, values = merge_equal(states, policies, values, self.kernels.game.num_actions)
        return TrainingSet(self.kernels, states, policies, values.astype(np.float32))


def merge_equal(
    states: np.ndarray, policies: np.ndarray, values: np.ndarray, num_actions: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One row per distinct state, its targets the means."""
    order = np.lexsort(states.T)
    states = states[order]
    starts = np.flatnonzero(np.append(True, (states[1:] != states[:-1]).any(axis=1)))
    counts, states = np.diff(np.append(starts, len(states))), states[starts]
    mean_policies, mean_values = policies[order[starts]], values[order[starts]].astype(np.float64)
    order, several = order[np.repeat(counts > 1, counts)], np.flatnonzero(counts > 1)
    bounds, at_once = np.append(0, np.cumsum(counts[several])), max(1, MERGED_AT_ONCE * 64 // max(64, num_actions))
    for first in range(0, len(several), at_once):
        these = several[first : first + at_once]
        ends = bounds[first : first + at_once + 1]
        rows = order[ends[0] : ends[-1]]
        segments = ends[:-1] - ends[0]
        sums = np.add.reduceat(unpacked(policies[rows], num_actions).astype(np.float64), segments)
        mean_policies[these] = packed(sums / counts[these, None], policies)
        totals = np.add.reduceat(values[rows].astype(np.float64), segments)
        mean_values[these] = (totals.T / counts[these]).T
    return states, mean_policies, mean_values


class TrainingSet:
    """Positions with their targets; where a game has no `transform`, batches come under random symmetries."""

    def __init__(self, kernels: Kernels, states: np.ndarray, policies: np.ndarray, values: np.ndarray):
        """`states uint64[n, K]`, K without the words of history, and `values float32[n]`, for the player to move.

        `policies`: `float16[n, A]`, rounded by less than a thousandth part, since they are most of a sample's bytes; or
        `uint32` where `policies_of` says so.
        """
        self.kernels = kernels
        self.states, self.policies, self.values = states, policies, values
        self._cells, self._actions = kernels.symmetries
        self._num_turns = len(self._cells) if kernels.game.rules.transform is None else 1

    def __len__(self) -> int:
        return len(self.values)

    @property
    def bytes_of_one(self) -> int:
        """Size of a position as the network sees it, a byte for each cell of a plane, with its targets."""
        planes, actions = int(np.prod(self.kernels.game.observation_shape)), self.kernels.game.num_actions
        return planes + (1 + 4) * actions + 4 * self.kernels.game.num_values

    def batches(self, draws: Iterable[tuple[np.ndarray, np.ndarray]]) -> Iterator[Batch]:
        """The batches that `draws` gives; the next one is made on a thread while the network learns from the last."""
        with ThreadPoolExecutor(1) as pool:
            waiting = (pool.submit(self.batch, rows, symmetries) for rows, symmetries in draws)
            for batch, _ in itertools.pairwise(itertools.chain(waiting, [None])):
                assert batch is not None
                yield batch.result()

    def draws(self, batch_size: int, count: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The rows and symmetries of `count` batches; no position comes again before all others have come."""
        batch_size = min(batch_size, len(self))
        order = np.empty(0, np.int64)
        for _ in range(count):
            if len(order) < batch_size:
                order = np.concatenate([order, rng.permutation(len(self))])
            rows, order = order[:batch_size], order[batch_size:]
            yield rows, rng.integers(self._num_turns, size=batch_size)

    def batch(self, rows: np.ndarray, symmetries: np.ndarray) -> Batch:
        """The positions `rows int64[n]`, turned by `symmetries int64[n]`."""
        states = self.states[rows]
        masks, _, _ = self.kernels.describe_all(states)
        planes, policies = self.kernels.observations(states), unpacked(self.policies[rows], masks.shape[1])
        if symmetries.any():  # else there is nothing to turn
            shape, actions = planes.shape, self._actions[symmetries]
            cells = self._cells[symmetries][:, None, :]
            planes = np.take_along_axis(planes.reshape(*shape[:2], -1), cells, axis=2).reshape(shape)
            masks, policies = (np.take_along_axis(array, actions, axis=1) for array in (masks, policies))
        return Batch(planes, masks, policies, self.values[rows])


# --- on a GPU ---


def batches_on(
    device: str, source: TrainingSet, draws: Iterable[tuple[np.ndarray, np.ndarray]], threads: int
) -> Iterable[Batch]:
    """As `source.batches`, on the device that learns; on the processor if the device's memory does not hold them."""
    if device == "cpu":
        return source.batches(draws)
    torch.cuda.empty_cache()  # what torch keeps for later is not free for others
    draws = list(draws)
    most = min(len(source), sum(len(rows) for rows, _ in draws))
    if most * source.bytes_of_one <= SHARE * torch.cuda.mem_get_info(device)[0]:
        try:
            return DeviceBatches(source, device, draws, threads)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
    torch.cuda.empty_cache()
    logger.warning(
        "the positions to learn from do not fit into the GPU's memory: batches are copied there one by one, which is "
        "slower"
    )
    return source.batches(draws)


class DeviceBatches:
    """Batches of a TrainingSet on a torch device, which holds each of their positions once."""

    def __init__(self, source: TrainingSet, device: str, draws: list[tuple[np.ndarray, np.ndarray]], threads: int):
        drawn = np.zeros(len(source), bool)
        for rows, _ in draws:
            drawn[rows] = True
        places, needed = np.cumsum(drawn) - 1, np.flatnonzero(drawn)

        def describe(rows: np.ndarray) -> list[torch.Tensor]:
            batch = source.batch(rows, np.zeros(len(rows), np.int64))
            planes = batch.observations
            with np.errstate(invalid="ignore"):
                small = planes.astype(np.uint8)
            if (small == planes).all():  # small whole numbers, as most games have, take a byte each
                planes = small
            return list(map(torch.from_numpy, (planes, batch.legal_masks, batch.policy_targets, batch.value_targets)))

        pieces, filled = [needed[first : first + PIECE] for first in range(0, len(needed), PIECE)], 0
        with ThreadPoolExecutor(threads) as pool:
            for found in pool.map(describe, pieces):
                if not filled:  # each array is there once: together with its pieces it would take twice the memory
                    whole = [torch.empty((len(needed), *x.shape[1:]), dtype=x.dtype, device=device) for x in found]
                if found[0].dtype != torch.uint8:
                    whole[0] = whole[0].float()
                for target, piece in zip(whole, found, strict=True):
                    target[filled : filled + len(piece)] = piece
                filled += len(found[0])
        self._planes, self._masks, self._policies, self._values = whole
        self._cells, self._actions = (torch.as_tensor(array, device=device) for array in source.kernels.symmetries)
        self._rows, self._symmetries = (
            torch.as_tensor(np.stack(part), device=device)
            for part in ([places[rows] for rows, _ in draws], [symmetries for _, symmetries in draws])
        )

    def __iter__(self) -> Iterator[Batch]:
        for rows, symmetries in zip(self._rows, self._symmetries, strict=True):
            planes, cells, actions = self._planes[rows], self._cells[symmetries], self._actions[symmetries]
            turned = planes.flatten(2).gather(2, cells[:, None].expand(-1, planes.shape[1], -1)).reshape(planes.shape)
            masks, policies = self._masks[rows].gather(1, actions), self._policies[rows].gather(1, actions)
            yield Batch(turned.float(), masks, policies, self._values[rows])
