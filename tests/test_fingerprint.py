"""The version of the code that a machine has."""

from __future__ import annotations

from pathlib import Path

import pytest

from alphazero import fingerprint


def test_files_of_an_editor_are_no_part_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "game.py").write_text("x = 1\n")
    monkeypatch.setattr(fingerprint, "FRAMEWORK", tmp_path)
    found = fingerprint.framework_fingerprint.__wrapped__
    before = found()
    (tmp_path / ".#game.py").symlink_to("somebody@host.1234:5")  # the lock of Emacs leads nowhere
    (tmp_path / "folder.py").mkdir()
    (tmp_path / ".checkpoints").mkdir()
    (tmp_path / ".checkpoints" / "game.py").write_text("x = 2\n")
    assert found() == before
    (tmp_path / "more.py").write_text("x = 1\n")
    assert found() != before
