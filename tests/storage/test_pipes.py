"""A pipe in place of a file is refused at once: opened in the ordinary way it would wait for its other end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALLS = {
    "read": "read_bytes(path, 10)",
    "read lines": "list(read_lines(path))",
    "append": "append(path, b'line')",
    "drop a line": "drop_torn_line(path)",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_pipe_is_not_waited_for(call: str, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    code = f"import sys\nfrom alphazero.storage.files import *\npath = Path(sys.argv[1])\n{call}"
    shown = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "pipe")], capture_output=True, text=True, timeout=30,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert shown.returncode == 1 and "pipe is not a regular file" in shown.stderr.splitlines()[-1]
