"""Answers measurements one at a time, so that several programs can take turns on one core.

This file imports nothing but the standard library: it runs in the peers' environment as well as in ours.

A worker is started with its task as JSON on the command line: game, blocks, channels, batch, simulations and openings
(lists of actions). It prints `{"ready": true}` once all is compiled. For each line `NAME SECONDS` on its standard input
it measures that figure for about so long, and prints it as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

Step = Callable[[], int]
"""Does some work and returns how many units it was."""


def read_task() -> dict[str, Any]:
    """The task on the command line."""
    task: dict[str, Any] = json.loads(sys.argv[1])
    return task


def serve(steps: dict[str, Step], begin: Callable[[], None] = lambda: None) -> None:
    """Warms every step up, then answers lines on standard input until it ends; `begin` precedes each measurement."""
    for step in steps.values():
        step()
    print(json.dumps({"ready": True, "figures": list(steps)}), flush=True)
    for line in sys.stdin:
        name, seconds = line.split()
        begin()
        print(json.dumps({"rate": _rate(steps[name], float(seconds))}), flush=True)


def _rate(step: Step, seconds: float) -> float:
    """Units per second of the processor, over whole steps: other programs may run beside this one."""
    units, begin = 0, time.process_time()
    while (elapsed := time.process_time() - begin) < seconds or not units:
        units += step()
    return units / elapsed
