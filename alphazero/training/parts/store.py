"""The files of a run between two generations.

Every file is written as soon as it is known; the manifest comes last and makes the generation count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from alphazero.fingerprint import name_rules
from alphazero.invocation import option
from alphazero.nets.neural_net import NeuralNet, check_saved
from alphazero.storage.arrays import write_npz
from alphazero.storage.manifest import Manifest
from alphazero.storage.run_folder import RunFolder
from alphazero.training.config import settings_by_name
from alphazero.training.plan import RunPlan
from alphazero.training.replay_buffer import ReplayBuffer, Samples

UNCONTESTED: dict[str, Any] = {"gate_score": None, "promoted": True}
"""The gate's figures of a net that had no gate to pass."""
ORIGINS = ("started_from", "learned_from_games_of")
"""Where a card of generation 0 names the net that the run began with: its weights are that net's, or are not."""


class Store:
    """The files of a run in its folder."""

    def __init__(self, folder: RunFolder, plan: RunPlan):
        self.folder, self._plan = folder, plan
        self.of_window: dict[str, str] = {}
        """The files of the generations in the replay window, and their SHA-256."""
        self.rules = name_rules(plan.loaded.game)  # once: the file may change or go while the game trains

    def checkpoint(self, generation: int) -> Path:
        """The file of a generation's net."""
        return self.folder.path / f"generation_{generation:04d}.safetensors"

    def learner_file(self, generation: int) -> Path:
        """The file of what learns, as the generation left it."""
        return self.folder.path / f"learner_{generation:04d}.safetensors"

    def replay_file(self, generation: int) -> Path:
        """The file of a generation's samples."""
        return self.folder.path / f"replay_{generation:04d}.npz"

    @property
    def replay_files(self) -> tuple[Path, ...]:
        """The files of the samples in the window."""
        return tuple(self.folder.path / name for name in self.of_window if name.startswith("replay_"))

    def find(self, manifest: Manifest, generations: tuple[int, ...]) -> None:
        """Takes over the files of a window that is read again."""
        kept = {self.replay_file(number).name for number in generations}
        self.of_window = {
            name: sha for name, sha in manifest.files.items() if name in kept or name.startswith("played_")
        }

    def add_samples(self, generation: int, samples: Samples, window: ReplayBuffer, also: Mapping[str, Any]) -> None:
        """Takes new samples into the window, and writes them; `also`: the workers' arrays of the same games."""
        self.folder.check()
        window.add(generation, samples)
        for kind, arrays in {"replay": samples.arrays(), **also}.items():
            name = f"{kind}_{generation:04d}.npz"
            self.of_window[name] = self.write_npz(name, arrays)
        kept = {f"_{number:04d}.npz" for number, _ in window.generations}
        self.of_window = {name: sha for name, sha in self.of_window.items() if name[name.index("_") :] in kept}

    def save_net(self, generation: int, net: NeuralNet, sizes: Any, figures: Mapping[str, Any]) -> None:
        """Writes the generation's checkpoint with a card on which nothing depends on the clock."""
        self.folder.check()
        card: dict[str, Any] = {"game": self._plan.loaded.game.name, "net": settings_by_name(sizes)}
        card |= {"generation": generation, "search": asdict(self._plan.config.search)}
        card |= {name: x for name, x in figures.items() if name in ("gate_score", "promoted", *ORIGINS)}
        if maker := self._plan.names_of_parts.get("make_net"):
            card["made_by"] = maker
        net.save(self.checkpoint(generation), card)
        check_saved(net, self.checkpoint(generation), card)

    def write_npz(self, name: str, arrays: Mapping[str, np.ndarray]) -> str:
        """As `arrays.write_npz`, with our settings in the error about a file that is too large."""
        settings = f"{option('self_play.games_per_generation')} and {option('self_play.num_slots')}"
        return write_npz(self.folder.path / name, arrays, f". Choose smaller {settings}")
