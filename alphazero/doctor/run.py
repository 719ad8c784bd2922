"""Examines a run folder: its files, what of it can be resumed, its settings, who trains there. Changes nothing."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from alphazero.catalogue import registry
from alphazero.doctor.findings import Section, show_bytes
from alphazero.errors import InputError, StorageError, count_of, listed, printable, shorten
from alphazero.invocation import command_line
from alphazero.nets.devices import choose_devices
from alphazero.storage.checkpoint import load_checkpoint
from alphazero.storage.files import open_regular
from alphazero.storage.folder_lock import holder_of
from alphazero.storage.generations import gaps, generations_of, in_words
from alphazero.storage.manifest import (
    CONFIG,
    CONFIG_SEAL,
    NEVER_COMMITTED,
    Manifest,
    check_run_folder,
    read_config,
    read_settings,
    verify_manifest,
)
from alphazero.storage.metrics_file import split_metrics
from alphazero.training.parts.chunk import unpack
from alphazero.training.parts.inbox import arrivals_in, bytes_of_arrival, most_games
from alphazero.training.parts.resume import OLDER_INFERENCE, read_state
from alphazero.training.report import lost_matches, read_evaluation
from alphazero.training.run import example_config, read_saved

KINDS = {
    "nets": r"generation_\d+\.(safetensors|json)",
    "replay": r"replay_\d+\..*",
    "learner": r"learner_\d+\..*",
    "games in progress": r"games_\d+\..*",
    "games of a cluster": r"(played|arrived)_\d+\..*",
    "manifests": r"manifest_\d+\.json|never_committed",
    "settings": r"config\.json",
    "games to look at": r"shown_\d+\.json",
    "ladder": r"ladder/.*",
    "metrics and logs": r"metrics.*|events/.*|tensorboard/.*|run\.log.*|evaluation\.json|report\.html",
    "Weights & Biases": r"wandb\.json|wandb/.*",
    "lock": r"lock|lock_holder",
    "left behind": r"\..+\.\d+\.tmp",
}
"""Files of a run by the patterns of their names; whatever fits none is `other`."""
NO_SETTINGS = "no: its settings cannot be used"
LOG, LOG_LINES, LOG_BYTES = "run.log", 5, 64 << 10


def examine_run(folder: Path) -> list[Section]:
    """All sections about a run folder; raises RunFolderError if it holds no run."""
    check_run_folder(folder)
    holder = holder_of(folder)
    manifests, damage = _verify_manifests(folder)
    sections = [
        _state(folder, holder, manifests),
        _settings(folder),
        _generations(folder, manifests, damage),
        _nets(folder),
        *_arrivals(folder, manifests),
        _sizes(folder, holder),
    ]
    return [*sections, *_log(folder)]


def _verify_manifests(folder: Path) -> tuple[list[Manifest], dict[int, str]]:
    """The manifests whose files verify and whose states make sense, and the damage of the others by generation."""
    sound, damage = list[Manifest](), dict[int, str]()
    for generation in generations_of(folder, "manifest"):
        advice = ""
        try:
            manifest = verify_manifest(folder, generation)
            advice = f"; move manifest_{generation:04d}.json away"  # its files verify, so a resume would not skip it
            read_state(manifest, folder)
            sound.append(manifest)
        except StorageError as error:
            if generation in generations_of(folder, "manifest"):  # else the run has gone on and removed it
                damage[generation] = f"{error}{advice}"
    return sound, damage


def _state(folder: Path, holder: str | None, manifests: Sequence[Manifest]) -> Section:
    """Where the run is, who trains there, and how to go on."""
    section = Section(f"run {printable(str(folder))}")
    section.add("training now", holder or "nobody")
    if not manifests:
        if (folder / NEVER_COMMITTED).exists() and not generations_of(folder, "manifest"):
            yes = "yes, from the beginning: no generation is saved yet"
            section.add("can be resumed", yes if _has_settings(folder) else NO_SETTINGS)
            _add_command(section, folder, holder)
            return section
        section.add("can be resumed", "no: no generation is whole")
        section.wrong.append(
            "no generation of the run is whole, so it cannot go on: bring back its files, or begin a new run from its "
            "newest net by --initial-net"
        )
        return section
    newest = manifests[-1]
    section.add("can be resumed", f"from generation {newest.generation}" if _has_settings(folder) else NO_SETTINGS)
    section.add("best net", f"generation {shorten(newest.state.get('best'))}")
    seconds = newest.state.get("seconds")
    if isinstance(seconds, int | float):
        section.add("trained for", f"{seconds / 60:.1f} minutes")
    state = {"inference": OLDER_INFERENCE} | newest.state
    kept = [f"{name} {shorten(state.get(name))}" for name in ("threads", "seed", "inference")]
    section.add("goes on with", ", ".join(kept))
    flags = ["--deterministic"] * bool(newest.state.get("deterministic")) + _device_flags(newest, folder)
    _add_command(section, folder, holder, *flags)
    return section


def _has_settings(folder: Path) -> bool:
    with contextlib.suppress(StorageError):
        return bool(read_config(folder))
    return False


def _device_flags(newest: Manifest, folder: Path) -> list[str]:
    """The flag for the devices that the run was begun on, if a run gets others here by itself."""
    devices = list(read_state(newest, folder).devices)  # older runs do not tell
    if not devices or devices == [name.partition(":")[0] for name in choose_devices("auto")]:
        return []
    names = [f"cuda:{i}" for i in range(len(devices))] if devices[0] == "cuda" and len(devices) > 1 else devices
    return ["--device", ",".join(names)]


def _add_command(section: Section, folder: Path, holder: str | None, *flags: str) -> None:
    """The command that goes on with the run, unless somebody trains there."""
    if holder is None:
        with contextlib.suppress(InputError):
            name = str(read_config(folder).get("game"))
            is_known = _can_be_named(name, folder)
            game = name if is_known else "PATH"
            section.add("command", command_line("train", "--game", game, "--run", folder, "--resume", *flags))
            if not is_known:
                section.add("PATH", f"the file of your game, which the run calls {shorten(name)}")


def _can_be_named(game: str, folder: Path) -> bool:
    """The game is found by that name, from the current folder: a run begun in Python or elsewhere may call it else."""
    if os.path.isfile(game.partition(":")[0]):
        return True
    try:
        registry.load_named(game, str(folder))  # never a file: that would run its code
    except InputError:
        return False
    return True


def _settings(folder: Path) -> Section:
    section = Section("settings")
    try:
        config = read_config(folder)
    except StorageError as error:
        section.add("seal", "broken")
        section.wrong.append(str(error))
        return section
    game = config.get("game")
    section.add("game", shorten(game))
    section.add("seal", "whole" if _is_sealed(folder) else "none, as in runs of older versions")
    try:
        loaded = registry.load_named(str(game), str(folder))  # never a file: that would run its code
    except InputError:
        section.add("values", "not checked: the game is not one that comes with alphazero")
        return section
    try:
        saved = read_saved(folder, str(game), example_config(loaded)).config
    except InputError as error:
        section.wrong.append(str(error))
        return section
    section.add("values", "all known to this version")
    limit = saved.minutes
    section.add(
        "ends after", f"generation {saved.generations}" + f" or {limit:g} minute{'s' * (limit != 1)}" * (limit > 0)
    )
    return section


def _is_sealed(folder: Path) -> bool:
    with open_regular(folder / CONFIG) as file:
        return CONFIG_SEAL.encode() in file.readall()


def _generations(folder: Path, manifests: Sequence[Manifest], damage: Mapping[int, str]) -> Section:
    """The manifests, and gaps in what each generation leaves."""
    section = Section("generations")
    for manifest in manifests:
        size = sum(os.path.getsize(folder / name) for name in manifest.files if (folder / name).exists())
        section.add(
            f"manifest {manifest.generation}", f"whole: {count_of(len(manifest.files), 'file')}, {show_bytes(size)}"
        )
    for generation, sentence in damage.items():
        section.add(f"manifest {generation}", "damaged")
        older = [manifest.generation for manifest in manifests if manifest.generation < generation]
        back = f"; the run can go back to generation {older[-1]}" if older else ""
        section.wrong.append(f"generation {generation} cannot be resumed: {sentence}{back}")
    lost = {name: sentence for manifest in manifests for name, sentence in manifest.lost.items()}
    section.wrong += [f"{sentence}; the next --resume goes on without it" for sentence in lost.values()]
    lines = _lines_of_metrics(folder, section)
    numbers = [line["generation"] for line in lines]
    section.add("lines of metrics", _ranges(numbers))
    newest = manifests[-1].generation if manifests else max(numbers, default=0)
    _last_matches(folder, lines, section)
    if missing := gaps(numbers, newest):
        section.advice.append(
            f"metrics.jsonl lacks the generations {in_words(missing)}: its pictures have gaps, and the run is not "
            "harmed"
        )
    return section


def _last_matches(folder: Path, lines: Sequence[Mapping[str, Any]], section: Section) -> None:
    """Adds what is wrong with `evaluation.json` to the section."""
    try:
        if read_evaluation(folder) is None and lines and _has_settings(folder):
            lost = lost_matches(folder, read_settings(folder)["settings"], lines[-1])
            section.advice += [lost] * bool(lost)
    except InputError as error:
        section.wrong.append(str(error))


def _lines_of_metrics(folder: Path, section: Section) -> list[dict[str, Any]]:
    """The lines that can be used; the section gets advice about the others."""
    try:
        lines, damaged = split_metrics(folder)
    except StorageError as error:
        section.advice.append(f"{error}; the next --resume moves it aside, and the run is not harmed")
        return []
    if damaged:
        section.advice.append(
            f"metrics.jsonl has damaged lines ({len(damaged)}): the next --resume moves them aside, and the run is not "
            "harmed"
        )
    return lines


def _nets(folder: Path) -> Section:
    """Verifies every net, with its card."""
    section, newest = Section("nets"), max(generations_of(folder, "manifest"), default=-1)
    found = generations_of(folder, "generation")
    numbers, unfinished = [n for n in found if n <= newest], [n for n in found if n > newest]
    section.add("generations", _ranges(numbers))
    if unfinished:
        section.add("not finished", f"{_ranges(unfinished)}, which the next --resume plays anew")
    damaged = []
    for number in numbers:
        path = folder / f"generation_{number:04d}.safetensors"
        try:
            load_checkpoint(path)
        except StorageError as error:
            if path.exists():  # else the run has removed it
                damaged.append(number)
                section.wrong.append(f"the net of generation {number} cannot be used: {error}")
    section.add("whole", f"{len(numbers) - len(damaged)} of {len(numbers)}")
    for card in sorted(folder.glob("generation_*.json")):
        weights = card.with_suffix(".safetensors")
        if (digits := card.stem.removeprefix("generation_")).isdecimal() and not weights.exists() and card.exists():
            section.wrong.append(
                f"the net of generation {int(digits)} is gone, and its card is there: bring back {weights.name}, or "
                "remove the card"
            )
    return section


def _arrivals(folder: Path, manifests: Sequence[Manifest]) -> list[Section]:
    """Reads the games of a cluster that wait for their generation, if there are any."""
    taken = manifests[-1].state.get("arrived", ()) if manifests else ()
    waiting = [path for number, path in arrivals_in(folder).items() if number not in taken]
    if not waiting:
        return []
    section, games = Section("games that wait"), 0
    try:
        name = str(read_config(folder)["game"])
        loaded = registry.load_named(name, str(folder))  # never a file: that would run its code
        saved = read_saved(folder, name, example_config(loaded)).config
    except (InputError, KeyError):
        section.add("games", "not checked: the game is not one that comes with alphazero, or its settings are damaged")
        return [section]
    most = most_games(loaded.game, saved.self_play.games_per_generation)
    for path in waiting:
        try:
            games += unpack(bytes_of_arrival(path, loaded.game, most), str(path), loaded.game, most).num_games
        except StorageError as error:
            if path.exists():  # else a generation has taken it
                section.wrong.append(f"the games in {path.name} are lost: {error}; the run goes on without them")
    section.add("games", f"{games:,} in {count_of(len(waiting), 'file')}")
    return [section]


def _sizes(folder: Path, holder: str | None) -> Section:
    """Bytes by kind of file."""
    sizes, counts = Counter[str](), Counter[str]()
    strange = list[str]()
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            continue
        name = path.relative_to(folder).as_posix()
        kind = next((kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, name)), "other")
        with contextlib.suppress(OSError):
            sizes[kind] += path.lstat().st_size
            counts[kind] += 1
        if path.is_symlink() or not (path.is_file() or not path.exists()):
            strange.append(name)
    section = Section("files")
    for kind in (*KINDS, "other"):
        if counts[kind]:
            section.add(kind, f"{show_bytes(sizes[kind])} in {count_of(counts[kind], 'file')}")
    section.add("all", show_bytes(sizes.total()))
    if counts["left behind"] and holder is None:
        section.advice.append("a process died while it wrote a file; the next --resume removes what it left behind")
    if strange:
        section.wrong.append(f"{listed(map(shorten, strange), 5)} in {folder} is a link or no plain file: move it away")
    return section


def _log(folder: Path) -> list[Section]:
    """The last lines of run.log, if there is one."""
    if not os.path.lexists(folder / LOG):
        return []
    section = Section(f"last lines of {LOG}")
    try:
        with open_regular(folder / LOG) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_BYTES))
            content = file.read(LOG_BYTES)
    except StorageError as error:
        section.wrong.append(str(error))
        return [section]
    for line in content.decode("utf-8", errors="replace").splitlines()[-LOG_LINES:]:
        section.add("", shorten(line, 300))
    return [section]


def _ranges(numbers: Iterable[int]) -> str:
    """`1-3, 7` for 1, 2, 3 and 7; `none` for nothing."""
    found = list[tuple[int, int]]()
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return in_words(found)
