"""`metrics.jsonl` of a run folder: a line of figures for each generation, sealed by its SHA-256.

They are for people, and no reason to stop a run: a file with damage is moved aside to `metrics.damaged.jsonl` (the next
one is ...damaged-2...), and its sound lines stay. Lines of older versions have no seal, and are taken as they are.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from alphazero.errors import StorageError, warn_once
from alphazero.storage.files import MAX_LINE_BYTES, atomic_write, parse_line, read_bytes, sealed_line
from alphazero.storage.formats import check_metrics
from alphazero.storage.manifest import check_run_folder, gaps, generations_of
from alphazero.storage.schema import Seconds, check
from alphazero.storage.systems import patiently

METRICS = "metrics.jsonl"
MAX_METRICS_BYTES, MAX_METRICS_LINES = 64 << 20, 100_000
"""A larger file is moved aside unread."""

logger = logging.getLogger(__name__)


def read_metrics(folder: str | Path) -> list[dict[str, Any]]:
    """For readers, without the lock: the lines of a run's metrics, less damaged ones.

    Raises StorageError if the whole file cannot be used.
    """
    newest = max(generations_of(folder, "manifest"), default=0)  # first: a run adds the line before the manifest
    lines, damaged = split_metrics(Path(folder))
    if damaged:
        warn_once(f"{Path(folder) / METRICS} has damaged lines ({len(damaged)}), which are left out")
    warn_of_gaps(Path(folder), lines, newest)
    return lines


def seconds_of_generations(path: str | Path) -> dict[int, float]:
    """For readers, without the lock: the generations whose nets exist, and the run's duration in seconds after each."""
    check_run_folder(Path(path))
    seconds = {0: 0.0}
    for line in read_metrics(path):
        seconds[line["generation"]] = check(Seconds, line.get("seconds"), f"{path}/{METRICS}, seconds")
    there = generations_of(path, "generation")
    return {generation: seconds[generation] for generation in there if generation in seconds}


def warn_of_gaps(folder: Path, lines: Iterable[Mapping[str, Any]], newest: int) -> None:
    """Warns of generations up to the `newest` that have no line."""
    if missing := gaps((line["generation"] for line in lines), newest):
        warn_once(
            f"{folder / METRICS} lacks the generations {missing}: tables and pictures have gaps, and the run "
            "is not harmed"
        )


def write_metrics(folder: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    atomic_write(folder / METRICS, b"".join(map(sealed_line, lines)))


def append_metrics(folder: Path, line: Mapping[str, Any]) -> None:
    """Adds a line; the file begins anew if it cannot be used."""
    path, added = folder / METRICS, sealed_line(line)
    try:
        content = _content(folder)
    except StorageError:
        repair_metrics(folder)
        content = b""
    if content and not content.endswith(b"\n"):  # as an editor may leave it
        content += b"\n"
    atomic_write(path, content + added)


def repair_metrics(folder: Path) -> None:
    """Moves the file aside if there is damage in it; its sound lines stay."""
    path, lines = folder / METRICS, list[dict[str, Any]]()
    try:
        lines, damaged = split_metrics(folder)
        if not damaged:
            return
        why = f"{path} has damaged lines ({len(damaged)})"
    except StorageError as error:
        why = str(error)
    aside = free_name(path)
    try:
        patiently(os.rename, path, path.with_name(aside))
    except OSError as error:
        raise StorageError(f"cannot move {path} aside: {error.strerror}; make the folder writable") from error
    if lines:
        write_metrics(folder, lines)
    logger.warning("%s; it has been renamed to %s, and the run goes on without them", why, aside)


def free_name(path: Path) -> str:
    """The first of the names `X.damaged.Y`, `X.damaged-2.Y`, ... under which nothing lies."""
    names = (f"{path.stem}.damaged{f'-{i}' * (i > 1)}{path.suffix}" for i in itertools.count(1))
    return next(name for name in names if not os.path.lexists(path.with_name(name)))


def _content(folder: Path) -> bytes:
    path = folder / METRICS
    content = read_bytes(path, MAX_METRICS_BYTES) if os.path.lexists(path) else b""
    if (count := content.count(b"\n")) > MAX_METRICS_LINES:
        raise StorageError(f"{path} has {count:,} lines, and at most {MAX_METRICS_LINES:,} are allowed")
    return content


def split_metrics(folder: Path) -> tuple[list[dict[str, Any]], list[bytes]]:
    """The lines that are as they should be, and the others; raises StorageError if the whole file cannot be used."""
    lines, damaged = list[dict[str, Any]](), list[bytes]()
    for text in _content(folder).split(b"\n"):
        if len(text) <= MAX_LINE_BYTES:
            with contextlib.suppress(StorageError):
                lines.append(check_metrics(parse_line(text, METRICS), METRICS))
                continue
        if text.strip():
            damaged.append(text)
    return lines, damaged
