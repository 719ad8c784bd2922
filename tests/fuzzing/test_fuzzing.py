"""Whatever a person, a program or a file supplies is read, or refused by one sentence; nothing else happens.

20 inputs for each parser in CI, 10,000 in `make test-slow`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from alphazero.errors import InputError, printable
from tests.fuzzing.parsers import PARSERS

PATIENCE = 10.0
"""Seconds of the processor for one input, the imports of the first one included."""


@pytest.fixture
def without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written here is input: nobody needs it after a power cut, and each wait takes milliseconds."""
    monkeypatch.setattr(os, "fsync", lambda number: None)


@pytest.mark.usefixtures("without_waiting_for_the_disk")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", [20, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PARSERS)
def test_anything_is_read_or_refused_in_one_sentence(name, count):
    strategy, read = PARSERS[name]()

    @settings(
        max_examples=count, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
    )
    @given(strategy)
    def check(data):
        folder, begin = Path(tempfile.mkdtemp(dir=work)), time.process_time()
        try:
            read(data, folder)
        except InputError as error:
            sentence = " ".join(str(error).split())
            assert sentence and len(printable(sentence)) < 5000
        finally:
            shutil.rmtree(folder)
        assert time.process_time() - begin < PATIENCE

    with tempfile.TemporaryDirectory() as work:
        check()
