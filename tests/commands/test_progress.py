"""The bar on a terminal: as wide as that is, and with a time left that no change of the clock spoils."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("termios", reason="Windows has no such terminals")

import fcntl
import pty
import struct
import termios

BAR = """
import time
import tqdm.std
from alphazero.progress import Progress

clock = [time.time()]
tqdm.std.time = lambda: clock[0]
with Progress("generation 3: self-play") as progress:
    for step in range(21):
        clock[0] += {jump} * (step == 10)
        progress.show(step / 20, f"{{step}} of 20 games, 24,111 positions/s, 1,543,104 simulations/s")
        time.sleep(0.11)
"""


def shown_on_a_terminal(columns: int, jump: int) -> list[str]:
    """All that the bar shows, each time that it is drawn."""
    terminal, program = pty.openpty()
    fcntl.ioctl(program, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    with subprocess.Popen([sys.executable, "-c", BAR.format(jump=jump)], stdout=program, stderr=program) as process:
        os.close(program)
        shown = b""
        while True:
            try:
                shown += (part := os.read(terminal, 1 << 16))
            except OSError:  # Linux says so that nobody writes any more
                break
            if not part:
                break
    os.close(terminal)
    assert process.returncode == 0, shown.decode()
    return [bar for bar in re.sub(r"\x1b\[A", "", shown.decode()).split("\r") if bar.strip()]


@pytest.mark.parametrize("columns", [40, 120])
def test_a_bar_is_no_wider_than_the_terminal_and_a_clock_that_is_set_changes_nothing(columns):
    """It once was some 105 columns wide everywhere, and left a line behind each time that it was drawn on fewer."""
    bars = shown_on_a_terminal(columns, -3600)
    assert len(bars) > 10 and all(len(bar) <= columns and "\n" not in bar for bar in bars)
    assert max(map(len, bars)) >= min(columns, 100) - 1, "it takes the room that it has"
    if columns < 100:  # no room for the time
        return
    last = bars[-1]
    assert re.search(r"9\d%|100%", last) and re.search(r"00:0\d<00:0\d", last), last
