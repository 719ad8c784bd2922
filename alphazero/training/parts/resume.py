"""Saving the generations of a run, and going on with it: all is read and verified before anything is changed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from alphazero.errors import CheckpointError, RunFolderError, count_of, shorten
from alphazero.fingerprint import name_rules, rules_changed
from alphazero.invocation import option
from alphazero.nets.devices import INFERENCE_VARIABLE, INFERENCES, wanted_inference
from alphazero.nets.neural_net import check_saved
from alphazero.players.contestants import check_announced, text_of
from alphazero.storage.arrays import read_npz
from alphazero.storage.checkpoint import read_card, read_net_card
from alphazero.storage.files import sha256_of
from alphazero.storage.manifest import Manifest
from alphazero.storage.run_folder import RunFolder
from alphazero.storage.schema import Count, Counts, Seconds, Text, Texts, check
from alphazero.training.parts.journal import Generation
from alphazero.training.parts.lineup import Lineup
from alphazero.training.parts.pace import Pace
from alphazero.training.parts.store import Store
from alphazero.training.plan import RunPlan
from alphazero.training.replay_buffer import ReplayBuffer, Samples, read_samples
from alphazero.training.selfplay.past import saved_arrays
from alphazero.training.selfplay.shown_games import records_of_games, write_shown

logger = logging.getLogger(__name__)

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
    samples: Counts
    """The number of samples of each of them."""
    devices: Annotated[Texts, Meta(min_length=1, description="a list of devices")]
    inference: Text
    slots: Annotated[int, Meta(ge=0, le=1 << 24, description=f"a whole number from 0 to {1 << 24:,}")]
    deterministic: bool
    rules: Text
    """The answer of `name_rules`."""
    arrived: Counts = ()
    """The arrivals from a cluster that the generation has taken."""
    value_targets: Text = ""
    """The function that takes the place of the game's own value targets, if there is one."""


def read_state(manifest: Manifest, folder: Path) -> SavedState:
    """The state that a run goes on from; raises CheckpointError if it makes no sense or not all files are named.

    Generations of which the replay file is lost are no longer in the window.
    """
    where = f"the manifest of generation {manifest.generation} in {folder}"
    state = check(SavedState, manifest.state, where, CheckpointError, "; if a newer version wrote it, update alphazero")
    if len(state.samples) != len(state.replay):
        raise CheckpointError(
            f"{where} counts the samples of {len(state.samples)} generations, not {len(state.replay)}"
        )
    whole = [i for i, number in enumerate(state.replay) if f"replay_{number:04d}.npz" not in manifest.lost]
    state.samples = tuple(state.samples[i] for i in whole)
    state.replay = tuple(state.replay[i] for i in whole)
    nets = f"generation_{state.best:04d}", f"learner_{manifest.generation:04d}"
    needed = [f"{net}.{ending}" for net in nets for ending in ("safetensors", "json")]
    needed += [f"games_{manifest.generation:04d}.npz", *(f"replay_{number:04d}.npz" for number in state.replay)]
    if missing := [name for name in needed if name not in manifest.files]:
        raise CheckpointError(f"{where} does not name {missing[0]}, which the run goes on from")
    return state


def check_place(plan: RunPlan, path: Path, state: SavedState) -> None:
    """Raises RunFolderError if the run in `path` was begun with another seed, or on another number of devices."""
    inference, wanted = state.inference, wanted_inference()
    other_library = inference in INFERENCES and wanted not in ("auto", inference)  # another kind of net has its own
    begun = state.threads, state.seed, list(state.devices)
    if other_library or begun != (plan.threads, plan.seed, plan.device_kinds):
        raise RunFolderError(
            f"{path} was begun with {option('threads', state.threads)} {option('seed', state.seed)} on "
            f"{len(state.devices)} x {state.devices[0]}, its networks run by {inference}, and this is "
            f"{option('threads', plan.threads)} {option('seed', plan.seed)} on {len(plan.devices)} x "
            f"{plan.device_kinds[0]}, {wanted}: go on with the same; --inference or the environment variable "
            f"{INFERENCE_VARIABLE} chooses the library"
        )


def _check_parts(plan: RunPlan, path: Path, state: SavedState) -> None:
    """Raises RunFolderError if the run was begun with functions for nets or targets, and goes on without them."""
    maker = read_net_card(path / f"generation_{state.best:04d}.safetensors").get("made_by")
    for part, argument, name in (("make_net", "net", maker), ("value_targets", "value_targets", state.value_targets)):
        if name and part not in plan.loaded.replaced:
            name = shorten(name)
            raise RunFolderError(
                f"{path} was begun with {argument} of your own, the function {name}: go on in Python by "
                f"az.train(..., {argument}={name}, resume=True)"
            )


def _warn(plan: RunPlan, path: Path, manifest: Manifest, state: SavedState) -> None:
    """Tells what makes the run another one from here on: lost samples, determinism that changes, other rules."""
    if any(name.startswith("replay_") for name in manifest.lost):
        missing = sum(manifest.state["samples"]) - sum(state.samples)
        logger.warning(
            "the run goes on without %s of its replay window, and will not equal an undamaged run",
            count_of(missing, "position"),
        )
    flag = option("deterministic", True)
    if state.deterministic and not plan.deterministic:
        logger.warning(
            "%s goes on without %s, so it will not equal an uninterrupted run: stop it and add %s if it should",
            path, flag, flag,
        )  # fmt: skip
    elif plan.deterministic and not state.deterministic:
        logger.warning("%s was begun without %s: %s holds only from here on", path, flag, flag)
    if rules_changed(state.rules, name_rules(plan.loaded.game)):
        logger.warning(
            "the rules of %s have changed since generation %d of %s: its samples and its games in progress are of the "
            "old ones. If the game plays differently now, stop this run and begin a new one by %s",
            plan.loaded.game.name, manifest.generation, path, option("initial_net", text_of(path)),
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
    state = read_state(manifest, folder.path)
    check_place(plan, folder.path, state)
    _check_parts(plan, folder.path, state)
    learner = folder.path / f"learner_{manifest.generation:04d}.safetensors"
    check_announced(learner, plan.config.net_settings, plan.loaded)
    _warn(plan, folder.path, manifest, state)  # only now, since nothing changes for a run that is refused
    return Saved(manifest, state)


class Saving:
    """The steps of a generation that write: its samples, its net, and all that the next one starts from."""

    def __init__(self, lineup: Lineup, pace: Pace, window: ReplayBuffer, store: Store):
        self._lineup, self._pace, self._window, self._store = lineup, pace, window, store

    def begin(self) -> None:
        """Writes generation 0."""
        self._lineup.begin()
        self._commit({})

    def restore(self, found: Saved) -> None:
        """Goes on from that generation; raises InputError where that cannot be."""
        manifest, saved, lineup = found.manifest, found.state, self._lineup
        store, game, workers = self._store, lineup.plan.loaded.game, lineup.workers
        self._pace.generation, self._pace.seconds = manifest.generation, saved.seconds
        lineup.best_generation = saved.best
        lineup.learner.trainer.load(store.learner_file(manifest.generation))
        lineup.best.load(lineup.best_checkpoint)
        past = lineup.arrivals.restore(saved.arrived)
        if workers.keeps_games and lineup.arrivals.num_games:
            flag = option("cluster")
            logger.info("without %s these games are not used; they stay for a resume with %s", flag, flag)
        # what the manifest says about itself is believed as far as the settings allow it
        most_slots = max(OTHER_SLOTS * workers.num_slots, min(saved.slots, lineup.most_games))
        expected = {f"{name}_#": array for name, array in saved_arrays(game).items()}
        games = read_npz(store.folder.path / f"games_{manifest.generation:04d}.npz", expected, {"slots": most_slots})
        lineup.go_on_with(games, past)
        most = (lineup.most_games + len(workers.all) * workers.num_slots) * game.max_plies
        for number, count in zip(saved.replay, saved.samples, strict=True):
            self._window.add(number, read_samples(store.replay_file(number), game, min(count, most)))
        store.find(manifest, saved.replay)
        store.folder.truncate_metrics(manifest.generation)  # now nothing is refused any more
        logger.info("going on after generation %d of %d", manifest.generation, lineup.plan.config.generations)

    def keep(self, generation: Generation, samples: Samples) -> None:
        """Adds the samples to the window, and keeps a few of their games for people."""
        workers, plan, folder = self._lineup.workers, self._lineup.plan, self._store.folder
        self._store.add_samples(generation.number, samples, self._window, workers.arrays())
        game, player = plan.loaded.game, f"generation {self._lineup.best_generation}"
        name, finished = str(folder.config.get("game", game.name)), workers.all[0].finished_games()
        write_shown(folder.path, generation.number, records_of_games(game, name, finished, plan.seed, player))

    def save(self, generation: Generation) -> None:
        """Writes the candidate."""
        generation.enter("saving")
        self._pace.generation = generation.number
        self._store.save_net(generation.number, self._lineup.net, self._lineup.plan.config.net, generation.figures)

    def commit(self, generation: Generation) -> None:
        """Writes all that the next generation starts from; the manifest comes last and makes it count."""
        self._pace.seconds += generation.seconds
        generation.add_times(self._pace.seconds)
        self._commit(generation.figures)

    def _commit(self, figures: Mapping[str, Any]) -> None:
        lineup, pace, store, plan = self._lineup, self._pace, self._store, self._lineup.plan
        store.folder.check()
        trainer, learner, games = (
            lineup.learner.trainer,
            store.learner_file(pace.generation),
            lineup.games_in_progress(),
        )
        trainer.save(learner)
        check_saved(trainer, learner, {})
        name, window = f"games_{pace.generation:04d}.npz", list(self._window.generations)
        files = {name: store.write_npz(name, games), **store.of_window}
        for checkpoint in {store.checkpoint(pace.generation), lineup.best_checkpoint, learner}:
            card = checkpoint.with_suffix(".json")
            files |= {checkpoint.name: read_card(card)["weights"]["sha256"], card.name: sha256_of(card)}
        if figures:
            store.folder.append_metrics(figures)
        state = {
            "best": lineup.best_generation, "seed": plan.seed, "threads": plan.threads, "devices": plan.device_kinds,
            "deterministic": plan.deterministic, "rules": store.rules, "replay": [number for number, _ in window],
            "samples": [len(samples) for _, samples in window], "seconds": pace.seconds,
            "inference": lineup.inference, **lineup.workers.state(),
        }  # fmt: skip
        if targets := plan.names_of_parts.get("value_targets"):
            state["value_targets"] = targets
        store.folder.commit(pace.generation, files, state, plan.config.keep)
        lineup.workers.committed()
