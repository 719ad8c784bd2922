"""The net that learns, the net that plays, and the workers with which it plays; and the run that they are part of.

A run may begin with a net of other sizes, which plays until the one of the new sizes passes the gate.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from alphazero.catalogue.loaded import LoadedGame
from alphazero.errors import InvalidSetting, RunFolderError, count_of
from alphazero.game.kernels import kernels_of
from alphazero.invocation import option
from alphazero.nets.devices import wanted_inference
from alphazero.nets.neural_net import NeuralNet, check_apart
from alphazero.players.contestants import check_announced, find_net
from alphazero.players.player import Player
from alphazero.settings import config_from_dict
from alphazero.storage.files import to_json
from alphazero.storage.run_folder import RunFolder
from alphazero.training.config import RunConfig, settings_by_name
from alphazero.training.learner import Learner
from alphazero.training.parts.arrivals import Arrivals, most_games
from alphazero.training.parts.journal import Generation, Journal
from alphazero.training.parts.pace import Pace
from alphazero.training.plan import Assignment, RunPlan, Workers
from alphazero.training.replay_buffer import ReplayBuffer
from alphazero.training.workers import LocalWorkers

logger = logging.getLogger(__name__)

Benchmark: TypeAlias = Callable[[Player], Mapping[str, float]]


class Lineup:
    """Both nets of a run, what learns, and who plays."""

    net: NeuralNet
    """The net that learns; there from `make` on, as are the next three."""
    best: NeuralNet
    """The net that plays."""
    learner: Learner
    workers: Workers

    def __init__(
        self, plan: RunPlan, folder: RunFolder, stop: threading.Event, best: int | None, inference: str | None
    ):
        """`best` plays in a run that goes on, by the library `inference`; raises InvalidSetting, as `check_growth`."""
        self.plan, self._folder, self._stop = plan, folder, stop
        self.best_generation = best or 0
        """The generation whose net plays."""
        name = plan.config.initial_net
        playing = name if best is None else str(self.best_checkpoint)
        self.sizes = read_net_settings(playing, plan.loaded, plan.config) if name else plan.config.net
        """The sizes of the net that plays: a run may begin with others than those of the net that learns."""
        check_growth(plan.config, self.sizes)
        self.kernels = kernels_of(plan.loaded.game)
        # which one is faster depends on the clock
        begun = "torch" if plan.deterministic and wanted_inference() == "auto" else wanted_inference()
        self.inference = inference or begun
        """The library that runs the networks: chosen when the run begins, and kept."""
        self.most_games = most_games(plan.loaded.game, plan.config.self_play.games_per_generation)
        """The most games of a generation, or of one arrival from a cluster."""
        self.arrivals = Arrivals(folder, plan.loaded.game, self.most_games)
        """Games that a cluster has sent, or had sent in a run that goes on without one."""
        self._cpu_of_closed = 0.0
        self._at_end = contextlib.ExitStack()
        """Gives network calls of this process back what the run has changed."""

    @property
    def grows(self) -> bool:
        """The net that plays has other sizes than the net that learns, and so is of another run."""
        return not same_sizes(self.sizes, self.plan.config.net)

    @property
    def cpu_seconds(self) -> float:
        """Processor time of this process and of all workers so far."""
        return time.process_time() + self._cpu_of_closed + self.workers.cpu_seconds

    def rate_of_match(self, figures: Mapping[str, Any]) -> float:
        """Simulations a second that a match may expect after a generation with these figures."""
        return float(figures["simulations_per_s"]) * self.workers.share_of_match

    def checkpoint(self, generation: int) -> Path:
        """The file of a generation's net."""
        return self._folder.path / f"generation_{generation:04d}.safetensors"

    @property
    def best_checkpoint(self) -> Path:
        """The file of the net that plays."""
        return self.checkpoint(self.best_generation)

    def make(self, slots: int | None) -> None:
        """Makes the nets, the learner and the workers; `slots` as for Assignment."""
        plan = self.plan
        self.net, self.best = self._make_net(plan.config.net), self._make_net(self.sizes)
        check_apart(self.net, self.best)
        # its replicas keep the threads busy; how sums are rounded must not depend on how many processes learn
        self._at_end.callback(self.net.use_threads, self.net.use_threads(1))
        self.learner = Learner(self.net, plan.config.learner, plan.seed, plan.threads_each)
        self.workers = self._make_workers(slots)

    def close(self) -> None:
        """Ends the workers, and leaves network calls as they were before the run; a second call does nothing."""
        self._at_end.close()
        if hasattr(self, "workers"):
            self.workers.close()

    def take_turns(self, generation: Generation) -> None:
        """The net that has learned plays from now on if it is promoted."""
        if generation.figures["promoted"]:
            self._let_it_play(generation.number)
        self.workers.forget()  # also of a net that stays, so that a resumed run meets the same cache

    def _let_it_play(self, generation: int) -> None:
        if not self.grows:
            self.best_generation = generation
            self.best.load(self.checkpoint(generation))
            return
        # workers of a network of other sizes must be made anew, and go on with the games of before
        if not self.workers.keeps_games:  # until they are closed they begin games, whose numbers count
            self.workers.close()
        games, slots = self.games_in_progress(), self.workers.num_slots
        self._cpu_of_closed += self.workers.cpu_seconds
        self.workers.close()
        self.best_generation, self.sizes = generation, self.plan.config.net
        self.best = self._make_net(self.sizes)
        self.best.load(self.checkpoint(generation))
        self.workers = self._make_workers(slots)
        self.go_on_with(games)
        logger.info("the network of the new sizes plays from now on, %s", self.workers.describe())

    def games_in_progress(self) -> dict[str, np.ndarray]:
        """The games of all workers; `go_on_with` takes them back."""
        return {f"{name}_{i}": x for i, worker in enumerate(self.workers.all) for name, x in worker.state().items()}

    def go_on_with(self, games: Mapping[str, np.ndarray], past: int = 0) -> None:
        """Raises RunFolderError for other workers than those that began them; new games have numbers from `past` on."""
        path = self._folder.path
        in_progress = sum(len(numbers) for name, numbers in games.items() if name.startswith("games_"))
        if not self.workers.keeps_games or not in_progress:
            past = max(past, *(int(games[name]) for name in games if name.startswith("next_game_")))
            if in_progress:
                logger.info("this machine gives up %s in progress", count_of(in_progress, "game"))
            for i, worker in enumerate(self.workers.all):
                worker.begin_at(past + i)
            return
        begun = [len(games[f"games_{i}"]) for i in range(sum(name.startswith("next_game_") for name in games))]
        now = [worker.num_slots for worker in self.workers.all]
        if begun != now:
            raise RunFolderError(
                f"{path} has games of {count_of(len(begun), 'worker')}, {begun[0]} at once on each, and this run has "
                f"{len(now)} with {now[0]}: leave {option('device')}, {option('self_play.num_slots')}, "
                f"{option('self_play.games_per_generation')} and {option('deterministic')} as they were, and free the "
                "GPU's memory"
            )
        for i, worker in enumerate(self.workers.all):
            worker.restore({name: games[f"{name}_{i}"] for name in worker.state()})

    def _make_net(self, sizes: Any) -> NeuralNet:
        net = self.plan.loaded.make_net(self.plan.loaded.game, settings_by_name(sizes))
        if self.plan.deterministic:
            self._at_end.callback(net.use_determinism, net.use_determinism(True))
        net.use_device(self.plan.device_kinds[0])
        self.inference = net.use_inference(self.inference)
        return net

    def _make_workers(self, slots: int | None) -> Workers:
        plan, run = self.plan, weakref.proxy(self)  # else the two would hold each other in memory
        promoted = [line["generation"] for line in self._folder.metrics() if line.get("promoted")]
        # killed before the manifest, a generation has left a line too many
        promoted = [generation for generation in promoted if generation <= self.best_generation]
        assignment = Assignment(
            plan, self.kernels, self.sizes, self.inference, lambda: (run.best_generation, run.best_checkpoint),
            self.arrivals, [0, *promoted], self._stop, slots,
        )  # fmt: skip
        return plan.cluster.make_workers(assignment) if plan.cluster else LocalWorkers(assignment, self.best)


class Run:
    """The parts of a run, which all its steps share; all but the first four are there once it is prepared."""

    plan: RunPlan
    folder: RunFolder
    stop: threading.Event
    pace: Pace
    lineup: Lineup
    window: ReplayBuffer
    window_files: dict[str, str]
    """The files of the generations in the window, and their SHA-256."""
    rules: str
    """The answer of `name_rules` when the run began to play: the file may change or go while the game trains."""
    journal: Journal
    benchmark: Benchmark | None

    def file(self, kind: str, generation: int, ending: str = "npz") -> Path:
        """The file of a generation in the run folder, as `replay_0012.npz`."""
        return self.folder.path / f"{kind}_{generation:04d}.{ending}"


# --- nets of two sizes ---


def read_net_settings(name: str, loaded: LoadedGame, like: RunConfig) -> Any:
    """The settings of the game's net in a checkpoint or run, of the type that `like.net` has; raises InputError."""
    path, card = find_net(name, loaded)
    net = config_from_dict(RunConfig, {"net": card["net"]}, f"the card of {path}", like).net
    check_announced(path, settings_by_name(net), loaded)
    return net


def check_growth(config: RunConfig, playing: Any) -> None:
    """Raises InvalidSetting if a net of other settings would play for ever, since there is no gate to pass."""
    if not same_sizes(config.net, playing) and not config.gate.enabled:
        raise InvalidSetting(
            f"{option('initial_net', config.initial_net)} has other sizes and would play for ever: a network of the "
            "new sizes must pass the gate, which is off; leave the network's sizes out, or turn the gate on"
        )


def same_sizes(one: Any, other: Any) -> bool:
    """Two settings of nets are equal once they are written: a card has lists where settings may have tuples."""
    return to_json(settings_by_name(one)) == to_json(settings_by_name(other))
