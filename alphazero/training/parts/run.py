"""A run under way: the parts that all its steps share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from alphazero.players.player import Player
from alphazero.storage.run_folder import RunFolder
from alphazero.training.parts.journal import Journal
from alphazero.training.parts.lineup import Lineup
from alphazero.training.parts.pace import Pace
from alphazero.training.plan import RunPlan
from alphazero.training.replay_buffer import ReplayBuffer

Benchmark: TypeAlias = Callable[[Player], Mapping[str, float]]


class Run:
    """The parts of a run; all but the first four are there once it is prepared."""

    plan: RunPlan
    folder: RunFolder
    stop: threading.Event
    pace: Pace
    lineup: Lineup
    window: ReplayBuffer
    window_files: dict[str, str]
    """The files of the generations in the window, and their SHA-256."""
    rules: str
    """The answer of `name_rules` when the run began to play: the file may change or go while the game trains."""
    journal: Journal
    benchmark: Benchmark | None

    def file(self, kind: str, generation: int, ending: str = "npz") -> Path:
        """The file of a generation in the run folder, as `replay_0012.npz`."""
        return self.folder.path / f"{kind}_{generation:04d}.{ending}"
