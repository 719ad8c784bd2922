"""The figures of a run in TensorBoard and wandb."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from alphazero.errors import InvalidSetting, StorageError
from alphazero.storage.files import read_json_less_seal, write_sealed_json
from alphazero.storage.formats import WANDB_SEAL, WandbRun
from alphazero.storage.schema import check

logger = logging.getLogger(__name__)

Figures = Mapping[str, Any]
"""A line of `metrics.jsonl`."""


class TensorBoard:
    """TensorBoard events in the run folder, if TensorBoard is installed."""

    def __init__(self, folder: Path):
        self._folder = folder / "events"

    def add(self, figures: Figures) -> None:
        """Adds the line of a finished generation."""
        if importlib.util.find_spec("tensorboard") is None:
            return
        if self._folder.is_symlink():
            raise StorageError(f"{self._folder} is a link: move it away")
        from torch.utils.tensorboard import SummaryWriter

        # short-lived: nothing is left open, and a redone generation replaces its first try
        with SummaryWriter(self._folder, purge_step=figures["generation"]) as writer:
            for name, value in _numbers(figures).items():
                writer.add_scalar(name, value, figures["generation"])


class Wandb:
    """The run in a project of Weights & Biases: a run that is resumed goes on with the same wandb run.

    The environment variables of wandb work as everywhere: with WANDB_MODE=offline it needs neither network nor account.
    """

    def __init__(self, project: str, folder: Path, config: Mapping[str, Any], lines: Iterable[Figures]):
        """Adds of `lines`, those of the generations so far, what wandb has missed. No file of a run names a project."""
        import wandb

        for name in ("wandb", ".wandb"):  # the second one is taken where it is there
            if (folder / name).is_symlink():
                raise InvalidSetting(f"wandb cannot begin, since {folder / name} is a link: move it away")
        identity = folder / WANDB_FILE
        if not identity.exists():
            write_sealed_json(identity, {"project": project, "id": secrets.token_hex(4)}, WANDB_SEAL)
        known = check(WandbRun, read_json_less_seal(identity, WANDB_SEAL), str(identity), advice="; move it away")
        try:
            self._run = wandb.init(
                project=project, id=known.id, name=folder.resolve().name, dir=folder, config=dict(config),
                resume="allow", settings=wandb.Settings(console="off", silent=True),
            )  # fmt: skip
            for line in lines:
                if line["generation"] >= self._run.step:
                    self.add(line)
        except (wandb.errors.Error, OSError) as error:
            reason = " ".join(str(error).split())
            raise InvalidSetting(
                f"wandb cannot begin ({reason}): log in by `wandb login`, or set WANDB_MODE=offline"
            ) from error
        logger.info("wandb: project %s, run %s, %s", project, known.id, self._run.url or f"in {self._run.dir}")

    def add(self, figures: Figures) -> None:
        """Adds the line of a finished generation."""
        self._run.log(_numbers(figures), step=figures["generation"])

    def close(self) -> None:
        """Writes what is still to be written."""
        with contextlib.suppress(Exception):  # its own process may have ended
            self._run.finish()


WANDB_FILE = "wandb.json"
"""In the run folder: the project and the id of the wandb run."""


def _numbers(figures: Figures) -> dict[str, float]:
    return {name: value for name, value in figures.items() if isinstance(value, int | float)}


Tracker = TensorBoard | Wandb
