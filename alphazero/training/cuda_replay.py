"""The replay window in a GPU's memory: batches are gathered and turned there, and nothing is copied for an update."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from alphazero.errors import is_out_of_memory
from alphazero.nets.neural_net import Batch
from alphazero.training.replay_buffer import TrainingSet

logger = logging.getLogger(__name__)

PIECE = 1 << 16
"""Positions that are described and copied at a time."""
SHARE = 0.5
"""Share of the free memory for the window; the rest is for learning."""


def place(source: TrainingSet, device: str) -> TrainingSet | DeviceTrainingSet:
    """The same batches on the device that learns; on the processor if the device's memory does not hold them."""
    if device == "cpu":
        return source
    torch.cuda.empty_cache()  # what torch keeps for later is not free for others
    if source.num_bytes <= SHARE * torch.cuda.mem_get_info(device)[0]:
        try:
            return DeviceTrainingSet(source, device)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
    torch.cuda.empty_cache()
    logger.warning(
        "the replay window does not fit into the GPU's memory: its batches are copied there one by one, which is slower"
    )
    return source


class DeviceTrainingSet:
    """A TrainingSet whose positions are described once and kept on a torch device."""

    def __init__(self, source: TrainingSet, device: str):
        self._source = source
        rows = [np.arange(start, min(start + PIECE, len(source))) for start in range(0, len(source), PIECE)]
        pieces = [_compact(source.batch(part, np.zeros(len(part), np.int64)), device) for part in rows]
        kind = torch.uint8 if all(planes.dtype == torch.uint8 for planes, _ in pieces) else torch.float32
        self._planes = torch.cat([planes.to(kind) for planes, _ in pieces])
        self._masks = torch.cat([masks for _, masks in pieces])
        self._policies, self._values, self._cells, self._actions = (
            torch.as_tensor(array, device=device)
            for array in (source.policies, source.values, *source.kernels.symmetries)
        )

    def __len__(self) -> int:
        return len(self._source)

    def batches(self, batch_size: int, count: int, rng: np.random.Generator) -> Iterator[Batch]:
        """As `TrainingSet.batches`, on the device."""
        drawn = list(self._source.draws(batch_size, count, rng))
        rows, symmetries = (
            torch.as_tensor(np.stack(part), device=self._values.device) for part in zip(*drawn, strict=True)
        )
        for i in range(count):
            yield self._batch(rows[i], symmetries[i])

    def _batch(self, rows: Tensor, symmetries: Tensor) -> Batch:
        planes, cells, actions = self._planes[rows], self._cells[symmetries], self._actions[symmetries]
        turned = planes.flatten(2).gather(2, cells[:, None].expand(-1, planes.shape[1], -1)).reshape(planes.shape)
        return Batch(
            turned.float(),
            self._masks[rows].gather(1, actions),
            self._policies[rows].gather(1, actions).float(),
            self._values[rows],
        )


def _compact(batch: Batch, device: str) -> tuple[Tensor, Tensor]:
    """Planes and legal masks on the device; planes of small whole numbers, which most games have, in a byte each."""
    planes = batch.observations
    with np.errstate(invalid="ignore"):
        small = planes.astype(np.uint8)
    if (small == planes).all():
        planes = small
    return torch.as_tensor(planes, device=device), torch.as_tensor(batch.legal_masks, device=device)
