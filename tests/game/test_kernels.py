"""Compiled kernels on disk, as several programs leave them there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
USE = """
import sys
import numpy as np
from alphazero.game import registry
from alphazero.game.kernels import Kernels
def use(name):
    kernels = Kernels(registry.load(name).game)
    position, rng = kernels.game.start(), np.random.default_rng(0)
    states, to_play = kernels.start_states(1), np.zeros(1, np.int8)
    while not position.terminal:
        action = int(rng.choice(position.legal_actions))
        position = position.play(action)
        kernels.play(states, to_play, np.array([action]))
        masks, terminal, values = kernels.describe_all(states)
        assert (states[0] == position.state).all() and terminal[0] == position.terminal, name
        assert (masks[0] == position.legal_mask).all(), name
for name in sys.argv[1:]:
    use(name)
"""


@pytest.mark.parametrize("names", [("gomoku15", "gomoku"), ("othello6", "othello")])
def test_games_of_one_factory_that_were_compiled_apart_can_be_loaded_together(names: tuple[str, str], tmp_path: Path):
    """Code on disk is linked by name when it is loaded: no two games' functions may have the same."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    for loaded in ([names[0]], [names[1]], list(names), list(names[::-1])):
        command = [sys.executable, "-W", "ignore::RuntimeWarning", "-c", USE, *loaded]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, f"{loaded}: {result.stderr}"
