"""M3: a short run of Connect Four plays more and more of the moves that the perfect solver calls best, in every seed.

Tic-tac-toe, which is learned to perfection, is in tests/training/test_learning.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from alphazero.catalogue import registry
from alphazero.training.run import train


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_error_by_the_solver_falls(seed: int, tmp_path: Path):
    """Without a search: the error of the policy on the frozen positions is smaller by a third after eight
    generations than after the first, and the values' signs are right more often."""
    loaded = registry.load("connect4")
    quick = loaded.presets()["quick"]
    config = replace(
        quick,
        generations=8,
        self_play=replace(quick.self_play, games_per_generation=256, num_slots=128),
        evaluation=replace(quick.evaluation, opponents=()),
    )
    rows = train(loaded, config, tmp_path / "run", seed=seed, threads=2, deterministic=True).metrics
    errors = [1 - row["pons_accuracy"] for row in rows]
    print(f"seed {seed}: errors {', '.join(f'{error:.3f}' for error in errors)}")
    assert errors[-1] < errors[0] * 2 / 3
    assert rows[-1]["pons_value_sign_accuracy"] > rows[0]["pons_value_sign_accuracy"]
