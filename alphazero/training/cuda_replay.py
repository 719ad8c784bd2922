"""Batches in a GPU's memory: positions are described once a generation, and copied, gathered and turned there."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from alphazero.errors import is_out_of_memory
from alphazero.nets.neural_net import Batch
from alphazero.training.replay_buffer import TrainingSet

logger = logging.getLogger(__name__)

PIECE = 1 << 13
"""Positions that are described and copied at a time, by one thread."""
SHARE = 0.5
"""Share of the free memory for the positions; the rest is for learning."""


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
        # planes of small whole numbers, which most games have, take a byte each
        if not self._describe(source, device, needed, threads, torch.uint8):
            self._describe(source, device, needed, threads, torch.float32)
        self._cells, self._actions = (torch.as_tensor(array, device=device) for array in source.kernels.symmetries)
        self._rows, self._symmetries = (
            torch.as_tensor(np.stack(part), device=device)
            for part in ([places[rows] for rows, _ in draws], [symmetries for _, symmetries in draws])
        )

    def _describe(self, source: TrainingSet, device: str, needed: np.ndarray, threads: int, kind: torch.dtype) -> bool:
        """Fills the arrays with the positions; returns whether planes of this `kind` hold all of them."""
        count, actions = len(needed), source.policies.shape[1]
        self._planes = torch.empty((count, *source.kernels.game.observation_shape), dtype=kind, device=device)
        self._masks = torch.empty((count, actions), dtype=torch.bool, device=device)
        self._policies = torch.empty((count, actions), device=device)
        self._values = torch.empty(count, device=device)

        def fill(start: int) -> bool:
            part = slice(start, start + PIECE)
            batch = source.batch(needed[part], np.zeros(len(needed[part]), np.int64))
            planes = batch.observations
            if kind == torch.uint8:
                with np.errstate(invalid="ignore"):
                    planes = planes.astype(np.uint8)
                if not (planes == batch.observations).all():
                    return False
            for target, array in (
                (self._planes, planes), (self._masks, batch.legal_masks), (self._policies, batch.policy_targets),
                (self._values, batch.value_targets),
            ):  # fmt: skip
                target[part].copy_(torch.from_numpy(array))
            return True

        first, *others = range(0, count, PIECE)
        if not fill(first):
            return False
        with ThreadPoolExecutor(threads) as pool:
            return all(pool.map(fill, others))

    def __iter__(self) -> Iterator[Batch]:
        for rows, symmetries in zip(self._rows, self._symmetries, strict=True):
            planes, cells, actions = self._planes[rows], self._cells[symmetries], self._actions[symmetries]
            turned = planes.flatten(2).gather(2, cells[:, None].expand(-1, planes.shape[1], -1)).reshape(planes.shape)
            masks, policies = self._masks[rows].gather(1, actions), self._policies[rows].gather(1, actions)
            yield Batch(turned.float(), masks, policies, self._values[rows])
