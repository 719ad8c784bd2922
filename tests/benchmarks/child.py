"""A function for a process of its own, which imports this file: it needs no more than this, and no torch."""

import subprocess
import sys

COUNT = "import os; print(len(os.sched_getaffinity(0)))"


def cores_of_a_child() -> int:
    """The number of cores that a program has which this process starts."""
    return int(subprocess.check_output([sys.executable, "-c", COUNT]))
