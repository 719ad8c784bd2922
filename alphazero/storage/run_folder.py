"""A run folder: the files of one training run, its lock, and one manifest for each finished generation.

    lock, lock_holder          the lock of the process that trains, and its number; the kernel frees it on kill -9
    config.json                the settings, sealed by their SHA-256, which the manifests name, too
    metrics.jsonl              one line per generation
    generation_NNNN.*          the nets, .safetensors and .json, which verify themselves; pruned as `commit` is told
    replay_NNNN.*              needed to resume, like learner_NNNN.* and games_NNNN.*; pruned
    played_NNNN.*              the numbers of a generation's games, where a cluster has played them; pruned
    arrived_NNNNNNNNN.*        games of a cluster that wait for their generation; removed when it is committed
    manifest_NNNN.json         size and SHA-256 of the generation's files, and the run's state
    shown_NNNN.json            up to four games of a generation, for people
    never_committed            there until the first manifest is; tells a young run from a lost one
    run.log, run.log.1         what began and ended, for people
    evaluation.json, report.html, ladder/, events/, wandb.json, wandb/    what is made of the run, for people

A generation is finished when its manifest is in place, which is written last: write the files, then call
`append_metrics`, then `commit`. A run can be resumed from the two newest manifests; the files that they name are
kept, and older manifests go. `commit` must name every file that a resume reads, and the best net. Readers need no lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from alphazero.errors import (
    LONGEST_PATH,
    CheckpointError,
    InputError,
    RunFolderError,
    StorageError,
    listed,
    quote,
    shorten_path,
    warn_once,
)
from alphazero.invocation import option
from alphazero.storage.arrays import MAX_BYTES
from alphazero.storage.files import (
    atomic_write,
    fault_point,
    file_in,
    open_regular,
    parse_json,
    read_json,
    read_json_less_seal,
    read_sealed_json,
    remove_stray_temporary_files,
    sha256_of_open,
    to_json,
    write_sealed_json,
)
from alphazero.storage.folder_lock import LOCK, FolderLock
from alphazero.storage.formats import (
    MAX_HEADER_BYTES,
    MAX_WEIGHTS_BYTES,
    ManifestFile,
    SavedRun,
    SecondsSoFar,
)
from alphazero.storage.generations import generations_of, kept_generations, names_in
from alphazero.storage.metrics_file import (
    METRICS,
    append_metrics,
    read_metrics,
    repair_metrics,
    split_metrics,
    warn_of_gaps,
    write_metrics,
)
from alphazero.storage.run_log import RunLog
from alphazero.storage.schema import check
from alphazero.storage.systems import remove_unless_read

FORMAT = 1
OLDER_SETTINGS: dict[str, Any] = {"keep": 0}
"""The values of settings that older runs do not have, by which they went on: every net stayed."""
CONFIG, NEVER_COMMITTED = "config.json", "never_committed"
CONFIG_SEAL, MANIFEST_SEAL = "config_sha256", "manifest_sha256"

_SPARED = re.compile(r"(?:generation|replay|played)_(\d{4,9})\.\w+", re.ASCII)  # a later generation can do without
_PRUNED = re.compile(r"(?:replay|learner|games|played)_(\d{4,9})(?!\d).*", re.ASCII)
_BEGINNING = re.compile(r"(config|wandb)\.json|never_committed|run\.log|(generation|learner|games)_0{4}\..+|\..+\.tmp")
"""Files of a run that has not finished generation 0."""
_FOLDER_AND_GENERATION = re.compile(r"(.+):(\d{1,9})", re.ASCII)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Manifest:
    """A finished generation: its files (name -> SHA-256) and the run's state after it."""

    generation: int
    files: dict[str, str]
    state: dict[str, Any]
    lost: dict[str, str] = field(default_factory=dict)
    """Older generations' files that are damaged or gone (name -> sentence); `files` and `state["best"]` name none."""


class RunFolder:
    """The run folder of the process that trains; made by `create` or `open`, both of which lock it."""

    def __init__(self, path: Path):
        self.path = path
        self.config: dict[str, Any] = {}
        self._sealed = False
        """The settings on the disk have a seal, which those of older runs have not."""
        self._made = False
        """The folder was not there before."""
        self._names_before: set[str] | None = None
        """The names in the folder of a new run when it was made; None for a run that goes on."""
        self._lock = FolderLock(path)
        self.log = RunLog(path, self._lock.is_held)
        for name in remove_stray_temporary_files(path):
            logger.warning("%s: removed %s, left behind by a process that died while writing it", path, name)

    @classmethod
    def create(cls, path: str | Path, config: Mapping[str, Any]) -> RunFolder:
        """A new run; refuses a folder that already holds one, unless that ended before generation 0."""
        path = Path(path)
        made, names = _make(path), set(names_in(path))
        run = cls(path)
        try:
            begun = (path / CONFIG).exists() or _generations(path, "generation")
            if _generations(path, "manifest") or (begun and not (path / NEVER_COMMITTED).exists()):
                raise RunFolderError(_held(path))
            run._made, run._names_before = made, None if begun else names
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
            run.config, run._sealed = read_config(path), CONFIG_SEAL in read_json(path / CONFIG)
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, InputError):
            self._withdraw()
        self.close()

    def _withdraw(self) -> None:
        """Removes what a new run has left, if it has not got to its generation 0: a mistake leaves no run behind."""
        before = self._names_before
        if before is None or _generations(self.path, "manifest") or not self._lock.is_held():
            return
        with contextlib.suppress(OSError):
            for name in set(names_in(self.path)) - before:
                if name == "wandb":
                    shutil.rmtree(self.path / name, ignore_errors=True)
                elif _BEGINNING.fullmatch(name):
                    (self.path / name).unlink()
            if LOCK not in before:
                self._lock.remove()
            if self._made:
                self.path.rmdir()  # unless somebody has put something there

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Writes the settings, sealed by their checksum, unless they are there already.

        The manifests come first, and name both the settings of before and these: a process that is killed at any
        moment leaves settings that they name.
        """
        self.check()
        before, after = _settings_sha256(self.config), _settings_sha256(config)
        for generation in _generations(self.path, "manifest"):
            with contextlib.suppress(StorageError):  # a damaged one counts no more
                manifest = _read_manifest(self.path, generation)
                if not {before, after} <= set(manifest.get("settings", ())):
                    manifest["settings"] = sorted({before, after})
                    write_sealed_json(self.path / f"manifest_{generation:04d}.json", manifest, MANIFEST_SEAL)
        if before != after or not self._sealed:
            write_sealed_json(self.path / CONFIG, config, CONFIG_SEAL)
        self.config, self._sealed = read_config(self.path), True

    def commit(self, generation: int, files: Mapping[str, str], state: Mapping[str, Any], keep: int = 0) -> None:
        """Finishes a generation; `files` maps the names of files already written here to their SHA-256.

        `keep`: nets that stay, as `kept_generations` says; 0 for all. Those that a manifest names stay besides.
        """
        self.check()
        entries = {}
        for name, sha256 in files.items():
            num_bytes, found = _measure(file_in(self.path, name))
            if found != sha256:
                raise StorageError(
                    f"{self.path / name} changed after it was written; generation {generation} is lost; find out what "
                    f"else writes there, and go on with {option('resume', True)}"
                )
            entries[name] = {"bytes": num_bytes, "sha256": sha256}
        manifest = {"format": FORMAT, "generation": generation, "files": entries, "state": dict(state)}
        manifest["settings"] = [_settings_sha256(self.config)]
        fault_point("manifest.before")
        write_sealed_json(self.path / f"manifest_{generation:04d}.json", manifest, MANIFEST_SEAL)
        fault_point("manifest.after")
        self._prune(keep)

    def newest_valid(self) -> Manifest | None:
        """The newest generation of which every file verifies; None if the run never finished one.

        Damaged generations are skipped with a warning. If none verifies, it raises CheckpointError: a run never starts
        again from nothing by itself.
        """
        return _newest_valid(self.path, "")

    def append_metrics(self, line: Mapping[str, Any]) -> None:
        """Adds a line to `metrics.jsonl`; `line["generation"]` is its number."""
        if not isinstance(line.get("generation"), int):
            raise TypeError(f"a line of metrics needs its generation: {line}")
        self.check()
        append_metrics(self.path, line)

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of `metrics.jsonl`."""
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
        generations = _generations(self.path, "manifest")
        if not generations:
            return  # either there is nothing yet, or the manifests were lost: no reason to lose more
        try:
            needed = {name for generation in generations[:2] for name in _read_manifest(self.path, generation)["files"]}
        except StorageError:
            return  # what a damaged manifest names is unknown; a later commit will tidy up
        unneeded = [self.path / f"manifest_{generation:04d}.json" for generation in reversed(generations[2:])]
        for name in names_in(self.path):
            match = _PRUNED.fullmatch(name)
            if match and int(match[1]) <= generations[0]:  # a later one is perhaps just being written
                unneeded.append(self.path / name)
        unneeded.append(self.path / NEVER_COMMITTED)
        nets = _generations(self.path, "generation")
        for generation in set(nets) - kept_generations(nets, generations[0], keep) if keep else ():
            # the card goes last: a net is found by its weights
            unneeded += [self.path / f"generation_{generation:04d}{ending}" for ending in (".safetensors", ".json")]
        for file in unneeded:
            if file.name not in needed:
                fault_point("prune.before")
                try:
                    remove_unless_read(file)
                except OSError as error:
                    raise StorageError(f"cannot remove {file}: {error.strerror}; make the folder writable") from error


def read_config(path: str | Path) -> dict[str, Any]:
    """For readers, without the lock: the settings of a run.

    Raises StorageError if a bit of them has changed, or if the newest manifest names others. Runs of older versions
    have no seal, and their manifests name none; those settings are taken as they are.
    """
    tried = None
    while True:
        config, named = _read_sealed_config(Path(path)), _settings_named(Path(path))
        found = _settings_sha256(config)
        if not named or found in named:
            return config
        if tried == (found, named):  # else a running process has changed them meanwhile
            raise StorageError(
                f"{Path(path) / CONFIG} does not hold the settings of this run{_without_settings(Path(path))}"
            )
        tried = found, named


def _read_sealed_config(folder: Path) -> dict[str, Any]:
    """The settings without their seal, which is verified if there is one."""
    try:
        config = read_json_less_seal(folder / CONFIG, CONFIG_SEAL)
        if not isinstance(config, dict):
            raise StorageError(f"{folder / CONFIG} is damaged: it should hold names and values")
        return config
    except StorageError as error:
        raise StorageError(f"{error}{_without_settings(folder)}") from error


def _held(folder: Path) -> str:
    """The sentence for who begins a run where there is one."""
    try:
        read_config(folder)
        return f"{folder} already holds a run; add {option('resume', True)} to go on, or choose another folder"
    except StorageError as error:
        return f"{folder} already holds a run: choose another folder. That run cannot go on: {error}"


def _without_settings(folder: Path) -> str:
    """The end of a sentence about settings that cannot be used."""
    return f"; restore the file{_from_its_nets(folder)}"


def _from_its_nets(folder: Path) -> str:
    """The way to save a run that cannot go on, for the end of a sentence; empty if it has no net."""
    if not (nets := generations_of(folder, "generation")):
        return ""
    net = folder / f"generation_{nets[-1]:04d}.safetensors"
    return f", or begin a new run with its newest net by {option('initial_net', net)}"


def _settings_sha256(config: Mapping[str, Any]) -> str:
    """The SHA-256 of settings, which is their seal."""
    return hashlib.sha256(to_json(parse_json(to_json(dict(config)), CONFIG))).hexdigest()


def _settings_named(folder: Path) -> list[str]:
    """The SHA-256 of the settings that the newest manifest names; none in a run without manifests, or an older one."""
    for generation in _generations(folder, "manifest"):
        with contextlib.suppress(StorageError):
            return list(_read_manifest(folder, generation).get("settings", ()))
    return []


def read_settings(path: str | Path) -> dict[str, Any]:
    """As `read_config`, of a run that training has written: its `game`, `seed`, `threads` and `settings`."""
    config = read_config(path)
    check(SavedRun, config, str(Path(path) / CONFIG), RunFolderError, f"; {path} is no run of this version")
    return config | {"settings": OLDER_SETTINGS | config["settings"]}


def latest_manifest(path: str | Path) -> Manifest | None:
    """For readers, without the lock: the newest generation whose nets (`generation_*` files) verify.

    The other files are not read: readers do not need them, and a running process prunes them.
    """
    check_run_folder(Path(path))
    return _newest_valid(Path(path), "generation_")


def seconds_of_generations(path: str | Path) -> dict[int, float]:
    """For readers, without the lock: the generations whose nets exist, and the run's duration in seconds after each."""
    check_run_folder(Path(path))
    seconds = {0: 0.0}
    for line in read_metrics(path):
        seconds[line["generation"]] = check(SecondsSoFar, line, f"{Path(path) / METRICS}").seconds
    there = set(_generations(Path(path), "generation"))
    return {generation: seconds[generation] for generation in sorted(seconds.keys() & there)}


def choose_folder(game_name: str, resume: bool) -> Path:
    """A name for a new run under runs/, or to resume the newest run there; raises RunFolderError if there is none."""
    game_name = re.sub(r"[^\w.]+", "-", game_name).strip("-") or "game"  # as of openspiel:hex(board_size=5)
    found = [re.fullmatch(re.escape(game_name) + r"-(\d+)", path.name) for path in Path("runs").glob("*")]
    names = [match for match in found if match and (not resume or _is_run_folder(Path("runs") / match[0]))]
    newest = max((int(match[1]) for match in names), default=0)
    if resume and not newest:
        raise RunFolderError(
            f"there is no run of {game_name} under runs/ to go on with: name its folder by {option('run')}"
        )
    return Path("runs") / f"{game_name}-{newest + (not resume)}"


@contextlib.contextmanager
def new_folder(game_name: str) -> Iterator[Path]:
    """A new folder for a run under runs/, which no other process gets; if it is empty at the end, it is removed."""
    runs, is_first = Path("runs"), not os.path.lexists("runs")
    folder = choose_folder(game_name, resume=False)
    while not _make(folder):  # perhaps also there under a name that differs in case alone
        folder = folder.with_name(re.sub(r"\d+$", lambda number: str(int(number[0]) + 1), folder.name))
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()
        if is_first:
            with contextlib.suppress(OSError):
                runs.rmdir()


def _make(folder: Path) -> bool:
    """Makes a folder for a run unless it is there; says which."""
    try:
        folder.mkdir(parents=True)
    except (OSError, ValueError) as error:  # the second for a NUL in the name
        if isinstance(error, FileExistsError) and folder.is_dir():
            return False
        reason = getattr(error, "strerror", error)
        raise RunFolderError(
            f"cannot make the run folder {shorten_path(folder)}: {reason}; choose another one"
        ) from error
    return True


def resolve_checkpoint(text: str) -> Path:
    """The weights that a name means: a `.safetensors` file, a run folder (its best net), or `folder:12`."""
    path = Path(text)
    if _is_run_folder(text):
        manifest = latest_manifest(path)
        if manifest is None:
            raise CheckpointError(f"{text} has not finished a generation yet: wait for it, or go on with the run")
        return _generation_file(path, manifest.state.get("best"))
    match = _FOLDER_AND_GENERATION.fullmatch(text)
    if match and _is_run_folder(match[1]):
        return _generation_file(Path(match[1]), int(match[2]))
    if path.suffix == ".safetensors" and os.path.isfile(text):
        return path
    folder = path if os.path.isdir(text) else path.parent
    holder, here = ("this folder", " here") if folder == Path() else (shorten_path(folder), "")
    kind = "is neither a .safetensors file nor a run folder" if os.path.exists(text) else f"is no file or folder{here}"
    beside = listed([name for name in names_in(folder) if name.endswith(".safetensors")], 8) or "no .safetensors file"
    raise CheckpointError(
        f"{quote(text, LONGEST_PATH)} {kind}, and {holder} holds {beside}: name a checkpoint, a run folder or folder:12"
    )


def _generation_file(folder: Path, generation: object) -> Path:
    available = sorted(_generations(folder, "generation"))
    if not isinstance(generation, int) or generation not in available:
        there = listed(available, 8) or "none"
        raise CheckpointError(f"{folder} has no generation {quote(generation)}; choose one that it has ({there})")
    return folder / f"generation_{generation:04d}.safetensors"


def _is_run_folder(path: str | Path) -> bool:
    return os.path.isfile(os.path.join(path, CONFIG)) or bool(_generations(Path(path), "manifest"))


def check_run_folder(path: Path) -> None:
    """Raises RunFolderError if the folder holds no run; one that has lost its settings is a run."""
    if not _is_run_folder(path):
        what = f"is not a run folder: it has no {CONFIG}" if os.path.exists(path) else "does not exist"
        raise RunFolderError(f"{shorten_path(path)} {what}; name the folder of a run")


def _generations(folder: Path, kind: str) -> list[int]:
    """As `generations_of`, newest first."""
    return generations_of(folder, kind)[::-1]


def verify_manifest(folder: Path, generation: int, prefix: str = "") -> Manifest:
    """The manifest of a generation, once those of its files whose names begin with `prefix` have been verified.

    Raises StorageError about the first thing that is wrong. Games of older generations may be lost, and an older best
    net, for which the generation's own stands in.
    """
    manifest = _read_manifest(folder, generation)
    files = {name: entry["sha256"] for name, entry in manifest["files"].items()}
    state, lost = manifest["state"], dict[str, str]()
    for name, entry in manifest["files"].items():
        try:
            expected = entry["bytes"], entry["sha256"]
            if name.startswith(prefix) and _measure(file_in(folder, name), entry["bytes"]) != expected:
                raise StorageError(f"{folder / name} is damaged: its size or SHA-256 is not the manifest's")
        except StorageError as error:
            match = _SPARED.fullmatch(name)
            if not match or int(match[1]) >= generation:
                raise
            del files[name]
            if name.startswith("generation_"):
                state = state | {"best": generation}
                error = StorageError(f"{error}; the net of generation {generation} stands in for the best one")
            lost[name] = str(error)
    return Manifest(generation, files, state, lost)


def _newest_valid(folder: Path, prefix: str) -> Manifest | None:
    """Verifies those of a manifest's files whose names begin with `prefix`."""
    while True:
        generations = _generations(folder, "manifest")
        damage = []
        for generation in generations:
            try:
                manifest = verify_manifest(folder, generation, prefix)
            except StorageError as error:
                damage.append(f"generation {generation} is unusable: {error}")
                continue
            if manifest.lost and generations != _generations(folder, "manifest"):
                break  # a running process has moved on and removed them
            for sentence in damage:
                warn_once(f"{folder}: {sentence}; going back to generation {generation}")
            for sentence in manifest.lost.values():
                warn_once(sentence)
            return manifest
        never_committed = (folder / NEVER_COMMITTED).exists()
        if generations == _generations(folder, "manifest"):  # else a running process has moved on meanwhile
            break
    if damage:
        raise CheckpointError(
            f"{folder} has no generation left to go on from: {'; '.join(damage)}; bring its files back"
            f"{_from_its_nets(folder)}"
        )
    if not never_committed:
        raise CheckpointError(
            f"the manifests of {folder} are gone, without which it does not go on: bring them back"
            f"{_from_its_nets(folder)}"
        )
    return None


def _read_manifest(folder: Path, generation: int) -> dict[str, Any]:
    path = folder / f"manifest_{generation:04d}.json"
    manifest = read_sealed_json(path, MANIFEST_SEAL)
    found = manifest.get("format")
    if isinstance(found, int) and found > FORMAT:  # no damage: going back would overwrite what a newer version made
        raise RunFolderError(f"{path} has format {found}, and this version reads {FORMAT}: update alphazero")
    if found != FORMAT:
        raise StorageError(f"{path} has format {quote(found)}, this version reads {FORMAT}")
    if check(ManifestFile, manifest, str(path)).generation != generation:
        raise StorageError(f"{path} is not a manifest of generation {generation}")
    return manifest


def _measure(path: Path, expected_bytes: int | None = None) -> tuple[int, str]:
    """Size in bytes and SHA-256 of a regular file, which is not read if its size is absurd or not the expected one."""
    most = MAX_WEIGHTS_BYTES + MAX_HEADER_BYTES if path.name.startswith("generation_") else MAX_BYTES
    with open_regular(path) as file:
        num_bytes = os.fstat(file.fileno()).st_size
        if num_bytes > most:
            raise StorageError(f"{path} is larger than any such file: {num_bytes:,} bytes, and not {most:,} at most")
        return num_bytes, sha256_of_open(file) if expected_bytes in (None, num_bytes) else ""
