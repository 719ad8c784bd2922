"""A run folder: the files of one training run, its lock, and one manifest for each finished generation.

`docs/reference/files.md` lists the files. Nets are pruned as `commit` is told; samples, learners, games in progress and
the numbers of games, once no manifest names them; games of a cluster, when their generation is committed.

A generation is finished when its manifest is in place, which is written last: write the files, then call
`append_metrics`, then `commit`. A run can be resumed from the two newest manifests; the files that they name are
kept, and older manifests go. `commit` must name every file that a resume reads, and the best net. Readers need no lock.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from alphazero.errors import InputError, RunFolderError, StorageError, printable, warn_once
from alphazero.invocation import WINDOWS, option
from alphazero.storage.files import (
    atomic_write,
    fault_point,
    file_in,
    open_own,
    remove_stray_temporary_files,
    write_all,
    write_sealed_json,
)
from alphazero.storage.folder_lock import FolderLock
from alphazero.storage.manifest import (
    CONFIG,
    CONFIG_SEAL,
    FORMAT,
    MANIFEST_SEAL,
    NEVER_COMMITTED,
    Manifest,
    check_run_folder,
    generations_of,
    measure,
    names_in,
    newest_valid_manifest,
    read_config,
    read_manifest,
)
from alphazero.storage.metrics_file import append_metrics, repair_metrics, split_metrics, warn_of_gaps, write_metrics
from alphazero.storage.run_names import make_folder
from alphazero.storage.systems import patiently

_PRUNED = re.compile(r"(?:replay|learner|games|played)_(\d{4,9})(?!\d).*", re.ASCII)
_BEGUN = re.compile(r"(config|wandb)\.json|never_committed|run\.log|lock|(generation|learner|games)_0{4}\..+|\..+\.tmp")
"""Files of a run that has not finished generation 0."""

LOG, OLDER_LOG = "run.log", "run.log.1"
MOST_LOG_BYTES = 1 << 20
"""A log of this size takes the place of the older one, and a new one is begun."""

logger = logging.getLogger(__name__)


class RunFolder:
    """The run folder of the process that trains; made by `create` or `open`, both of which lock it."""

    def __init__(self, path: Path):
        self.path = path
        self.config: dict[str, Any] = {}
        self._was_empty = False
        self._lock = FolderLock(path)
        self.log = RunLog(path, self._lock.is_held)
        for name in remove_stray_temporary_files(path):
            logger.warning("%s: removed %s, left behind by a process that died while writing it", path, name)

    @classmethod
    def create(cls, path: str | Path, config: Mapping[str, Any]) -> RunFolder:
        """A new run; refuses a folder that already holds one, unless that ended before generation 0."""
        path = Path(path)
        was_empty = make_folder(path) or not names_in(path)
        run = cls(path)
        try:
            begun = (path / CONFIG).exists() or generations_of(path, "generation")
            if generations_of(path, "manifest") or (begun and not (path / NEVER_COMMITTED).exists()):
                try:
                    read_config(path)
                except StorageError as error:
                    raise RunFolderError(
                        f"{path} already holds a run: choose another folder. That run cannot go on: {error}"
                    ) from error
                raise RunFolderError(
                    f"{path} already holds a run; add {option('resume', True)} to go on, or choose another folder"
                )
            run._was_empty = was_empty
            atomic_write(path / NEVER_COMMITTED, b"")
            run.write_config(config)  # last: this is what makes the folder a run
        except BaseException as error:
            run.__exit__(type(error), error, None)
            raise
        return run

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """An existing run, to go on with; its settings are in `config`."""
        path = Path(path)
        warn_once.cache_clear()  # each start says what it finds
        check_run_folder(path)
        run = cls(path)
        try:
            run.config = read_config(path)
            repair_metrics(path)
            run._prune()  # a process that died in `commit` may have left that undone
        except BaseException:
            run.close()
            raise
        return run

    def close(self) -> None:
        """Frees the lock; a second call does nothing."""
        self._lock.release()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, InputError):
            self._withdraw()
        self.close()

    def _withdraw(self) -> None:
        """Removes a new run that has not got to its generation 0: a mistake leaves nothing in an empty folder."""
        if not self._was_empty or generations_of(self.path, "manifest") or not self._lock.is_held():
            return
        self.close()
        with contextlib.suppress(OSError):
            shutil.rmtree(self.path / "wandb", ignore_errors=True)
            for name in names_in(self.path):
                if _BEGUN.fullmatch(name):
                    (self.path / name).unlink()
            self.path.rmdir()  # unless somebody has put something there

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Writes the settings, sealed by their checksum."""
        self.check()
        write_sealed_json(self.path / CONFIG, config, CONFIG_SEAL)
        self.config = read_config(self.path)

    def commit(self, generation: int, files: Mapping[str, str], state: Mapping[str, Any], keep: int = 0) -> None:
        """Finishes a generation; `files` maps the names of files already written here to their SHA-256.

        `keep`: nets that stay, as `kept_generations` says; 0 for all. Those that a manifest names stay besides.
        """
        self.check()
        entries = {}
        for name, sha256 in files.items():
            num_bytes, found = measure(file_in(self.path, name))
            if found != sha256:
                raise StorageError(
                    f"{self.path / name} changed after it was written; generation {generation} is lost; find out what "
                    f"else writes there, and go on with {option('resume', True)}"
                )
            entries[name] = {"bytes": num_bytes, "sha256": sha256}
        manifest = {"format": FORMAT, "generation": generation, "files": entries, "state": dict(state)}
        fault_point("manifest.before")
        write_sealed_json(self.path / f"manifest_{generation:04d}.json", manifest, MANIFEST_SEAL)
        fault_point("manifest.after")
        self._prune(keep)

    def newest_valid(self) -> Manifest | None:
        """The newest generation of which every file verifies; None if the run never finished one.

        Damaged generations are skipped with a warning. If none verifies, it raises CheckpointError: a run never starts
        again from nothing by itself.
        """
        return newest_valid_manifest(self.path, "")

    def append_metrics(self, line: Mapping[str, Any]) -> None:
        """Adds a line to `metrics.jsonl`; `line["generation"]` is its number."""
        self.check()
        append_metrics(self.path, line)

    def metrics(self) -> list[dict[str, Any]]:
        return split_metrics(self.path)[0]

    def truncate_metrics(self, generation: int) -> None:
        """Drops the lines after `generation`, from which the run goes on; warns of those that are missing."""
        lines = self.metrics()
        kept = [line for line in lines if line["generation"] <= generation]
        warn_of_gaps(self.path, kept, generation)
        if kept != lines:
            write_metrics(self.path, kept)

    def check(self) -> None:
        """Raises RunFolderError unless the folder is still the one that was opened; call it before writing there."""
        if not self._lock.is_held():
            raise RunFolderError(
                f"{self.path} is no longer this run's folder: it was closed, removed or replaced; bring the folder "
                f"back and go on with {option('resume', True)}"
            )

    def _prune(self, keep: int = 0) -> None:
        """Removes manifests older than the two newest, and older files that these two do not name."""
        generations = generations_of(self.path, "manifest")
        if not generations:
            return  # either there is nothing yet, or the manifests were lost: no reason to lose more
        try:
            needed = {name for generation in generations[-2:] for name in read_manifest(self.path, generation)["files"]}
        except StorageError:
            return  # what a damaged manifest names is unknown; a later commit will tidy up
        unneeded = [f"manifest_{generation:04d}.json" for generation in generations[:-2]]
        for name in names_in(self.path):
            match = _PRUNED.fullmatch(name)
            if match and int(match[1]) <= generations[-1]:  # a later one is perhaps just being written
                unneeded.append(name)
        unneeded.append(NEVER_COMMITTED)
        nets = generations_of(self.path, "generation")
        for generation in set(nets) - kept_generations(nets, generations[-1], keep) if keep else ():
            # the card goes last: a net is found by its weights
            unneeded += [f"generation_{generation:04d}{ending}" for ending in (".safetensors", ".json")]
        for name in unneeded:
            if name in needed:
                continue
            fault_point("prune.before")
            try:
                (self.path / name).unlink(missing_ok=True)
            except OSError as error:
                if WINDOWS and isinstance(error, PermissionError):
                    continue  # another program has it open
                raise StorageError(
                    f"cannot remove {self.path / name}: {error.strerror}; make the folder writable"
                ) from error


def kept_generations(generations: Iterable[int], newest: int, keep: int) -> set[int]:
    """The generations whose nets stay: the `keep` newest, and at most `keep` others, evenly spaced, as milestones.

    Milestones are the multiples of the smallest power of two that gives no more of them; so each that is one today has
    been one ever since, and 0, the net that the run began with, is always one.
    """
    step = 1
    while newest // step >= keep:
        step *= 2
    return {number for number in generations if number > newest - keep or number % step == 0}


class RunLog(logging.Handler):
    """Adds lines to `run.log` in a folder, as long as `is_ours()` says that the folder is the run's.

    Each line is in the file when `add` returns. Nothing reads it but people. A log that cannot be written is said once,
    and stops no run.
    """

    def __init__(self, folder: Path, is_ours: Callable[[], bool]):
        super().__init__(logging.WARNING)
        self._folder, self._is_ours, self._failed = folder, is_ours, False

    def emit(self, record: logging.LogRecord) -> None:
        """Adds a warning of the library."""
        self.add(f"warning: {record.getMessage()}")

    def add(self, text: str) -> None:
        """Adds a line with the time; further lines of the text are indented, and control characters escaped."""
        first, *rest = [printable(line) for line in text.splitlines() or [""]]
        lines = [f"{time.strftime('%Y-%m-%d %H:%M:%S %z')}  {first}", *(f"    {line}" for line in rest)]
        content = "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace")
        try:
            if self._is_ours():
                self._write(content)
        except (OSError, StorageError) as error:
            if not self._failed:
                self._failed = True  # first: the warning comes here as well
                logger.warning("%s cannot be written, and is left as it is: %s", self._folder / LOG, error)

    def _write(self, content: bytes) -> None:
        path = self._folder / LOG
        while True:
            with open_own(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
                if os.fstat(file.fileno()).st_size < MOST_LOG_BYTES:
                    write_all(file, content)
                    return
            patiently(os.replace, path, self._folder / OLDER_LOG)

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Adds the warnings of the library, and the error that ends this block: a bug of ours with its traceback."""
        library = logging.getLogger("alphazero")
        library.addHandler(self)
        try:
            yield
        except BaseException as error:
            self.add(f"error: {error}" if isinstance(error, InputError) else f"error\n{traceback.format_exc()}")
            raise
        finally:
            library.removeHandler(self)
