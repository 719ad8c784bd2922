"""Examines a run folder: its files, what of it can be resumed, its settings, who trains there. Changes nothing."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alphazero.catalogue import registry
from alphazero.doctor.findings import Section, show_bytes
from alphazero.errors import InputError, StorageError, count_of, printable, shorten
from alphazero.invocation import command_line
from alphazero.storage.checkpoint import load_checkpoint
from alphazero.storage.files import open_regular
from alphazero.storage.folder_lock import holder_of
from alphazero.storage.manifest import (
    NEVER_COMMITTED,
    check_run_folder,
    gaps,
    generations_of,
    read_config,
    verify_manifest,
)
from alphazero.storage.metrics_file import split_metrics
from alphazero.storage.run_folder import LOG
from alphazero.training.parts.arrivals import arrivals_in, most_games, read_arrival
from alphazero.training.parts.resume import SavedState, read_state
from alphazero.training.report import lost_matches, read_evaluation
from alphazero.training.run import example_config, read_saved

LOG_LINES, LOG_BYTES = 5, 64 << 10
Whole = dict[int, SavedState]
"""The generations whose manifests verify with all their files, and the states of the run after them."""


def examine_run(folder: Path) -> list[Section]:
    """All sections about a run folder; raises RunFolderError if it holds no run."""
    check_run_folder(folder)
    holder, settings, generations = holder_of(folder), Section("settings"), Section("generations")
    whole = _manifests(generations, folder)
    config = _settings(settings, generations, folder, whole)
    _metrics(generations, folder, whole, config)
    _nets(generations, folder)
    return [_state(folder, holder, whole, config), settings, generations, _files(folder), *_log(folder)]


def _state(folder: Path, holder: str | None, whole: Whole, config: Mapping[str, Any]) -> Section:
    """Where the run is, who trains there, and how to go on."""
    section, answer, flags = Section(f"run {printable(str(folder))}"), "yes, from the beginning", list[str]()
    section.add("training now", holder or "nobody")
    if whole:
        newest, state = max(whole.items())
        answer, flags = f"from generation {newest}", ["--deterministic"] * bool(state.deterministic)
        section.add("best net", f"generation {state.best}")
        section.add("trained for", f"{state.seconds / 60:.1f} minutes")
        section.add("goes on with", f"threads {state.threads}, seed {state.seed}, inference {shorten(state.inference)}")
    elif generations_of(folder, "manifest") or not (folder / NEVER_COMMITTED).exists():
        answer = "no: no generation is whole"
        section.wrong.append(
            "no generation of the run is whole, so it cannot go on: bring back its files, or begin a new run from its "
            "newest net by --initial-net"
        )
    if not config:
        answer = "no: its settings cannot be used"
    elif holder is None and not section.wrong:
        game = str(config.get("game"))
        section.add("command", command_line("train", "--game", game, "--run", folder, "--resume", *flags))
    section.add("can be resumed", answer)
    return section


def _settings(section: Section, generations: Section, folder: Path, whole: Whole) -> dict[str, Any]:
    """Reads the settings and, by them, the games of a cluster that wait for their generation."""
    config = dict[str, Any]()
    try:
        config = read_config(folder)
        section.add("game", shorten(game := str(config.get("game"))))
        try:
            loaded = registry.load_named(game, str(folder))  # never a file: that would run its code
        except InputError:
            section.add("values", "not checked: the game is not one that comes with alphazero")
            return config
        saved = read_saved(folder, game, example_config(loaded)).config
        section.add("values", "whole, and all known to this version")
    except InputError as error:
        section.wrong.append(str(error))
        return config
    taken, most = whole[max(whole)].arrived if whole else (), saved.self_play.games_per_generation
    most = most_games(loaded.game, most)
    for number, path in arrivals_in(folder).items():
        try:
            if number not in taken:
                read_arrival(path, loaded.game, most)
        except StorageError as error:
            if path.exists():  # else a generation has taken it
                generations.wrong.append(f"the games in {path.name} are lost: {error}; the run goes on without them")
    return config


def _manifests(section: Section, folder: Path) -> Whole:
    """Verifies each generation that can be resumed."""
    whole, lost = Whole(), dict[str, str]()
    for generation in generations_of(folder, "manifest"):
        advice = ""
        try:
            manifest = verify_manifest(folder, generation)
            advice = f"; move manifest_{generation:04d}.json away"  # its files verify, so a resume would not skip it
            whole[generation] = read_state(manifest, folder)
        except StorageError as error:
            if generation in generations_of(folder, "manifest"):  # else the run has gone on and removed it
                back = f"; the run can go back to generation {max(whole)}" if whole else ""
                section.wrong.append(f"generation {generation} cannot be resumed: {error}{advice}{back}")
            continue
        lost |= manifest.lost
        section.add(f"manifest {generation}", f"whole: {count_of(len(manifest.files), 'file')}")
    section.wrong += [f"{sentence}; the next --resume goes on without it" for sentence in lost.values()]
    return whole


def _metrics(section: Section, folder: Path, whole: Whole, config: Mapping[str, Any]) -> None:
    """Reads the figures, and looks for gaps among them."""
    aside, lines = "the next --resume moves {} aside, and the run is not harmed", list[dict[str, Any]]()
    try:
        lines, damaged = split_metrics(folder)
        if damaged:
            section.advice.append(f"metrics.jsonl has damaged lines ({len(damaged)}): {aside.format('them')}")
        if read_evaluation(folder) is None and lines and config:
            section.advice += filter(None, [lost_matches(folder, config.get("settings", {}), lines[-1])])
    except StorageError as error:
        section.advice.append(f"{error}; {aside.format('it')}")
    except InputError as error:
        section.wrong.append(str(error))
    numbers = [line["generation"] for line in lines]
    section.add("figures", f"of {count_of(len(numbers), 'generation')}")
    if missing := gaps(numbers, max(whole or numbers, default=0)):
        section.advice.append(f"metrics.jsonl lacks the generations {missing}: its pictures have gaps")


def _nets(section: Section, folder: Path) -> None:
    """Verifies every net, with its card."""
    newest, damaged = max(generations_of(folder, "manifest"), default=-1), 0
    numbers = [n for n in generations_of(folder, "generation") if n <= newest]  # a later one is not finished
    for number in numbers:
        path = folder / f"generation_{number:04d}.safetensors"
        try:
            load_checkpoint(path)
        except StorageError as error:
            if path.exists():  # else the run has removed it
                damaged += 1
                section.wrong.append(f"the net of generation {number} cannot be used: {error}")
    section.add("nets", f"{len(numbers) - damaged} of {len(numbers)} whole")
    for card in sorted(folder.glob("generation_*.json")):
        if not (weights := card.with_suffix(".safetensors")).exists() and card.exists():
            section.wrong.append(
                f"a net is gone, and its card is there: bring back {shorten(weights.name)}, or remove the card"
            )


def _files(folder: Path) -> Section:
    """Bytes by the beginning of the files' names."""
    section, sizes, counts = Section("files"), Counter[str](), Counter[str]()
    for path in sorted(folder.rglob("*")):
        kind = re.split(r"_\d|/", path.relative_to(folder).as_posix())[0]
        with contextlib.suppress(OSError):  # the run has removed it
            if path.is_symlink() or not path.is_dir():
                sizes[kind] += path.lstat().st_size
                counts[kind] += 1
    for kind, size in sizes.most_common(20):
        section.add(shorten(kind, 30), f"{show_bytes(size)} in {count_of(counts[kind], 'file')}")
    section.add("all", show_bytes(sizes.total()))
    return section


def _log(folder: Path) -> list[Section]:
    """The last lines of run.log, if there is one."""
    if not os.path.lexists(folder / LOG):
        return []
    section = Section(f"last lines of {LOG}")
    try:
        with open_regular(folder / LOG) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_BYTES))
            lines = file.read(LOG_BYTES).decode("utf-8", errors="replace").splitlines()
            section.rows = [("", shorten(line, 300)) for line in lines[-LOG_LINES:]]
    except StorageError as error:
        section.wrong.append(str(error))
    return [section]
