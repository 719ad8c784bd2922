"""The version of the code that a machine has."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from alphazero import fingerprint
from alphazero.catalogue import registry


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


def test_the_game_of_a_program_from_standard_input_has_no_file(monkeypatch: pytest.MonkeyPatch):
    """Python says that it lies in a file <stdin>, which is not there."""
    program = ModuleType("piped")
    program.__file__ = "<stdin>"
    monkeypatch.setitem(sys.modules, "piped", program)
    kind = type("Mine", (type(registry.load("tictactoe").game),), {"__module__": "piped", "name": "mine"})
    assert fingerprint.game_fingerprint(kind()) != fingerprint.game_fingerprint(registry.load("tictactoe").game)
