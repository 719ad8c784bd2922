"""A fresh Python that prints what it finds."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]


def run_python(code: str, folder: Path, **environment: str) -> Any:
    """What a fresh Python prints as JSON, with `folder` and the repository on its path."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{REPOSITORY}"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)
