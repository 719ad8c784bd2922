"""Saving the generations of a run, and going on with it: all is read and verified before anything is changed."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from alphazero.errors import CheckpointError, RunFolderError, shorten
from alphazero.fingerprint import name_rules, rules_changed
from alphazero.invocation import option
from alphazero.nets.devices import INFERENCE_VARIABLE, INFERENCES, wanted_inference
from alphazero.nets.neural_net import NeuralNet, check_saved
from alphazero.players.contestants import check_announced, find_checkpoint, text_of
from alphazero.storage.arrays import read_npz, write_npz
from alphazero.storage.checkpoint import read_card, read_net_card
from alphazero.storage.files import sha256_of
from alphazero.storage.manifest import Manifest
from alphazero.storage.run_folder import RunFolder
from alphazero.storage.schema import Count, Counts, Seconds, Text, Texts, check
from alphazero.training.config import settings_by_name
from alphazero.training.parts.gate import UNCONTESTED
from alphazero.training.parts.journal import Generation
from alphazero.training.parts.lineup import Run
from alphazero.training.plan import RunPlan
from alphazero.training.replay_buffer import Samples, read_samples
from alphazero.training.selfplay.games import saved_arrays
from alphazero.training.selfplay.shown_games import records_of_games, write_shown

logger = logging.getLogger(__name__)

ORIGINS = ("started_from", "learned_from_games_of")
"""Where a card of generation 0 names the net that the run began with: its weights are that net's, or are not."""


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
        logger.warning("the run goes on without these positions, and will not equal an undamaged run")
    if state.deterministic != plan.deterministic:
        begun, goes_on = ("with", "without") if state.deterministic else ("without", "with")
        logger.warning(
            "%s was begun %s %s, and goes on %s it: it will not equal an uninterrupted run",
            path, begun, option("deterministic", True), goes_on,
        )  # fmt: skip
    if rules_changed(state.rules, name_rules(plan.loaded.game)):
        logger.warning(
            "the rules of %s have changed since generation %d of %s: its samples and its games in progress are of the "
            "old ones. If the game plays differently now, stop this run and begin a new one by %s",
            plan.loaded.game.name, manifest.generation, path, option("initial_net", text_of(path)),
        )  # fmt: skip


def read_saved(plan: RunPlan, folder: RunFolder) -> tuple[Manifest, SavedState] | None:
    """The newest generation to go on from, None if there is none; raises InputError, and changes nothing."""
    manifest = folder.newest_valid()
    if manifest is None:
        return None
    state = read_state(manifest, folder.path)
    check_place(plan, folder.path, state)
    _check_parts(plan, folder.path, state)
    learner = folder.path / f"learner_{manifest.generation:04d}.safetensors"
    check_announced(learner, plan.config.net_settings, plan.loaded)
    _warn(plan, folder.path, manifest, state)  # only now, since nothing changes for a run that is refused
    return manifest, state


def begin(run: Run) -> None:
    """Writes generation 0, whose net plays: the untrained one, or the net to start from."""
    lineup, figures, name = run.lineup, dict(UNCONTESTED), run.plan.config.initial_net
    net = lineup.best if lineup.grows else lineup.net
    if name:
        card = net.load(find_checkpoint(name, run.plan.loaded))
        fresh = lineup.grows and not lineup.net.grow_from(lineup.best)
        if lineup.grows:
            begins = "untrained" if fresh else f"with the weights of {name}; its new parts have no effect yet"
            logger.info("the network of the new sizes begins %s", begins)
        lineup.learner.begin()
        figures[ORIGINS[fresh]] = {"net": name, "card_sha256": card["card_sha256"]}
    _save_net(run, 0, net, lineup.sizes, figures)
    lineup.best.load(lineup.best_checkpoint)
    commit(run)


def restore(run: Run, manifest: Manifest, saved: SavedState) -> None:
    """Goes on from that generation; raises InputError where that cannot be."""
    lineup = run.lineup
    game, workers, generation = run.plan.loaded.game, lineup.workers, manifest.generation
    run.pace.generation, run.pace.seconds = generation, saved.seconds
    lineup.learner.trainer.load(run.file("learner", generation, "safetensors"))
    lineup.best.load(lineup.best_checkpoint)
    past = lineup.arrivals.restore(saved.arrived)
    if workers.keeps_games and lineup.arrivals.num_games:
        flag = option("cluster")
        logger.info("without %s these games are not used; they stay for a resume with %s", flag, flag)
    # what the manifest says about itself is believed as far as the settings allow it
    most_slots = max(workers.num_slots, min(saved.slots, lineup.most_games))
    expected = {f"{name}_#": array for name, array in saved_arrays(game).items()}
    lineup.go_on_with(read_npz(run.file("games", generation), expected, {"slots": most_slots}), past)
    most = (lineup.most_games + len(workers.all) * workers.num_slots) * game.max_plies
    for number, count in zip(saved.replay, saved.samples, strict=True):
        run.window.add(number, read_samples(run.file("replay", number), game, min(count, most)))
    kept = {run.file("replay", number).name for number in saved.replay}
    run.window_files = {name: sha for name, sha in manifest.files.items() if name in kept or name.startswith("played_")}
    run.folder.truncate_metrics(generation)  # now nothing is refused any more
    logger.info("going on after generation %d of %d", generation, run.plan.config.generations)


def keep(run: Run, generation: Generation, samples: Samples) -> None:
    """Adds the samples to the window, in memory and on disk, and keeps a few of their games for people."""
    workers, game, number = run.lineup.workers, run.plan.loaded.game, generation.number
    run.folder.check()
    run.window.add(number, samples)
    for kind, arrays in {"replay": samples.arrays(), **workers.arrays()}.items():
        run.window_files |= _write_npz(run, kind, number, arrays)
    kept = {f"_{number:04d}.npz" for number, _ in run.window.generations}
    run.window_files = {name: sha for name, sha in run.window_files.items() if name[name.index("_") :] in kept}
    name, player = str(run.folder.config.get("game", game.name)), f"generation {run.lineup.best_generation}"
    finished = workers.all[0].finished_games()
    write_shown(run.folder.path, number, records_of_games(game, name, finished, run.plan.seed, player))


def save(run: Run, generation: Generation) -> None:
    """Writes the candidate."""
    generation.enter("saving")
    run.pace.generation = generation.number
    _save_net(run, generation.number, run.lineup.net, run.plan.config.net, generation.figures)


def _save_net(run: Run, generation: int, net: NeuralNet, sizes: Any, figures: Mapping[str, Any]) -> None:
    """Writes the generation's checkpoint with a card on which nothing depends on the clock."""
    run.folder.check()
    plan, path = run.plan, run.lineup.checkpoint(generation)
    card: dict[str, Any] = {"game": plan.loaded.game.name, "net": settings_by_name(sizes)}
    card |= {"generation": generation, "search": asdict(plan.config.search)}
    card |= {name: x for name, x in figures.items() if name in ("gate_score", "promoted", *ORIGINS)}
    if maker := plan.names_of_parts.get("make_net"):
        card["made_by"] = maker
    net.save(path, card)
    check_saved(net, path, card)


def commit(run: Run, generation: Generation | None = None) -> None:
    """Writes all that the next generation starts from; the manifest comes last and makes it count. None: number 0."""
    lineup, plan, pace, number = run.lineup, run.plan, run.pace, run.pace.generation
    if generation:
        pace.newest_seconds = generation.seconds
        pace.seconds += pace.newest_seconds
        generation.add_times(pace.seconds)
    run.folder.check()
    games, learner = lineup.games_in_progress(), run.file("learner", number, "safetensors")
    lineup.learner.trainer.save(learner)
    check_saved(lineup.learner.trainer, learner, {})
    files = {**_write_npz(run, "games", number, games), **run.window_files}
    for checkpoint in {lineup.checkpoint(number), lineup.best_checkpoint, learner}:
        card = checkpoint.with_suffix(".json")
        files |= {checkpoint.name: read_card(card)["weights"]["sha256"], card.name: sha256_of(card)}
    if generation:
        run.folder.append_metrics(generation.figures)
    state = {
        "best": lineup.best_generation, "seed": plan.seed, "threads": plan.threads, "devices": plan.device_kinds,
        "deterministic": plan.deterministic, "rules": run.rules, "replay": [each for each, _ in run.window.generations],
        "samples": [len(samples) for _, samples in run.window.generations], "seconds": pace.seconds,
        "inference": lineup.inference, "slots": lineup.workers.num_slots,
    }  # fmt: skip
    if plan.cluster or lineup.arrivals.taken:  # files that cannot be removed stay taken, whoever plays
        state["arrived"] = lineup.arrivals.taken
    if targets := plan.names_of_parts.get("value_targets"):
        state["value_targets"] = targets
    run.folder.commit(number, files, state, plan.config.keep)
    lineup.arrivals.committed()


def _write_npz(run: Run, kind: str, generation: int, arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Writes a file of the generation; returns its name and SHA-256."""
    path = run.file(kind, generation)
    settings = f"{option('self_play.games_per_generation')} and {option('self_play.num_slots')}"
    return {path.name: write_npz(path, arrays, f". Choose smaller {settings}")}
