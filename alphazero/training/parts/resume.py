"""Going on with a run: what its folder holds is read and verified before anything is changed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from alphazero.errors import CheckpointError, RunFolderError, count_of, shorten
from alphazero.fingerprint import name_rules, rules_changed
from alphazero.invocation import option
from alphazero.nets.devices import INFERENCE_VARIABLE, INFERENCES, wanted_inference
from alphazero.players.contestants import check_announced, text_of
from alphazero.storage.arrays import read_npz
from alphazero.storage.checkpoint import read_net_card
from alphazero.storage.manifest import Manifest
from alphazero.storage.run_folder import RunFolder
from alphazero.storage.schema import Count, Counts, Seconds, Text, Texts, check
from alphazero.training.parts.lineup import Lineup
from alphazero.training.parts.pace import Pace
from alphazero.training.parts.store import Store
from alphazero.training.plan import RunPlan
from alphazero.training.replay_buffer import ReplayBuffer, read_samples
from alphazero.training.selfplay.past import saved_arrays

logger = logging.getLogger(__name__)

OLDER_INFERENCE = "torch"
"""The library of runs that do not name one."""
OTHER_SLOTS = 16
"""A file with more games in progress than these times the run's own is not read, to say how many it has."""


class SavedState(Struct, forbid_unknown_fields=True):
    """The state of a run in a manifest."""

    best: Count
    seconds: Seconds
    seed: Count
    threads: Annotated[int, Meta(ge=1, le=1024, description="a whole number from 1 to 1024")]
    replay: Counts
    """The generations in the window."""
    devices: Texts = ()
    """Older runs do not tell, nor the next three."""
    inference: Text = OLDER_INFERENCE
    slots: Annotated[int, Meta(ge=0, le=1 << 24, description=f"a whole number from 0 to {1 << 24:,}")] = 0
    samples: Counts | None = None
    """The number of samples of each generation in the window."""
    arrived: Counts = ()
    """The arrivals from a cluster that the generation has taken."""
    deterministic: bool | None = None
    """Older runs do not tell, nor the next."""
    rules: Text = ""
    """The answer of `name_rules`."""
    value_targets: Text = ""
    """The function that takes the place of the game's own value targets, if there is one."""


def read_state(manifest: Manifest, folder: Path) -> SavedState:
    """The state that a run goes on from; raises CheckpointError if it makes no sense or not all files are named.

    Generations of which the replay file is lost are no longer in the window.
    """
    where = f"the manifest of generation {manifest.generation} in {folder}"
    state = check(SavedState, manifest.state, where, CheckpointError, "; if a newer version wrote it, update alphazero")
    if state.samples is not None and len(state.samples) != len(state.replay):
        raise CheckpointError(
            f"{where} counts the samples of {len(state.samples)} generations, not {len(state.replay)}"
        )
    whole = [i for i, number in enumerate(state.replay) if f"replay_{number:04d}.npz" not in manifest.lost]
    if state.samples is not None:
        state.samples = tuple(state.samples[i] for i in whole)
    state.replay = tuple(state.replay[i] for i in whole)
    number = f"{manifest.generation:04d}"
    nets = f"generation_{state.best:04d}", f"learner_{number}"
    needed = [f"{net}.{ending}" for net in nets for ending in ("safetensors", "json")]
    needed += [f"games_{number}.npz", *(f"replay_{number:04d}.npz" for number in state.replay)]
    if missing := [name for name in needed if name not in manifest.files]:
        raise CheckpointError(f"{where} does not name {missing[0]}, which the run goes on from")
    return state


def check_place(plan: RunPlan, path: Path, state: SavedState) -> None:
    """Raises RunFolderError if the run in `path` was begun with another seed, or on another number of devices."""
    devices = list(state.devices) or plan.device_kinds  # older runs do not tell
    inference, wanted = state.inference, wanted_inference()
    if inference in INFERENCES and wanted not in ("auto", inference):  # a network of another kind has its own
        raise RunFolderError(
            f"{path} was begun with {inference}, which runs its networks: go on with the same, or with auto, by "
            f"--inference or the environment variable {INFERENCE_VARIABLE}"
        )
    if state.threads != plan.threads or state.seed != plan.seed:
        raise RunFolderError(
            f"{path} was begun with {option('threads', state.threads)} {option('seed', state.seed)}: "
            "go on with the same"
        )
    if devices != plan.device_kinds:
        raise RunFolderError(
            f"{path} was begun on {len(devices)} x {devices[0]}, and this is {len(plan.devices)} x "
            f"{plan.device_kinds[0]}: choose as many devices of the same kind by {option('device')}"
        )


def _check_parts(plan: RunPlan, path: Path, state: SavedState) -> None:
    """Raises RunFolderError if the run was begun with functions for nets or targets, and goes on without them."""
    maker = read_net_card(path / f"generation_{state.best:04d}.safetensors").get("made_by")
    if maker and "make_net" not in plan.loaded.replaced:
        name = shorten(maker)
        raise RunFolderError(
            f"{path} was begun with networks of your own, made by {name}: go on in Python by "
            f"az.train(..., net={name}, resume=True)"
        )
    if state.value_targets and "value_targets" not in plan.loaded.replaced:
        name = shorten(state.value_targets)
        raise RunFolderError(
            f"{path} was begun with value targets of your own, by the function {name}: go on in Python by "
            f"az.train(..., value_targets={name}, resume=True)"
        )


def _compare_determinism(plan: RunPlan, path: Path, state: SavedState) -> None:
    """Warns where a run goes on with or without `deterministic` unlike before."""
    flag = option("deterministic", True)
    if state.deterministic and not plan.deterministic:
        logger.warning(
            "%s goes on without %s, so it will not equal an uninterrupted run: stop it and add %s if it should",
            path, flag, flag,
        )  # fmt: skip
    elif plan.deterministic and state.deterministic is False:
        logger.warning("%s was begun without %s: %s holds only from here on", path, flag, flag)


def _compare_rules(plan: RunPlan, path: Path, generation: int, state: SavedState) -> None:
    """Warns where the rules are no longer those that the run was saved with."""
    if rules_changed(state.rules, name_rules(plan.loaded.game)):
        logger.warning(
            "the rules of %s have changed since generation %d of %s: its samples and its games in progress are of the "
            "old ones. If the game plays differently now, stop this run and begin a new one by %s",
            plan.loaded.game.name, generation, path, option("initial_net", text_of(path)),
        )  # fmt: skip


def _say_lost(manifest: Manifest, state: SavedState) -> None:
    """Warns where older replay files are lost, which `newest_valid` has named."""
    if any(name.startswith("replay_") for name in manifest.lost):
        missing = sum(manifest.state.get("samples") or ()) - sum(state.samples or ())
        logger.warning(
            "the run goes on without %s of its replay window, and will not equal an undamaged run",
            count_of(missing, "position") if missing else "some positions",
        )  # fmt: skip


@dataclass(frozen=True)
class Saved:
    """The newest generation of a run that goes on."""

    manifest: Manifest
    state: SavedState


def read_saved(plan: RunPlan, folder: RunFolder) -> Saved | None:
    """The newest generation that a run goes on from; None if there is none. Raises InputError where that cannot be.

    Nothing is changed, nor compiled.
    """
    manifest = folder.newest_valid()
    if manifest is None:
        return None
    saved = read_state(manifest, folder.path)
    check_place(plan, folder.path, saved)
    _check_parts(plan, folder.path, saved)
    learner = folder.path / f"learner_{manifest.generation:04d}.safetensors"
    check_announced(learner, plan.config.net_settings, plan.loaded)
    # only now, since nothing changes for a run that is refused
    _say_lost(manifest, saved)
    _compare_determinism(plan, folder.path, saved)
    _compare_rules(plan, folder.path, manifest.generation, saved)
    return Saved(manifest, saved)


def restore(found: Saved, pace: Pace, lineup: Lineup, window: ReplayBuffer, store: Store) -> None:
    """Goes on from that generation; raises InputError where that cannot be."""
    manifest, saved = found.manifest, found.state
    folder, game = store.folder, lineup.plan.loaded.game
    pace.generation, pace.seconds = manifest.generation, saved.seconds
    lineup.best_generation = saved.best
    lineup.learner.trainer.load(store.learner_file(manifest.generation))
    lineup.best.load(lineup.best_checkpoint)
    expected = {f"{name}_#": array for name, array in saved_arrays(game).items()}
    # what the manifest says about itself is believed as far as the settings allow it
    most_slots = max(OTHER_SLOTS * lineup.workers.num_slots, min(saved.slots, lineup.most_games))
    past = lineup.inbox.restore(saved.arrived)
    if lineup.workers.keeps_games and lineup.inbox.num_games:
        flag = option("cluster")
        logger.info("without %s these games are not used; they stay for a resume with %s", flag, flag)
    games = read_npz(folder.path / f"games_{manifest.generation:04d}.npz", expected, {"slots": most_slots})
    lineup.go_on_with(games, past)
    most = (lineup.most_games + len(lineup.workers.all) * lineup.workers.num_slots) * game.max_plies
    for number, count in zip(saved.replay, saved.samples or [most] * len(saved.replay), strict=True):
        window.add(number, read_samples(store.replay_file(number), game, min(count, most)))
    store.find(manifest, saved.replay)
    folder.truncate_metrics(manifest.generation)  # now nothing is refused any more
    logger.info("going on after generation %d of %d", manifest.generation, lineup.plan.config.generations)
