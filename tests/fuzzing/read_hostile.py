"""Reads hostile files in a process of its own, so that nothing can be hidden from the measure of memory.

`python -m tests.fuzzing.read_hostile FOLDER` makes and reads those whose names it gets as a list of JSON, and prints a
line of JSON for each: how it was refused, seconds of processor time, bytes of memory beyond those before, and what it
changed outside of its folder.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

from alphazero.errors import InputError
from alphazero.storage.files import to_json
from tests.fuzzing.formats import FORMATS
from tests.fuzzing.hostile import Case, cases


def memory(which: str) -> int:
    """Bytes: `VmRSS` now, or `VmHWM` at most since the last `forget_peak`."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(which))


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def outside_of(folder: Path) -> dict[str, bytes]:
    """What lies beside a folder: the content of files and the target of links, by name."""
    found = {}
    for path in folder.parent.rglob("*"):
        if not path.is_relative_to(folder):
            name = str(path.relative_to(folder.parent))
            found[name] = (
                os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            )
    return found


def read_one(case: Case, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True)
    path = FORMATS[case.format].write(folder)
    case.spoil(path)
    there = outside_of(folder)
    forget_peak()
    before, begin = memory("VmRSS"), time.process_time()
    try:
        FORMATS[case.format].read(path)
        said, kind = "", "accepted"
    except InputError as error:
        said, kind = str(error), "refused"
    except BaseException as error:
        said, kind = f"{type(error).__name__}: {error}", "traceback"
    seconds, extra = time.process_time() - begin, memory("VmHWM") - before
    now = outside_of(folder)
    outside = sorted(name for name in there.keys() | now.keys() if there.get(name) != now.get(name))
    return {
        "name": case.name,
        "kind": kind,
        "said": said[:3000],
        "seconds": seconds,
        "bytes": extra,
        "outside": outside,
    }


def main(folder: Path, names: list[str]) -> None:
    logging.disable()
    known = {case.name: case for case in cases()}
    for name, valid in FORMATS.items():  # compiles and imports what readers need
        valid_folder = folder / "valid" / name
        valid_folder.mkdir(parents=True)
        FORMATS[name].read(valid.write(valid_folder))
    for number, name in enumerate(names):
        print(to_json(read_one(known[name], folder / f"{number}" / "inner"), None).decode(), end="", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.stdin.read()))
