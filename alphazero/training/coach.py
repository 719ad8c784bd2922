"""The loop: self-play, learning, the gate, evaluation, a checkpoint; again, until the run is over; and resuming it."""

from __future__ import annotations

import importlib.util
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from alphazero.errors import CheckpointError, DeviceMemoryError, InvalidSetting, RunFolderError, Stopped
from alphazero.game.kernels import Kernels
from alphazero.game.spec import LoadedGame
from alphazero.matches.arena import MatchResult, gate_decided, play_match
from alphazero.nets.neural_net import NeuralNet
from alphazero.nets.resnet import NetConfig
from alphazero.players.contestants import find_checkpoint
from alphazero.players.net_players import make_net_player
from alphazero.players.player import Player
from alphazero.progress import Progress
from alphazero.settings import config_from_dict
from alphazero.storage.checkpoint import read_card
from alphazero.storage.files import read_npz, sha256_of, write_json, write_npz
from alphazero.storage.run_folder import Manifest, RunFolder
from alphazero.training.config import RunConfig
from alphazero.training.health import Watch, describe_samples, oscillation
from alphazero.training.learner import Learner
from alphazero.training.replay_buffer import MAX_BYTES, ReplayBuffer, Samples, read_samples
from alphazero.training.selfplay import play_games
from alphazero.training.worker_process import TrainingJob
from alphazero.training.workers import SelfPlayCounts, WorkerPlan, Workers

logger = logging.getLogger(__name__)

UNCONTESTED: dict[str, Any] = {"gate_score": None, "promoted": True}
"""The gate's figures of a net that had no gate to pass."""
ORIGINS = ("started_from", "learned_from_games_of")
"""What the card of generation 0 says of the net that a run began with, whose weights it has or not."""


def read_net_sizes(name: str, loaded: LoadedGame) -> NetConfig:
    """The sizes of the game's net in a checkpoint or run; raises InputError."""
    path = find_checkpoint(name, loaded)
    card = read_card(path)
    if card.get("game") != loaded.game.name:
        raise CheckpointError(f"{path} plays {card.get('game')!r}, not {loaded.game.name!r}")
    return config_from_dict(NetConfig, card.get("net"), f"net on the card of {path}")


def check_growth(config: RunConfig, playing: NetConfig) -> None:
    """Raises InvalidSetting if the net of sizes `playing` would play for ever, as there is no gate to pass."""
    if config.net != playing and not config.gate.enabled:
        raise InvalidSetting(
            f"a fresh network learns from the games of --initial-net {config.initial_net} until it passes the "
            "gate, which is off: leave --net... out to begin with its sizes, or leave the gate on"
        )


class Coach:
    """One run: `run` goes on from the newest generation in the folder to the end."""

    def __init__(
        self, loaded: LoadedGame, config: RunConfig, folder: RunFolder, *, seed: int, threads: int,
        devices: Sequence[str], deterministic: bool = False,
    ):  # fmt: skip
        """`devices`: the network's, ours first; all play, and learn. `deterministic`: as in `workers.Setup`."""
        if config.learner.batch_size < 2 * len(devices):
            raise InvalidSetting(
                f"--learner.batch-size must be {2 * len(devices)} or more, since {len(devices)} devices share a batch"
            )
        self.loaded, self.config, self.folder = loaded, config, folder
        self.seed, self.threads = seed, threads
        self.devices = [device.partition(":")[0] for device in devices]
        """Their kinds: a run can go on with other GPUs, if they are as many."""
        self.deterministic = deterministic
        self._begin = folder.newest_valid()
        if self._begin:  # before anything is compiled
            self._check_place(self._begin.state)
        logger.info("getting ready (the first time, the search is compiled for this machine: half a minute)")
        self.kernels = Kernels(loaded.game)
        playing = self._sizes_that_play()
        check_growth(config, playing)
        self.net, self.best = self._make_net(config.net), self._make_net(playing)
        # its replicas keep the threads busy; how sums are rounded must not depend on how many processes learn
        self.net.use_threads(1)
        self.learner = Learner(self.net, config.learner, seed, max(1, threads // len(devices)))
        self.replay = ReplayBuffer(self.kernels, config.replay)
        self.stop = threading.Event()
        """Set it, and the run raises Stopped where it can be left: within a second."""
        self._plan = WorkerPlan(
            loaded, config, playing, devices, threads, seed,
            self._begin.state.get("slots") if self._begin else None,
            deterministic, lambda: self._checkpoint(self.best_generation), self.stop,
        )  # fmt: skip
        self.workers = Workers(self._plan, self.kernels, self.best)
        logger.info("%s", self.workers.describe())
        self.benchmark = loaded.make_benchmark(loaded.game) if loaded.make_benchmark else None
        self.generation = 0
        self.saved_generation = 0
        """The last one that is wholly on disk."""
        self.best_generation = 0
        self.seconds = 0.0
        self._cpu_of_closed = 0.0
        """Processor seconds of processes that are gone."""
        self.replay_files: dict[str, str] = {}
        self.watch = Watch()
        self.benchmark_history: list[float] = []
        self._said_share = False

    def close(self) -> None:
        """Ends the processes, if there are any."""
        self.workers.close()

    def _make_net(self, sizes: NetConfig) -> NeuralNet:
        net = self.loaded.make_net(self.loaded.game, asdict(sizes))
        net.use_determinism(self.deterministic)
        net.use_device(self.devices[0])
        return net

    def _sizes_that_play(self) -> NetConfig:
        """Those of the network that learns, unless the run begins with a net of others and has not outgrown it."""
        name = self.config.initial_net
        if not name:
            return self.config.net
        return read_net_sizes(str(self._checkpoint(self._begin.state["best"])) if self._begin else name, self.loaded)

    # --- the loop ----------------------------------------------------------------------------------------------------

    def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Trains until the generations or the minutes are used up; `on_ready` is called when nothing is refused."""
        if self._begin is None:
            self._write_initial_net()
            self._commit({})
        else:
            self._restore(self._begin)
        on_ready()
        if self._grows:
            net = self.config.initial_net
            logger.info("a fresh network learns from the games of %s until it passes the gate", net)
        while not self.finished():
            self._play_generation()

    def _write_initial_net(self) -> None:
        """Writes generation 0: the untrained net, or the one to start from."""
        figures, name = dict(UNCONTESTED), self.config.initial_net
        net = self.best if self._grows else self.net
        if name:
            card = net.load(find_checkpoint(name, self.loaded))
            origin = "learned_from_games_of" if self._grows else "started_from"
            self.learner.begin()
            figures[origin] = {"net": name, "card_sha256": card["card_sha256"]}
        self._save(net, figures)
        self.best.load(self._checkpoint(0))

    def finished(self) -> bool:
        """The generations or the minutes are used up."""
        minutes = self.config.minutes
        return self.generation >= self.config.generations or 0 < minutes * 60 <= self.seconds

    def progress(self) -> float:
        """How far the run is, from 0 to 1; the learning rate follows it."""
        by_count = self.generation / self.config.generations
        return max(by_count, self.seconds / 60 / self.config.minutes) if self.config.minutes else by_count

    def _leave_if_asked(self) -> None:
        if self.stop.is_set():
            raise Stopped

    def _play_generation(self) -> None:
        begin, cpu_begin = time.monotonic(), self._cpu_seconds()
        generation = self.generation + 1
        samples, play_figures = self._self_play(generation)
        play_figures |= describe_samples(self.kernels, samples, self.net)
        self.replay.add(generation, samples)
        name = f"replay_{generation:04d}.npz"
        self.replay_files[name] = write_npz(self.folder.path / name, samples.arrays())
        kept = {f"replay_{number:04d}.npz" for number, _ in self.replay.generations}
        self.replay_files = {name: sha for name, sha in self.replay_files.items() if name in kept}
        learn_figures = self._learn(generation, len(samples))
        gate_figures = self._gate(generation)
        self.generation = generation
        self._save(self.net, gate_figures)
        if gate_figures["promoted"]:
            self._let_it_play(generation)
        self.workers.forget()  # also of a net that stays, so that a resumed run meets the same cache
        benchmark = self.benchmark(self._player("candidate", self.net, 0)) if self.benchmark else {}
        progress_figures = self._describe_progress(benchmark)
        self.seconds += time.monotonic() - begin
        cpu_seconds = round(self._cpu_seconds() - cpu_begin, 3)
        figures = {
            "generation": generation, "seconds": round(self.seconds, 3), "cpu_seconds": cpu_seconds, **play_figures
        }  # fmt: skip
        figures |= learn_figures | gate_figures
        self._commit(figures | benchmark | progress_figures)
        self._say(figures, benchmark)
        for warning in self.watch.new_warnings(figures | progress_figures):
            logger.warning("%s", warning)

    def _let_it_play(self, generation: int) -> None:
        """The network of that generation takes over self-play."""
        checkpoint = self._checkpoint(generation)
        self.best_generation = generation
        if not self._grows:
            self.best.load(checkpoint)
            return
        # who plays a network of other sizes must be made anew, and goes on with the games of before
        games = self._games_in_progress()
        self._cpu_of_closed += sum(worker.cpu_seconds for worker in self.workers.all)
        slots = self.workers.num_slots
        self._plan = replace(self._plan, net=self.config.net, slots=slots)
        self.workers.close()
        self.best = self._make_net(self.config.net)
        self.best.load(checkpoint)
        self.workers = Workers(self._plan, self.kernels, self.best)
        if self.workers.num_slots < slots:
            raise DeviceMemoryError(
                f"the network that has passed the gate leaves the GPU too little memory for {slots} games at once, "
                "which are in progress: free some and go on with --resume, or begin with a smaller --net..."
            )
        self._go_on_with(games)
        logger.info("the fresh network plays from now on, %s", self.workers.describe())

    @property
    def _grows(self) -> bool:
        """A net of other sizes than that which learns still plays."""
        return self._plan.net != self.config.net

    def _describe_progress(self, benchmark: dict[str, float]) -> dict[str, Any]:
        """Figures of the run as a whole, after the benchmark of a generation."""
        figures: dict[str, Any] = {}
        if not self._grows:  # a fresh network has much to learn before the gate says anything about the run
            figures["generations_since_promotion"] = self.generation - self.best_generation
        if benchmark:
            self.benchmark_history.append(next(iter(benchmark.values())))
            figures["benchmark_oscillation"] = oscillation(self.benchmark_history)
            figures["benchmark_figures"] = list(benchmark)
        return figures

    def _self_play(self, generation: int) -> tuple[Samples, dict[str, Any]]:
        wanted = self.config.self_play.games_per_generation
        begin = time.monotonic()
        before = self.workers.played()

        def counts() -> tuple[SelfPlayCounts, float]:
            return self.workers.played() - before, max(1e-9, time.monotonic() - begin)

        with Progress(f"generation {generation}: self-play") as progress:

            def show() -> None:
                now, seconds = counts()
                progress.show(
                    min(1.0, now.games / wanted),
                    f"{now.games} of {wanted} games, {now.positions / seconds:,.0f} positions/s, "
                    f"{now.simulations / seconds:,.0f} simulations/s",
                )

            samples = play_games(self.workers.all, wanted, self.stop, self.net.use_threads, show)
        self._leave_if_asked()
        played, seconds = counts()
        share = self.workers.share_of_network(played, seconds)
        if not self._said_share:
            logger.info("self-play asks the network %.0f%% of what it can answer alone", 100 * share)
            self._said_share = True
        return samples, {
            "games": played.games,
            "positions": len(samples),
            "plies_per_game": round(played.positions / played.games, 2),
            "drawn_positions": round(float((samples.outcomes == 0).mean()), 4),
            "simulations_per_s": round(played.simulations / seconds),
            "cache_hits": round(1 - played.evaluations / played.requests, 4) if played.requests else 0.0,
            "network_share": round(share, 4),
            "self_play_seconds": round(seconds, 3),
        }

    def _cpu_seconds(self) -> float:
        """Processor time so far, that of the worker processes included."""
        return time.process_time() + self._cpu_of_closed + sum(worker.cpu_seconds for worker in self.workers.all)

    def _learn(self, generation: int, num_new: int) -> dict[str, Any]:
        begin = time.monotonic()
        training_set = self.replay.training_set()
        num_updates = self.learner.num_updates(num_new)
        with Progress(f"generation {generation}: learning") as progress:
            done = 0

            def show(losses: dict[str, float]) -> None:
                nonlocal done
                self._leave_if_asked()
                done += 1
                progress.show(
                    done / num_updates, ", ".join(f"{name.replace('_', ' ')} {x:.3f}" for name, x in losses.items())
                )

            path = self.folder.path
            job = TrainingJob(
                path / f"learner_{self.generation:04d}.safetensors", tuple(path / name for name in self.replay_files),
                num_updates, generation, self.progress(),
            )  # fmt: skip
            losses = self.workers.learn(
                self.learner.trainer, job,
                lambda: self.learner.learn(training_set, num_updates, generation, job.progress, show),
            )  # fmt: skip
        return {name: round(loss, 5) for name, loss in losses.items()} | {
            "updates": num_updates,
            "sample_reuse": round(num_updates * min(self.config.learner.batch_size, len(training_set)) / num_new, 3),
            "draws_per_position": round(num_updates * self.config.learner.batch_size / len(training_set), 3),
            "window_generations": len(self.replay.generations),
            "window_positions": len(training_set),
            "learning_rate": self.learner.learning_rate(self.progress(), self.config.learner.warmup_updates),
            "learning_seconds": round(time.monotonic() - begin, 3),
        }

    def _gate(self, generation: int) -> dict[str, Any]:
        gate = self.config.gate
        if not gate.enabled:
            return dict(UNCONTESTED)
        begin = time.monotonic()
        with Progress(f"generation {generation}: gate") as progress:

            def show(result: MatchResult) -> None:
                self._leave_if_asked()
                progress.show(
                    result.num_games / gate.games,
                    f"score {result.score:.2f} after {result.num_games} games (promoted from {gate.threshold:.2f})",
                )

            result = play_match(
                self.kernels,
                self._player("candidate", self.net, gate.simulations),
                self._player("best", self.best, gate.simulations),
                gate.games,
                self.seed + generation,
                on_progress=show,
                decided=gate_decided(gate.threshold, gate.games),
            )
        return {
            "gate_score": round(result.score, 4),
            "promoted": result.score >= gate.threshold,
            "gate_games": result.num_games,
            "gate_distinct_games": result.distinct_games,
            "gate_seconds": round(time.monotonic() - begin, 3),
        }

    def _player(self, name: str, net: NeuralNet, simulations: int) -> Player:
        """The network with a search of so many simulations; its policy alone for 0."""
        config = replace(self.config.search, num_simulations=simulations, noise_fraction=0.0) if simulations else None
        return make_net_player(name, self.kernels, net, config, seed=self.seed, threads=self.threads)

    def _say(self, figures: dict[str, Any], benchmark: dict[str, float]) -> None:
        gate = "" if figures["gate_score"] is None else f", gate {figures['gate_score']:.2f}"
        shown = f", {show_figures(benchmark)}" if benchmark else ""
        logger.info(
            "generation %d/%d after %s: %d games, %d positions, policy loss %.3f, value loss %.3f%s (%s)%s; %s left",
            self.generation, self.config.generations, _duration(self.seconds), figures["games"], figures["positions"],
            figures["policy_loss"], figures["value_loss"], gate,
            "promoted" if figures["promoted"] else "not promoted", shown, _duration(self.seconds_left()),
        )  # fmt: skip

    def seconds_left(self) -> float:
        """About what the generations to come will take, if they take as long as those so far."""
        left = self.seconds / max(1, self.generation) * max(0, self.config.generations - self.generation)
        return min(left, max(0.0, self.config.minutes * 60 - self.seconds)) if self.config.minutes else left

    # --- on disk -----------------------------------------------------------------------------------------------------

    def _checkpoint(self, generation: int) -> Path:
        return self.folder.path / f"generation_{generation:04d}.safetensors"

    def _save(self, net: NeuralNet, figures: dict[str, Any]) -> None:
        """Writes the generation's checkpoint with a card on which nothing depends on the clock."""
        kept = ("gate_score", "promoted", *ORIGINS)
        card = {"generation": self.generation, "search": asdict(self.config.search)}
        card |= {name: figure for name, figure in figures.items() if name in kept}
        net.save(self._checkpoint(self.generation), card)

    def _commit(self, figures: dict[str, Any]) -> None:
        """Writes all that the next generation starts from; the manifest comes last and makes it count."""
        path, number = self.folder.path, f"{self.generation:04d}"
        learner = path / f"learner_{number}.safetensors"
        self.learner.trainer.save(learner)
        games = write_npz(path / f"games_{number}.npz", self._games_in_progress())
        files = {f"games_{number}.npz": games, **self.replay_files}
        for checkpoint in {self._checkpoint(self.generation), self._checkpoint(self.best_generation), learner}:
            for file in (checkpoint, checkpoint.with_suffix(".json")):
                files[file.name] = sha256_of(file)
        if figures:
            self.folder.append_metrics(figures)
            self._show_in_tensorboard(figures)
        state = {
            "best": self.best_generation,
            "seconds": self.seconds,
            "seed": self.seed,
            "threads": self.threads,
            "devices": self.devices,
            "slots": self.workers.num_slots,
            "replay": [number for number, _ in self.replay.generations],
        }
        self.folder.commit(self.generation, files, state)
        self.saved_generation = self.generation

    def _show_in_tensorboard(self, figures: dict[str, Any]) -> None:
        """Adds the figures to the run's TensorBoard events, if TensorBoard is installed."""
        if importlib.util.find_spec("tensorboard") is None:
            return
        from torch.utils.tensorboard import SummaryWriter

        # one short-lived writer a generation: nothing is left open, and a redone generation replaces its first try
        with SummaryWriter(self.folder.path / "events", purge_step=self.generation) as writer:
            for name, value in figures.items():
                if isinstance(value, int | float):
                    writer.add_scalar(name, value, self.generation)

    def _check_place(self, state: dict[str, Any]) -> None:
        path, devices = self.folder.path, state.get("devices", self.devices)  # older runs do not tell
        if state["threads"] != self.threads or state["seed"] != self.seed:
            raise RunFolderError(
                f"{path} was begun with --threads {state['threads']} --seed {state['seed']}: go on with the same"
            )
        if devices != self.devices:
            raise RunFolderError(
                f"{path} was begun on {len(devices)} x {devices[0]}, and this is {len(self.devices)} x "
                f"{self.devices[0]}: choose as many devices of the same kind by --device"
            )

    def _restore(self, manifest: Manifest) -> None:
        path, state = self.folder.path, manifest.state
        self.folder.truncate_metrics(manifest.generation)
        self.generation = self.saved_generation = manifest.generation
        for metrics in self.folder.metrics():
            if names := metrics.get("benchmark_figures"):
                self.benchmark_history.append(metrics[names[0]])
            self.watch.new_warnings(metrics)  # have been given
        self.best_generation = state["best"]
        self.seconds = state["seconds"]
        self.learner.trainer.load(path / f"learner_{self.generation:04d}.safetensors")
        self.best.load(self._checkpoint(self.best_generation))
        self._go_on_with(read_npz(path / f"games_{self.generation:04d}.npz", MAX_BYTES))
        for number in state["replay"]:
            name = f"replay_{number:04d}.npz"
            self.replay.add(number, read_samples(path / name))
            self.replay_files[name] = manifest.files[name]
        logger.info("going on after generation %d of %d", self.generation, self.config.generations)

    def _games_in_progress(self) -> dict[str, np.ndarray]:
        """Of all who play; `_go_on_with` takes them back."""
        return {f"{name}_{i}": x for i, worker in enumerate(self.workers.all) for name, x in worker.state().items()}

    def _go_on_with(self, games: Mapping[str, np.ndarray]) -> None:
        """Raises RunFolderError where others play them than those who began them."""
        path = self.folder.path
        if f"games_{len(self.workers.all) - 1}" not in games or f"games_{len(self.workers.all)}" in games:
            raise RunFolderError(f"{path} was begun with its trees elsewhere: go on with the same --device")
        for i, worker in enumerate(self.workers.all):
            if len(games[f"games_{i}"]) != worker.num_slots:
                raise RunFolderError(
                    f"{path} plays {len(games[f'games_{i}'])} games at once on each thread: it cannot go on with "
                    f"{worker.num_slots}; leave --self-play.num-slots, --self-play.games-per-generation and "
                    "--deterministic as they are, and the GPU's memory to the run"
                )
            worker.restore({name: games[f"{name}_{i}"] for name in worker.state()})

    # --- the end -----------------------------------------------------------------------------------------------------

    def evaluate(self, opponents: Sequence[Player]) -> dict[str, Any]:
        """The best network's `benchmark` figures and `matches` against `opponents`, as many games as configured.

        Kept in `evaluation.json` too.
        """
        settings = self.config.evaluation
        results = []
        for opponent in opponents:
            with Progress(f"evaluation against {opponent.name}") as progress:

                def show(result: MatchResult, progress: Progress = progress) -> None:
                    self._leave_if_asked()
                    progress.show(result.num_games / settings.games, f"score {result.score:.2f}")

                player = self._player("best", self.best, settings.simulations)
                match = play_match(
                    self.kernels, player, opponent, settings.games, self.seed, on_progress=show
                )  # fmt: skip
            results.append({"opponent": opponent.name, "simulations": settings.simulations, **match.as_dict()})
        evaluation = {
            "generation": self.best_generation,
            "benchmark": self.benchmark(self._player("best", self.best, 0)) if self.benchmark else {},
            "matches": results,
        }
        write_json(self.folder.path / "evaluation.json", evaluation)
        return evaluation


def show_figures(figures: dict[str, float]) -> str:
    """A benchmark's figures for people."""
    return ", ".join(f"{name.replace('_', ' ')} {figure:.3f}" for name, figure in figures.items())


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
