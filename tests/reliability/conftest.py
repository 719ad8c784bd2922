"""One undisturbed run of the real program, to compare killed ones with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from filelock import FileLock

from alphazero.storage.formats import EVALUATION
from tests.reliability.killing import finish


@pytest.fixture(scope="session")
def undisturbed() -> Path:
    """A run of four tiny generations of tic-tac-toe that nothing happened to, made once for all processes that run
    the tests; look, do not touch."""
    folder = Path(os.environ["ALPHAZERO_TESTS_SHARED"]) / "undisturbed"
    with FileLock(f"{folder}.lock"):
        if not (folder / EVALUATION).exists():
            finish(folder)
    return folder
