"""Examines a run folder: its files, what of it can be resumed, its settings, who trains there. Changes nothing."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from alphazero.catalogue import registry
from alphazero.catalogue.loaded import LoadedGame
from alphazero.doctor.findings import Section, show_bytes
from alphazero.errors import InputError, StorageError, count_of, listed, printable, shorten
from alphazero.invocation import command_line
from alphazero.nets.devices import choose_devices
from alphazero.storage.checkpoint import load_checkpoint
from alphazero.storage.files import open_regular
from alphazero.storage.folder_lock import holder_of
from alphazero.storage.generations import gaps, generations_of, in_words
from alphazero.storage.manifest import NEVER_COMMITTED, Manifest, check_run_folder, read_config, verify_manifest
from alphazero.storage.metrics_file import split_metrics
from alphazero.storage.run_log import LOG
from alphazero.training.config import RunConfig
from alphazero.training.parts.arrivals import arrivals_in, bytes_of_arrival, most_games, unpack
from alphazero.training.parts.resume import SavedState, read_state
from alphazero.training.report import lost_matches, read_evaluation
from alphazero.training.run import example_config, read_saved

LOG_LINES, LOG_BYTES = 5, 64 << 10


class Settings(NamedTuple):
    """The settings of a run, as far as they can be read."""

    config: Mapping[str, Any]
    loaded: LoadedGame | None
    """The game, if it is one that comes with alphazero."""
    saved: RunConfig | None


def examine_run(folder: Path) -> list[Section]:
    """All sections about a run folder; raises RunFolderError if it holds no run."""
    check_run_folder(folder)
    holder = holder_of(folder)
    about_settings, settings = _settings(folder)
    about_generations, whole = _generations(folder, settings.config)
    return [
        _state(folder, holder, whole, settings),
        about_settings,
        about_generations,
        _nets(folder),
        *_arrivals(folder, whole, settings),
        _sizes(folder, holder),
        *_log(folder),
    ]


def _settings(folder: Path) -> tuple[Section, Settings]:
    section, config, loaded, saved = Section("settings"), dict[str, Any](), None, None
    try:
        config = read_config(folder)
        section.add("game", shorten(game := str(config.get("game"))))
        try:
            loaded = registry.load_named(game, str(folder))  # never a file: that would run its code
        except InputError:
            section.add("values", "not checked: the game is not one that comes with alphazero")
        else:
            saved = read_saved(folder, game, example_config(loaded)).config
            section.add("values", "whole, and all known to this version")
            minutes = f" or {saved.minutes:g} minute{'s' * (saved.minutes != 1)}" * (saved.minutes > 0)
            section.add("ends after", f"generation {saved.generations}{minutes}")
    except InputError as error:
        section.wrong.append(str(error))
    return section, Settings(config, loaded, saved)


def _state(
    folder: Path, holder: str | None, whole: Sequence[tuple[Manifest, SavedState]], settings: Settings
) -> Section:
    """Where the run is, who trains there, and how to go on."""
    section, flags = Section(f"run {printable(str(folder))}"), list[str]()
    section.add("training now", holder or "nobody")
    answer = "yes, from the beginning: no generation is saved yet"
    if whole:
        newest, state = whole[-1]
        answer = f"from generation {newest.generation}"
        section.add("best net", f"generation {state.best}")
        section.add("trained for", f"{state.seconds / 60:.1f} minutes")
        section.add("goes on with", f"threads {state.threads}, seed {state.seed}, inference {shorten(state.inference)}")
        flags = ["--deterministic"] * bool(state.deterministic) + _device_flags(list(state.devices))
    elif generations_of(folder, "manifest") or not (folder / NEVER_COMMITTED).exists():
        section.add("can be resumed", "no: no generation is whole")
        section.wrong.append(
            "no generation of the run is whole, so it cannot go on: bring back its files, or begin a new run from its "
            "newest net by --initial-net"
        )
        return section
    section.add("can be resumed", answer if settings.config else "no: its settings cannot be used")
    if settings.config and holder is None:
        name = str(settings.config.get("game"))
        is_known = settings.loaded is not None or os.path.isfile(name.partition(":")[0])
        game = name if is_known else "PATH"
        section.add("command", command_line("train", "--game", game, "--run", folder, "--resume", *flags))
        if not is_known:
            section.add("PATH", f"the file of your game, which the run calls {shorten(name)}")
    return section


def _device_flags(devices: list[str]) -> list[str]:
    """The flag for the devices that the run was begun on, if a run gets others here by itself."""
    if not devices or devices == [name.partition(":")[0] for name in choose_devices("auto")]:  # older runs do not tell
        return []
    names = [f"cuda:{i}" for i in range(len(devices))] if devices[0] == "cuda" and len(devices) > 1 else devices
    return ["--device", ",".join(names)]


def _generations(folder: Path, config: Mapping[str, Any]) -> tuple[Section, list[tuple[Manifest, SavedState]]]:
    """Gaps in what each generation leaves; and the manifests whose files verify and whose states make sense."""
    section, whole = Section("generations"), list[tuple[Manifest, SavedState]]()
    for generation in generations_of(folder, "manifest"):
        name, advice = f"manifest {generation}", ""
        try:
            manifest = verify_manifest(folder, generation)
            advice = f"; move manifest_{generation:04d}.json away"  # its files verify, so a resume would not skip it
            state = read_state(manifest, folder)
        except StorageError as error:
            if generation in generations_of(folder, "manifest"):  # else the run has gone on and removed it
                section.add(name, "damaged")
                back = f"; the run can go back to generation {whole[-1][0].generation}" if whole else ""
                section.wrong.append(f"generation {generation} cannot be resumed: {error}{advice}{back}")
            continue
        whole.append((manifest, state))
        size = sum(os.path.getsize(folder / name) for name in manifest.files if (folder / name).exists())
        section.add(name, f"whole: {count_of(len(manifest.files), 'file')}, {show_bytes(size)}")
    lost = {name: sentence for manifest, _ in whole for name, sentence in manifest.lost.items()}
    section.wrong += [f"{sentence}; the next --resume goes on without it" for sentence in lost.values()]
    lines, damaged = list[dict[str, Any]](), list[bytes]()
    try:
        lines, damaged = split_metrics(folder)
        if read_evaluation(folder) is None and lines and config:
            section.advice += filter(None, [lost_matches(folder, config.get("settings", {}), lines[-1])])
    except StorageError as error:
        section.advice.append(f"{error}; the next --resume moves it aside, and the run is not harmed")
    except InputError as error:
        section.wrong.append(str(error))
    if damaged:
        section.advice.append(
            f"metrics.jsonl has damaged lines ({len(damaged)}): the next --resume moves them aside, and the run is not "
            "harmed"
        )
    numbers = [line["generation"] for line in lines]
    section.add("lines of metrics", _ranges(numbers))
    if missing := gaps(numbers, whole[-1][0].generation if whole else max(numbers, default=0)):
        section.advice.append(f"metrics.jsonl lacks the generations {in_words(missing)}: its pictures have gaps")
    return section, whole


def _nets(folder: Path) -> Section:
    """Verifies every net, with its card."""
    section, newest = Section("nets"), max(generations_of(folder, "manifest"), default=-1)
    found = generations_of(folder, "generation")
    numbers, unfinished = [n for n in found if n <= newest], [n for n in found if n > newest]
    section.add("generations", _ranges(numbers))
    if unfinished:
        section.add("not finished", f"{_ranges(unfinished)}, which the next --resume plays anew")
    for number in numbers:
        path = folder / f"generation_{number:04d}.safetensors"
        try:
            load_checkpoint(path)
        except StorageError as error:
            if path.exists():  # else the run has removed it
                section.wrong.append(f"the net of generation {number} cannot be used: {error}")
    section.add("whole", f"{len(numbers) - len(section.wrong)} of {len(numbers)}")
    for card in sorted(folder.glob("generation_*.json")):
        if not (weights := card.with_suffix(".safetensors")).exists() and card.exists():
            section.wrong.append(
                f"a net is gone, and its card is there: bring back {shorten(weights.name)}, or remove the card"
            )
    return section


def _arrivals(folder: Path, whole: Sequence[tuple[Manifest, SavedState]], settings: Settings) -> list[Section]:
    """Reads the games of a cluster that wait for their generation, if there are any."""
    taken = whole[-1][1].arrived if whole else ()
    waiting = [path for number, path in arrivals_in(folder).items() if number not in taken]
    section, loaded, saved = Section("games that wait"), settings.loaded, settings.saved
    section.add("files", len(waiting))
    if loaded is not None and saved is not None:
        most = most_games(loaded.game, saved.self_play.games_per_generation)
        for path in waiting:
            try:
                unpack(bytes_of_arrival(path, loaded.game, most), str(path), loaded.game, most)
            except StorageError as error:
                if path.exists():  # else a generation has taken it
                    section.wrong.append(f"the games in {path.name} are lost: {error}; the run goes on without them")
    return [section] if waiting else []


def _sizes(folder: Path, holder: str | None) -> Section:
    """Bytes by the beginning of the files' names."""
    sizes, counts, strange = Counter[str](), Counter[str](), list[str]()
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            continue
        name = path.relative_to(folder).as_posix()
        kind = "left behind" if re.fullmatch(r"\..+\.\d+\.tmp", name) else re.split(r"_\d|/", name)[0]
        try:
            sizes[kind] += path.lstat().st_size
        except OSError:
            continue
        counts[kind] += 1
        if path.is_symlink() or not (path.is_file() or not path.exists()):
            strange.append(name)
    section = Section("files")
    for kind, size in sizes.most_common(20):
        section.add(shorten(kind, 30), f"{show_bytes(size)} in {count_of(counts[kind], 'file')}")
    section.add("all", show_bytes(sizes.total()))
    if counts["left behind"] and holder is None:
        section.advice.append("a process died while it wrote a file; the next --resume removes what it left behind")
    if strange:
        section.wrong.append(f"{listed(map(shorten, strange), 5)} in {folder} is a link or no plain file: move it away")
    return section


def _log(folder: Path) -> list[Section]:
    """The last lines of run.log, if there is one."""
    section = Section(f"last lines of {LOG}")
    try:
        with open_regular(folder / LOG) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_BYTES))
            content = file.read(LOG_BYTES)
    except StorageError as error:
        section.wrong += [str(error)] * os.path.lexists(folder / LOG)
        return [section] * os.path.lexists(folder / LOG)
    for line in content.decode("utf-8", errors="replace").splitlines()[-LOG_LINES:]:
        section.add("", shorten(line, 300))
    return [section]


def _ranges(numbers: Iterable[int]) -> str:
    """`1-3, 7` for 1, 2, 3 and 7; `none` for nothing."""
    groups = itertools.groupby(enumerate(sorted(set(numbers))), lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in group] for _, group in groups]
    return in_words((run[0], run[-1]) for run in runs)
