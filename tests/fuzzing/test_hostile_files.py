"""Each hostile file is refused in one sentence, within 2 seconds and 200 MB; nothing is executed or written outside.

Row C3 of the catalogue. The files are read in one process of their own, so that nothing can be hidden from the measure
of memory; seconds are those of the processor, since other work may share it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fuzzing.hostile import CANARY, cases
from tests.program import ROOT

MOST_SECONDS, MOST_BYTES = 2.0, 200_000_000
IN_CI = 20
NAMES = [case.name for case in cases()]


def test_every_case_has_a_name_of_its_own_and_there_are_enough():
    assert [name for name, count in Counter(NAMES).items() if count > 1] == []
    assert len(NAMES) >= 300


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is measured by /proc")
@pytest.mark.parametrize("names", [NAMES[:: len(NAMES) // IN_CI], pytest.param(NAMES, marks=pytest.mark.slow)], ids=len)
def test_hostile_files_are_refused(names, tmp_path: Path):
    child = subprocess.run(
        [sys.executable, "-m", "tests.fuzzing.read_hostile", str(tmp_path)], input=json.dumps(names), cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-2000:]
    found = [json.loads(line) for line in child.stdout.splitlines()]
    assert [result["name"] for result in found] == names
    wrong = [result for result in found if result["kind"] != "refused" or "\n" in result["said"]]
    assert wrong == []
    greedy = [x for x in found if x["seconds"] > MOST_SECONDS or x["bytes"] > MOST_BYTES or len(x["said"]) > 1000]
    assert greedy == []
    assert [result for result in found if result["outside"]] == []
    assert not list(tmp_path.rglob(CANARY)) and not (ROOT / CANARY).exists()


def test_a_gadget_would_be_seen(tmp_path: Path):
    import pickle

    from tests.fuzzing.hostile import Gadget

    pickle.loads(pickle.dumps(Gadget(tmp_path)))
    assert list(tmp_path.rglob(CANARY))
