"""One undisturbed run of the real program, to compare killed ones with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.killing import finish


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four tiny generations of tic-tac-toe that nothing happened to; look, do not touch."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    finish(folder)
    return folder
