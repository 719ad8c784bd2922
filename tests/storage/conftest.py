"""A small run that nothing happened to, a copy of it to damage, and warnings that can be heard."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path

import pytest

from tests.storage.small_run import play


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A run of three generations that nothing happened to; look, do not touch."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    code, output = play(folder, fault="count only:1")
    assert code == 0
    return folder, json.loads(output.splitlines()[-1].replace("'", '"'))


@pytest.fixture
def folder(undisturbed, tmp_path):
    """A copy of that run, to damage."""
    return Path(shutil.copytree(undisturbed[0], tmp_path / "run"))


@pytest.fixture(autouse=True)
def hear_warnings(caplog):
    caplog.set_level(logging.WARNING, logger="alphazero.storage.run_folder")
