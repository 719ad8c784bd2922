"""Examples and trainings write into a folder of their own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty at first."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
