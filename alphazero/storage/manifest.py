"""For readers, without the lock: the settings of a run, its finished generations, and what of them verifies."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from alphazero.errors import CheckpointError, RunFolderError, StorageError, listed, shorten_path, warn_once
from alphazero.invocation import option
from alphazero.storage.arrays import MAX_BYTES
from alphazero.storage.files import file_in, open_regular, read_json_less_seal, read_sealed_json, sha256_of_open
from alphazero.storage.formats import MAX_HEADER_BYTES, MAX_WEIGHTS_BYTES, ManifestFile, SavedRun
from alphazero.storage.schema import check

FORMAT = 1
CONFIG, NEVER_COMMITTED = "config.json", "never_committed"
CONFIG_SEAL, MANIFEST_SEAL = "config_sha256", "manifest_sha256"
_SPARED = re.compile(r"(?:generation|replay|played)_(\d{4,9})\.\w+", re.ASCII)  # a later generation can do without

_ENDINGS = {"generation": "safetensors", "manifest": "json"}


@dataclass(frozen=True)
class Manifest:
    """A finished generation: its files (name -> SHA-256) and the run's state after it."""

    generation: int
    files: dict[str, str]
    state: dict[str, Any]
    lost: dict[str, str] = field(default_factory=dict)
    """Older generations' files that are damaged or gone (name -> sentence); `files` and `state["best"]` name none."""


def read_config(path: str | Path) -> dict[str, Any]:
    """For readers, without the lock: the settings of a run.

    Raises StorageError if a bit of them has changed. Those of older versions have no seal, and are taken as they are.
    """
    try:
        config = read_json_less_seal(Path(path) / CONFIG, CONFIG_SEAL)
        if not isinstance(config, dict):
            raise StorageError(f"{Path(path) / CONFIG} is damaged: it should hold names and values")
        return config
    except StorageError as error:
        raise StorageError(f"{error}; restore the file{from_its_nets(Path(path))}") from error


def from_its_nets(folder: Path) -> str:
    """The way to save a run that cannot go on, for the end of a sentence; empty if it has no net."""
    if not (nets := generations_of(folder, "generation")):
        return ""
    net = folder / f"generation_{nets[-1]:04d}.safetensors"
    return f", or begin a new run with its newest net by {option('initial_net', net)}"


def read_settings(path: str | Path) -> dict[str, Any]:
    """As `read_config`, of a run that training has written: its `game`, `seed`, `threads` and `settings`."""
    config = read_config(path)
    check(SavedRun, config, str(Path(path) / CONFIG), RunFolderError, f"; {path} is no run of this version")
    # in older runs, which have no such setting, every net stayed
    return config | {"settings": {"keep": 0} | config["settings"]}


def latest_manifest(path: str | Path) -> Manifest | None:
    """For readers, without the lock: the newest generation whose nets (`generation_*` files) verify.

    The other files are not read: readers do not need them, and a running process prunes them.
    """
    check_run_folder(Path(path))
    return newest_valid_manifest(Path(path), "generation_")


def is_run_folder(path: str | Path) -> bool:
    return os.path.isfile(os.path.join(path, CONFIG)) or bool(generations_of(path, "manifest"))


def check_run_folder(path: Path) -> None:
    """Raises RunFolderError if the folder holds no run; one that has lost its settings is a run."""
    if not is_run_folder(path):
        what = f"is not a run folder: it has no {CONFIG}" if os.path.exists(path) else "does not exist"
        raise RunFolderError(f"{shorten_path(path)} {what}; name the folder of a run")


def verify_manifest(folder: Path, generation: int, prefix: str = "") -> Manifest:
    """The manifest of a generation, once those of its files whose names begin with `prefix` have been verified.

    Raises StorageError about the first thing that is wrong. Games of older generations may be lost, and an older best
    net, for which the generation's own stands in.
    """
    manifest = read_manifest(folder, generation)
    files = {name: entry["sha256"] for name, entry in manifest["files"].items()}
    state, lost = manifest["state"], dict[str, str]()
    for name, entry in manifest["files"].items():
        try:
            expected = entry["bytes"], entry["sha256"]
            if name.startswith(prefix) and measure(file_in(folder, name), entry["bytes"]) != expected:
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


def newest_valid_manifest(folder: Path, prefix: str) -> Manifest | None:
    """Verifies those of a manifest's files whose names begin with `prefix`."""
    while True:
        generations, damage, manifest = generations_of(folder, "manifest"), list[str](), None
        for generation in reversed(generations):
            try:
                manifest = verify_manifest(folder, generation, prefix)
                break
            except StorageError as error:
                damage.append(f"generation {generation} is unusable: {error}")
        lost = [] if manifest is None else list(manifest.lost.values())
        never_committed = (folder / NEVER_COMMITTED).exists()
        # else a running process has moved on and removed them
        if (manifest and not damage and not lost) or generations == generations_of(folder, "manifest"):
            break
    if manifest is not None:
        for sentence in [f"{folder}: {each}; going back to generation {manifest.generation}" for each in damage] + lost:
            warn_once(sentence)
        return manifest
    if damage:
        why = f"{folder} has no generation left to go on from: {'; '.join(damage)}; bring its files back"
    elif not never_committed:
        why = f"the manifests of {folder} are gone, without which it does not go on: bring them back"
    else:
        return None
    raise CheckpointError(f"{why}{from_its_nets(folder)}")


def read_manifest(folder: Path, generation: int) -> dict[str, Any]:
    """The content of a manifest, verified."""
    path = folder / f"manifest_{generation:04d}.json"
    manifest = read_sealed_json(path, MANIFEST_SEAL)
    found = manifest.get("format")
    if isinstance(found, int) and found > FORMAT:  # no damage: going back would overwrite what a newer version made
        raise RunFolderError(f"{path} has format {found}, and this version reads {FORMAT}: update alphazero")
    if check(ManifestFile, manifest, str(path)).generation != generation:
        raise StorageError(f"{path} is not a manifest of generation {generation}")
    return manifest


def measure(path: Path, expected_bytes: int | None = None) -> tuple[int, str]:
    """Size in bytes and SHA-256 of a regular file, which is not read if its size is absurd or not the expected one."""
    most = MAX_WEIGHTS_BYTES + MAX_HEADER_BYTES if path.name.startswith("generation_") else MAX_BYTES
    with open_regular(path) as file:
        num_bytes = os.fstat(file.fileno()).st_size
        if num_bytes > most:
            raise StorageError(f"{path} is larger than any such file: {num_bytes:,} bytes, and not {most:,} at most")
        return num_bytes, sha256_of_open(file) if expected_bytes in (None, num_bytes) else ""


def names_in(folder: Path) -> list[str]:
    """The entries of `folder`, sorted; none if it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def generations_of(folder: str | Path, kind: str) -> list[int]:
    """The numbers of a run's files of a kind, `manifest` or `generation` (nets), in ascending order."""
    pattern = re.compile(rf"{kind}_(\d{{4,9}})\.{_ENDINGS[kind]}", re.ASCII)
    return sorted(int(match[1]) for match in map(pattern.fullmatch, names_in(Path(folder))) if match)


def gaps(numbers: Iterable[int], newest: int) -> str:
    """The generations from 1 to `newest` that `numbers` lacks, as `1-3, 7`; its cost does not depend on `newest`."""
    known = [0, *sorted({number for number in numbers if 0 < number <= newest}), newest + 1]
    missing = [(before + 1, after - 1) for before, after in itertools.pairwise(known) if after - before > 1]
    return listed((f"{first}" if first == last else f"{first}-{last}" for first, last in missing), 10)
