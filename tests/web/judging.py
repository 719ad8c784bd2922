"""The page's judgement of moves, `judge.js`, which node runs without a page."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import alphazero

MODULE = Path(alphazero.__file__).parent / "web" / "page" / "judge.js"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed, and runs JavaScript here")


def call(function: str, *arguments: Any) -> Any:
    """The value of a function of the module."""
    code = f"""
import {{ readFileSync }} from "node:fs";
const code = readFileSync({json.dumps(str(MODULE))}, "utf8");
const page = await import("data:text/javascript," + encodeURIComponent(code));
const given = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(page.{function}(...given)));
"""
    command = ["node", "--input-type=module", "-e", code]
    done = subprocess.run(command, input=json.dumps(arguments), capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)
