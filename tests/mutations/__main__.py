"""Removes one protection after another from a copy of the program, and says which test notices.

    python -m tests.mutations            # all of them: about ten minutes
    python -m tests.mutations lock sign  # those with one of these words in their file, place or test

First all tests are run on the copy as it is, since a test that fails anyway notices nothing. The exit status is 0 if
every mutation is caught, 1 if one survives, 2 if the list does not fit the source.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.mutations.edits import function_in
from tests.mutations.table import MUTATIONS, Mutation

ROOT = Path(__file__).resolve().parents[2]
LEFT = ".*", "build", "runs", "*.egg-info"
"""What the copy does without."""
PATIENCE = 900.0
"""Seconds for one test: a test that hangs without its protection has noticed, too."""
PASSED, FAILED = 0, 1
"""Exit codes of pytest; others mean that nothing was tested."""


def copy_tree(folder: Path) -> None:
    """Copies the program and its tests, with their compiled code, which depends on the files' dates."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*LEFT), dirs_exist_ok=True)


def run_tests(folder: Path, tests: Sequence[str]) -> tuple[int | None, str]:
    """Runs the tests in the folder up to the first that fails; returns pytest's exit code, None if it did not end,
    and what it said."""
    command = [
        sys.executable, "-m", "pytest", "-x", "-q", "-o", "addopts=", "--import-mode=importlib",
        "-p", "no:cacheprovider", "-m", "not slow and not cuda", *tests,
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(folder)}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=subprocess.STDOUT)
        try:
            code: int | None = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            process.kill()
            process.wait()
        said.seek(0)
        return code, said.read()


def mutated(mutation: Mutation) -> str:
    """The source with the mutation; raises ValueError if its place is not there once."""
    tree = ast.parse((ROOT / mutation.file).read_text(encoding="utf-8"))
    try:
        mutation.edit(function_in(tree, mutation.place))
    except ValueError as error:
        raise ValueError(f"{mutation.name} does not fit: {error}") from error
    return ast.unparse(ast.fix_missing_locations(tree))


def verdict(mutation: Mutation, folder: Path) -> str:
    """`caught by TEST`, `SURVIVED`, or `NOT TESTED` with the reason; the file is as before when this returns."""
    path = folder / mutation.file
    path.write_text(mutated(mutation), encoding="utf-8")
    try:
        code, said = run_tests(folder, [mutation.test])
    finally:
        shutil.copy2(ROOT / mutation.file, path)
    if code == PASSED:
        return f"SURVIVED {mutation.test}"
    if code is None:
        return f"caught by {mutation.test}, which did not end"
    if code == FAILED:
        failed = next(line for line in said.splitlines() if line.startswith(("FAILED", "ERROR")))
        return f"caught by {failed.split(' - ')[0].split(maxsplit=1)[1]}"
    last_words = (said.strip().splitlines() or ["nothing"])[-1]
    return f"NOT TESTED: pytest ended with {code}, saying {last_words!r}"


def main(words: Sequence[str]) -> int:
    """Goes through the list, or those of it whose description holds one of the words; returns the exit status."""
    if {"-h", "--help"} & set(words):
        print(__doc__)
        return 0
    chosen = [each for each in MUTATIONS if not words or any(word in each.name for word in words)]
    try:
        for mutation in chosen:
            mutated(mutation)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        copy_tree(folder)
        code, said = run_tests(folder, sorted({mutation.test for mutation in chosen}))
        if code != PASSED:
            print(f"error: without any mutation the tests do not pass:\n{said}", file=sys.stderr)
            return 2
        verdicts = []
        for number, mutation in enumerate(chosen, 1):
            verdicts.append(verdict(mutation, folder))
            print(f"{number:3} of {len(chosen)}  {mutation.name}: {verdicts[-1]}", flush=True)
    caught = sum(text.startswith("caught") for text in verdicts)
    print(f"{caught} of {len(chosen)} mutations caught in {time.monotonic() - begin:.0f} s")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
