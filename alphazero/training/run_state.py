"""A run between two generations: its nets, its samples, its games in progress; and all of it on disk.

`commit` writes it to the run folder after each generation, `prepare` reads it back.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import weakref
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from alphazero.cluster.fingerprint import name_rules, rules_changed
from alphazero.errors import CheckpointError, DeviceMemoryError, InvalidSetting, RunFolderError, shorten
from alphazero.game.kernels import kernels_of
from alphazero.game.spec import LoadedGame
from alphazero.invocation import option
from alphazero.nets.devices import INFERENCE_VARIABLE, INFERENCES, begin_determinism, wanted_inference
from alphazero.nets.neural_net import NeuralNet, check_apart, check_saved
from alphazero.players.contestants import check_announced, find_checkpoint, find_net, has_own_net, text_of
from alphazero.settings import config_from_dict
from alphazero.storage.arrays import read_npz, write_npz
from alphazero.storage.checkpoint import read_net_card
from alphazero.storage.files import sha256_of, to_json
from alphazero.storage.run_folder import Manifest, RunFolder
from alphazero.storage.schema import Count, Counts, Seconds, Text, Texts, check
from alphazero.training.config import RunConfig, settings_by_name
from alphazero.training.learner import Learner
from alphazero.training.remote.inbox import Inbox, most_games
from alphazero.training.remote.workers import ClusterWorkers
from alphazero.training.replay_buffer import ReplayBuffer, Samples, read_samples
from alphazero.training.selfplay import SelfPlay
from alphazero.training.selfplay.first_compile import compile_all
from alphazero.training.selfplay.shown_games import records_of_games, write_shown
from alphazero.training.worker_process import TrainingJob
from alphazero.training.workers import RunPlan, Workers

logger = logging.getLogger(__name__)

UNCONTESTED: dict[str, Any] = {"gate_score": None, "promoted": True}
"""The gate's figures of a net that had no gate to pass."""
OLDER_INFERENCE = "torch"
"""The library of runs that do not name one."""
OTHER_SLOTS = 16
"""A file with more games in progress than these times the run's own is not read, to say how many it has."""
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


def read_net_settings(name: str, loaded: LoadedGame, like: RunConfig) -> Any:
    """The settings of the game's net in a checkpoint or run, of the type that `like.net` has; raises InputError."""
    path, card = find_net(name, loaded)
    net = config_from_dict(RunConfig, {"net": card["net"]}, f"the card of {path}", like).net
    check_announced(path, settings_by_name(net), loaded)
    return net


def with_sizes_of(name: str, loaded: LoadedGame, config: RunConfig) -> RunConfig:
    """The settings with the sizes of the net to begin with, if there is one; raises InputError."""
    return replace(config, net=read_net_settings(name, loaded, config)) if name else config


def check_growth(config: RunConfig, playing: Any) -> None:
    """Raises InvalidSetting if a net of other settings would play for ever, since there is no gate to pass."""
    if not _same_sizes(config.net, playing) and not config.gate.enabled:
        raise InvalidSetting(
            f"{option('initial_net', config.initial_net)} has other sizes and would play for ever: a network of the "
            "new sizes must pass the gate, which is off; leave the network's sizes out, or turn the gate on"
        )


def _same_sizes(one: Any, other: Any) -> bool:
    """Two settings of nets are equal once they are written: a card has lists where settings may have tuples."""
    return to_json(settings_by_name(one)) == to_json(settings_by_name(other))


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
    if maker and has_own_net(plan.loaded):
        name = shorten(maker)
        raise RunFolderError(
            f"{path} was begun with networks of your own, made by {name}: go on in Python by "
            f"az.train(..., net={name}, resume=True)"
        )
    if state.value_targets and "value_targets" not in plan.replaced_parts:
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
            "the run goes on without %s positions of its replay window, and will not equal an undamaged run",
            missing or "some",
        )  # fmt: skip


def prepare(plan: RunPlan, folder: RunFolder, stop: threading.Event) -> RunState:
    """The run in the folder, ready to play: a new one with its generation 0, or as its newest generation left it.

    Compiles the search, makes the nets and starts the workers. Raises InputError.
    """
    manifest = folder.newest_valid()
    saved = None
    if manifest:  # before anything is compiled
        saved = read_state(manifest, folder.path)
        _say_lost(manifest, saved)
        check_place(plan, folder.path, saved)
        _compare_determinism(plan, folder.path, saved)
        _compare_rules(plan, folder.path, manifest.generation, saved)
        _check_parts(plan, folder.path, saved)
        learner = folder.path / f"learner_{manifest.generation:04d}.safetensors"
        check_announced(learner, plan.config.net_settings, plan.loaded)
    logger.info("getting ready")
    state = RunState(plan, folder, stop, saved)
    state.generation = manifest.generation if manifest else 0
    try:
        state.make_nets(saved.slots if saved else None)
        logger.info("%s", state.workers.describe())
        if manifest is None or saved is None:
            state.begin()
        else:
            state.restore(manifest, saved)
        state.workers.start()
        compile_all(state.kernels, plan.config.self_play, plan.config.search, state.best)
        state.workers.get_ready()  # last: processes find on disk what was compiled here
    except BaseException:
        state.close()
        raise
    return state


class RunState:
    """All that a run has between two generations; made by `prepare`."""

    def __init__(self, plan: RunPlan, folder: RunFolder, stop: threading.Event, saved: SavedState | None):
        self.plan, self.folder, self._stop = plan, folder, stop
        self.generation = 0
        """The newest generation."""
        self.best_generation = 0
        """The generation whose net plays."""
        self.seconds = 0.0
        """Duration of all generations together."""
        self._replay_files: dict[str, str] = {}
        self._played_files: dict[str, str] = {}
        """The numbers of the games in the window, where a cluster has played them."""
        self._rules = name_rules(plan.loaded.game)  # once: the file may change or go while the game trains
        self._cpu_of_closed = 0.0
        self._at_end = contextlib.ExitStack()
        """Gives network calls of this process back what the run has changed."""
        self._playing = self._sizes_that_play(saved)
        check_growth(plan.config, self._playing)
        self.kernels = kernels_of(plan.loaded.game)
        self.inference = wanted_inference()
        """The library that runs the networks: chosen when the run begins, and kept."""
        if saved:
            self.inference = saved.inference
        elif self.inference == "auto" and plan.deterministic:
            self.inference = "torch"  # which one is faster depends on the clock
        self.net: NeuralNet
        """The net that learns; there from `make_nets` on, as are the next three."""
        self.best: NeuralNet
        """The net that plays."""
        self.learner: Learner
        self.workers: Workers | ClusterWorkers
        self.replay = ReplayBuffer(self.kernels, plan.config.replay)

    def make_nets(self, slots: int | None) -> None:
        """Makes the nets, the learner and the workers; `slots` as for Workers. A cluster loads its code meanwhile."""
        plan = self.plan
        if plan.cluster is not None:
            workers = self.workers = self._make_cluster_workers()
            workers.place()
        self.net, self.best = self._make_net(plan.config.net), self._make_net(self._playing)
        check_apart(self.net, self.best)
        # its replicas keep the threads busy; how sums are rounded must not depend on how many processes learn
        self._at_end.callback(self.net.use_threads, self.net.use_threads(1))
        self.learner = Learner(self.net, plan.config.learner, plan.seed, plan.threads_each)
        if plan.cluster is None:
            self.workers = self._make_workers(slots)

    def close(self) -> None:
        """Ends the workers, and leaves network calls as they were before the run; a second call does nothing."""
        self._at_end.close()
        if hasattr(self, "workers"):
            self.workers.close()

    @property
    def grows(self) -> bool:
        """The net that plays has other sizes than the net that learns, and so is of another run."""
        return not _same_sizes(self._playing, self.plan.config.net)

    @property
    def _most_games(self) -> int:
        """The most games of a generation, or of one arrival from a cluster."""
        return most_games(self.plan.loaded.game, self.plan.config.self_play.games_per_generation)

    @property
    def cpu_seconds_of_workers(self) -> float:
        """Processor time of all workers so far, outside of this process."""
        return self._cpu_of_closed + self.workers.cpu_seconds

    def checkpoint(self, generation: int) -> Path:
        """The file of a generation's net."""
        return self.folder.path / f"generation_{generation:04d}.safetensors"

    # --- from one generation to the next -----------------------------------------------------------------------------

    def add_samples(self, generation: int, samples: Samples) -> None:
        """Takes new samples into the window, and writes them."""
        self.folder.check()
        self.replay.add(generation, samples)
        name = f"replay_{generation:04d}.npz"
        self._replay_files[name] = _write_npz(self.folder.path / name, samples.arrays())
        kept = {f"{kind}_{number:04d}.npz" for number, _ in self.replay.generations for kind in ("replay", "played")}
        if isinstance(self.workers, ClusterWorkers):
            name = f"played_{generation:04d}.npz"
            self._played_files[name] = _write_npz(self.folder.path / name, {"games": self.workers.worker.taken.games})
        self._replay_files = {name: sha for name, sha in self._replay_files.items() if name in kept}
        self._played_files = {name: sha for name, sha in self._played_files.items() if name in kept}

    def show_games(self, generation: int) -> None:
        """Keeps a few of the generation's games for people; `play_games` has just played them."""
        game, player = self.plan.loaded.game, f"generation {self.best_generation}"
        name, finished = str(self.folder.config.get("game", game.name)), self.workers.all[0].finished_games()
        records = records_of_games(game, name, finished, self.plan.seed, player)
        write_shown(self.folder.path, generation, records)

    def training_job(self, num_updates: int, generation: int, progress: float) -> TrainingJob:
        """The learning of that generation, from what is on disk."""
        path = self.folder.path
        return TrainingJob(
            path / f"learner_{self.generation:04d}.safetensors", tuple(path / name for name in self._replay_files),
            num_updates, generation, progress,
        )  # fmt: skip

    def save_candidate(self, generation: int, gate_figures: Mapping[str, Any]) -> None:
        """Writes the net that has learned; from now on it plays if the gate's figures say so."""
        self.generation = generation
        self._save(self.net, gate_figures)
        if gate_figures["promoted"]:
            self._let_it_play(generation)
        self.workers.forget()  # also of a net that stays, so that a resumed run meets the same cache

    def commit(self, figures: Mapping[str, Any]) -> None:
        """Writes all that the next generation starts from; the manifest comes last and makes it count."""
        self.folder.check()
        path, number = self.folder.path, f"{self.generation:04d}"
        learner = path / f"learner_{number}.safetensors"
        self.learner.trainer.save(learner)
        check_saved(self.learner.trainer, learner, {})
        games = _write_npz(path / f"games_{number}.npz", self._games_in_progress())
        files = {f"games_{number}.npz": games, **self._replay_files, **self._played_files}
        for checkpoint in {self.checkpoint(self.generation), self.checkpoint(self.best_generation), learner}:
            for file in (checkpoint, checkpoint.with_suffix(".json")):
                files[file.name] = sha256_of(file)
        if figures:
            self.folder.append_metrics(figures)
        state = {
            "best": self.best_generation,
            "seconds": self.seconds,
            "seed": self.plan.seed,
            "threads": self.plan.threads,
            "devices": self.plan.device_kinds,
            "inference": self.inference,
            "slots": self.workers.num_slots,
            "deterministic": self.plan.deterministic,
            "rules": self._rules,
            "replay": [number for number, _ in self.replay.generations],
            "samples": [len(samples) for _, samples in self.replay.generations],
        }
        arrivals = self.workers.inbox if isinstance(self.workers, ClusterWorkers) else None
        if arrivals:
            state["arrived"] = arrivals.taken
        if targets := self.plan.names_of_parts.get("value_targets"):
            state["value_targets"] = targets
        self.folder.commit(self.generation, files, state, self.plan.config.keep)
        if arrivals:
            arrivals.committed()

    def _save(self, net: NeuralNet, figures: Mapping[str, Any]) -> None:
        """Writes the generation's checkpoint with a card on which nothing depends on the clock."""
        self.folder.check()
        kept = ("gate_score", "promoted", *ORIGINS)
        settings = self.plan.config.net if net is self.net else self._playing
        card: dict[str, Any] = {"game": self.plan.loaded.game.name, "net": settings_by_name(settings)}
        card |= {"generation": self.generation, "search": asdict(self.plan.config.search)}
        card |= {name: figure for name, figure in figures.items() if name in kept}
        if maker := self.plan.names_of_parts.get("make_net"):
            card["made_by"] = maker
        net.save(self.checkpoint(self.generation), card)
        check_saved(net, self.checkpoint(self.generation), card)

    # --- beginning and going on --------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Writes generation 0: the untrained net, or the net to start from."""
        figures, name = dict(UNCONTESTED), self.plan.config.initial_net
        net = self.best if self.grows else self.net
        if name:
            card = net.load(find_checkpoint(name, self.plan.loaded))
            fresh = self.grows and not self.net.grow_from(self.best)
            if self.grows:
                larger = f"the larger network begins with the weights of {name}; its new parts have no effect yet"
                logger.info("%s", "the network of the new sizes begins untrained" if fresh else larger)
            self.learner.begin()
            figures["learned_from_games_of" if fresh else "started_from"] = {
                "net": name, "card_sha256": card["card_sha256"],
            }  # fmt: skip
        self._save(net, figures)
        self.best.load(self.checkpoint(0))
        self.commit({})

    def restore(self, manifest: Manifest, state: SavedState) -> None:
        """Goes on from the manifest's generation; raises InputError where that cannot be."""
        path, game = self.folder.path, self.plan.loaded.game
        self.generation = manifest.generation
        self.best_generation, self.seconds = state.best, state.seconds
        self.learner.trainer.load(path / f"learner_{self.generation:04d}.safetensors")
        self.best.load(self.checkpoint(self.best_generation))
        expected = {f"{name}_#": array for name, array in SelfPlay.saved(game).items()}
        # what the manifest says about itself is believed as far as the settings allow it
        most_slots = max(OTHER_SLOTS * self.workers.num_slots, min(state.slots, self._most_games))
        past = self._read_arrivals(state)
        self._go_on_with(read_npz(path / f"games_{self.generation:04d}.npz", expected, {"slots": most_slots}), past)
        most = (self._most_games + len(self.workers.all) * self.workers.num_slots) * game.max_plies
        for number, count in zip(state.replay, state.samples or [most] * len(state.replay), strict=True):
            name = f"replay_{number:04d}.npz"
            self.replay.add(number, read_samples(path / name, game, min(count, most)))
            self._replay_files[name] = manifest.files[name]
        self._played_files = {name: sha for name, sha in manifest.files.items() if name.startswith("played_")}
        self.folder.truncate_metrics(manifest.generation)  # now nothing is refused any more
        logger.info("going on after generation %d of %d", self.generation, self.plan.config.generations)

    def _sizes_that_play(self, saved: SavedState | None) -> Any:
        """The sizes of the net that learns, unless the run begins with a net of others and has not outgrown it."""
        name = self.plan.config.initial_net
        if not name:
            return self.plan.config.net
        checkpoint = str(self.checkpoint(saved.best)) if saved else name
        return read_net_settings(checkpoint, self.plan.loaded, self.plan.config)

    def _make_net(self, sizes: Any) -> NeuralNet:
        net = self.plan.loaded.make_net(self.plan.loaded.game, settings_by_name(sizes))
        self._at_end.callback(begin_determinism(net, self.plan.deterministic))
        net.use_device(self.plan.device_kinds[0])
        self.inference = net.use_inference(self.inference)
        return net

    def _make_cluster_workers(self) -> ClusterWorkers:
        lines = self.folder.metrics()  # killed before the manifest, a generation has left a line that does not count
        promoted = [x["generation"] for x in lines if x.get("promoted") and x["generation"] <= self.generation]
        before = getattr(self, "workers", None)
        inbox = before.inbox if isinstance(before, ClusterWorkers) else self._make_inbox()
        run = weakref.proxy(self)  # as below
        return ClusterWorkers(
            self.plan, self.kernels, self._playing, lambda: run.inference,
            lambda: (run.best_generation, run.checkpoint(run.best_generation)), inbox, [0, *promoted],
        )  # fmt: skip

    def _make_workers(self, slots: int | None) -> Workers:
        run = weakref.proxy(self)  # else the two would hold each other in memory
        return Workers(
            self.plan, self.kernels, self.best, self._playing, self.inference, slots,
            lambda: run.checkpoint(run.best_generation), self._stop,
        )  # fmt: skip

    def _make_inbox(self) -> Inbox:
        return Inbox(self.folder, self.kernels.game, self._most_games)

    def _let_it_play(self, generation: int) -> None:
        """The network of that generation takes over self-play."""
        if self.grows and self.plan.cluster is not None:
            self.workers.close()  # until then hosts begin games, and get the weights of the best generation
        self.best_generation = generation
        if not self.grows:
            self.best.load(self.checkpoint(generation))
            return
        # workers of a network of other sizes must be made anew, and go on with the games of before
        games, slots = self._games_in_progress(), self.workers.num_slots
        self._cpu_of_closed += self.workers.cpu_seconds
        self.workers.close()
        self._playing = self.plan.config.net
        self.best = self._make_net(self._playing)
        self.best.load(self.checkpoint(generation))
        self.workers = self._make_workers(slots) if self.plan.cluster is None else self._make_cluster_workers()
        if self.workers.num_slots < slots:
            raise DeviceMemoryError(
                f"the network that has passed the gate leaves the GPU too little memory for {slots} games at once, "
                f"which are in progress: free some and go on with {option('resume', True)}, or begin with a smaller net"
            )
        self._go_on_with(games)
        logger.info("the network of the new sizes plays from now on, %s", self.workers.describe())

    def _games_in_progress(self) -> dict[str, np.ndarray]:
        """The games of all workers; `_go_on_with` takes them back."""
        return {f"{name}_{i}": x for i, worker in enumerate(self.workers.all) for name, x in worker.state().items()}

    def _read_arrivals(self, state: SavedState) -> int:
        """Takes up games that a cluster has sent and no generation has taken; returns a number above all of theirs."""
        inbox = self.workers.inbox if isinstance(self.workers, ClusterWorkers) else self._make_inbox()
        past = inbox.restore(state.arrived)
        if not isinstance(self.workers, ClusterWorkers) and inbox.num_games:
            flag = option("cluster")
            logger.info("without %s these games are not used; they stay for a resume with %s", flag, flag)
        return past

    def _go_on_with(self, games: Mapping[str, np.ndarray], past: int = 0) -> None:
        """Raises RunFolderError where the workers are others than those that began the games.

        To a cluster, and from one, only the numbers of games pass on; new games have numbers of `past` or more.
        """
        path = self.folder.path
        in_progress = sum(len(numbers) for name, numbers in games.items() if name.startswith("games_"))
        if isinstance(self.workers, ClusterWorkers) or not in_progress:
            past = max(past, *(int(games[name]) for name in games if name.startswith("next_game_")))
            if in_progress:
                logger.info("%d games in progress on this machine are given up", in_progress)
            for i, worker in enumerate(self.workers.all):
                worker.begin_at(past + i)
            return
        begun, now = sum(name.startswith("next_game_") for name in games), len(self.workers.all)
        if begun != now:
            raise RunFolderError(
                f"{path} has games of {begun} workers, and this run has {now}: go on with the same {option('device')} "
                f"and {option('self_play.games_per_generation')}"
            )
        for i, worker in enumerate(self.workers.all):
            if len(games[f"games_{i}"]) != worker.num_slots:
                raise RunFolderError(
                    f"{path} plays {len(games[f'games_{i}'])} games at once on each thread: it cannot go on with "
                    f"{worker.num_slots}; leave {option('self_play.num_slots')}, "
                    f"{option('self_play.games_per_generation')} and {option('deterministic')} as they were, "
                    "and free the GPU's memory"
                )
            worker.restore({name: games[f"{name}_{i}"] for name in worker.state() if f"{name}_{i}" in games})


def _write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """As `write_npz`, with our settings in the error about a file that is too large."""
    settings = f"{option('self_play.games_per_generation')} and {option('self_play.num_slots')}"
    return write_npz(path, arrays, f". Choose smaller {settings}")
