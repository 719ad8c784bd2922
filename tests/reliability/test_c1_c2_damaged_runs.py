"""C1, C2: no file of a real run that was cut short, or of which a bit was flipped, is ever used."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from alphazero.storage.run_folder import RunFolder
from tests.reliability.killing import GENERATIONS

numbers = pytest.mark.parametrize("number", [20, pytest.param(400, marks=pytest.mark.slow)])


@pytest.fixture
def folder(undisturbed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(undisturbed, tmp_path / "run"))


def named_by(folder: Path, generation: int) -> set[str]:
    """The files of a generation's manifest."""
    return set(json.loads((folder / f"manifest_{generation:04d}.json").read_text())["files"])


def damage_everything(folder: Path, damage: Callable[[Path, int], None], choose: Callable[[int], np.ndarray]) -> int:
    """Damages every file that the run would go on from, one at a time, in all ways that `choose(bytes)` gives."""
    newest, before = named_by(folder, GENERATIONS), named_by(folder, GENERATIONS - 1)
    refused = 0
    with RunFolder.open(folder) as run:
        for name in sorted({*newest, f"manifest_{GENERATIONS:04d}.json"}):
            content = (folder / name).read_bytes()
            for where in choose(len(content)).astype(int).tolist():
                damage(folder / name, where)
                manifest = run.newest_valid()
                if name in before:  # of an older generation: it is left out
                    assert (manifest.generation, list(manifest.lost)) == (GENERATIONS, [name]), f"damaged at {where}"
                else:
                    assert manifest.generation == GENERATIONS - 1, f"{name} damaged at {where}"
                (folder / name).write_bytes(content)
                refused += 1
        assert run.newest_valid().generation == GENERATIONS
    return refused


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


@numbers
def test_no_cut_is_taken_for_whole(folder: Path, number: int):
    assert damage_everything(folder, os.truncate, lambda size: np.linspace(0, size - 1, number)) >= 10 * number


@numbers
def test_no_flipped_bit_goes_unnoticed(folder: Path, number: int):
    rng = np.random.default_rng(4)
    assert damage_everything(folder, flip, lambda size: rng.integers(8 * size, size=number)) >= 10 * number
