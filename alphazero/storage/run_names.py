"""Names: of a new run's folder, of the newest run, and of the weights that a text means."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from alphazero.errors import LONGEST_PATH, CheckpointError, RunFolderError, listed, quote, shorten_path
from alphazero.invocation import option
from alphazero.storage.manifest import generations_of, is_run_folder, latest_manifest

_FOLDER_AND_GENERATION = re.compile(r"(.+):(\d{1,9})", re.ASCII)


def choose_folder(game_name: str, resume: bool) -> Path:
    """A name for a new run under runs/, or to resume the newest run there; raises RunFolderError if there is none."""
    game_name = re.sub(r"[^\w.]+", "-", game_name).strip("-") or "game"  # as of openspiel:hex(board_size=5)
    found = [re.fullmatch(re.escape(game_name) + r"-(\d+)", path.name) for path in Path("runs").glob("*")]
    names = [match for match in found if match and (not resume or is_run_folder(Path("runs") / match[0]))]
    newest = max((int(match[1]) for match in names), default=0)
    if resume and not newest:
        raise RunFolderError(
            f"there is no run of {game_name} under runs/ to go on with: name its folder by {option('run')}"
        )
    return Path("runs") / f"{game_name}-{newest + (not resume)}"


@contextlib.contextmanager
def new_folder(game_name: str) -> Iterator[Path]:
    """A new folder for a run under runs/, which no other process gets; if it is empty at the end, it is removed."""
    is_first = not os.path.lexists("runs")
    folder = choose_folder(game_name, resume=False)
    while not make_folder(folder):  # perhaps also there under a name that differs in case alone
        folder = folder.with_name(re.sub(r"\d+$", lambda number: str(int(number[0]) + 1), folder.name))
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()
            if is_first:
                folder.parent.rmdir()


def make_folder(folder: Path) -> bool:
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
    if is_run_folder(text):
        manifest = latest_manifest(path)
        if manifest is None:
            raise CheckpointError(f"{text} has not finished a generation yet: wait for it, or go on with the run")
        return _generation_file(path, manifest.state.get("best"))
    match = _FOLDER_AND_GENERATION.fullmatch(text)
    if match and is_run_folder(match[1]):
        return _generation_file(Path(match[1]), int(match[2]))
    if path.suffix == ".safetensors" and os.path.isfile(text):
        return path
    kind = "neither a .safetensors file nor a run folder" if os.path.exists(text) else "no file or folder here"
    raise CheckpointError(f"{quote(text, LONGEST_PATH)} is {kind}: name a checkpoint, a run folder or folder:12")


def _generation_file(folder: Path, generation: object) -> Path:
    available = generations_of(folder, "generation")
    if not isinstance(generation, int) or generation not in available:
        there = listed(available, 8) or "none"
        raise CheckpointError(f"{folder} has no generation {quote(generation)}; choose one that it has ({there})")
    return folder / f"generation_{generation:04d}.safetensors"
