"""Batches in a GPU's memory: positions are described once a generation, and copied, gathered and turned there."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

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

        def described(start: int) -> tuple[Tensor, ...]:
            part = needed[start : start + PIECE]
            return _compact(source.batch(part, np.zeros(len(part), np.int64)), device)

        with ThreadPoolExecutor(threads) as pool:
            pieces = list(pool.map(described, range(0, len(needed), PIECE)))
        kind = torch.uint8 if all(planes.dtype == torch.uint8 for planes, *_ in pieces) else torch.float32
        self._planes = torch.cat([planes.to(kind) for planes, *_ in pieces])
        self._masks, self._policies, self._values = (torch.cat(parts) for parts in list(zip(*pieces, strict=True))[1:])
        self._cells, self._actions = (torch.as_tensor(array, device=device) for array in source.kernels.symmetries)
        self._rows, self._symmetries = (
            torch.as_tensor(np.stack(part), device=device)
            for part in ([places[rows] for rows, _ in draws], [symmetries for _, symmetries in draws])
        )

    def __iter__(self) -> Iterator[Batch]:
        for rows, symmetries in zip(self._rows, self._symmetries, strict=True):
            yield self._batch(rows, symmetries)

    def _batch(self, rows: Tensor, symmetries: Tensor) -> Batch:
        planes, cells, actions = self._planes[rows], self._cells[symmetries], self._actions[symmetries]
        turned = planes.flatten(2).gather(2, cells[:, None].expand(-1, planes.shape[1], -1)).reshape(planes.shape)
        return Batch(
            turned.float(),
            self._masks[rows].gather(1, actions),
            self._policies[rows].gather(1, actions),
            self._values[rows],
        )


def _compact(batch: Batch, device: str) -> tuple[Tensor, ...]:
    """The batch's arrays on the device; planes of small whole numbers, which most games have, in a byte each."""
    planes = batch.observations
    with np.errstate(invalid="ignore"):
        small = planes.astype(np.uint8)
    if (small == planes).all():
        planes = small
    arrays = planes, batch.legal_masks, batch.policy_targets, batch.value_targets
    return tuple(torch.as_tensor(array, device=device) for array in arrays)
