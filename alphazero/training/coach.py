"""The loop: self-play, learning, the gate, the benchmark, a checkpoint; again, until the run is over."""

from __future__ import annotations

import itertools
import logging
import math
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any

from alphazero.errors import InvalidSetting, Stopped, TrainingError, count_of
from alphazero.invocation import option
from alphazero.machine import return_free_memory
from alphazero.matches.arena import get_ready
from alphazero.matches.in_time import play_in_time
from alphazero.matches.result import MatchResult
from alphazero.nets.neural_net import NeuralNet
from alphazero.players.net_players import make_net_player
from alphazero.players.player import Player
from alphazero.progress import Progress
from alphazero.storage.files import write_sealed_json
from alphazero.storage.formats import EVALUATION_SEAL
from alphazero.storage.run_folder import RunFolder
from alphazero.training.health import describe_samples
from alphazero.training.metrics import OF_PROGRESS, Metrics, TensorBoard, Tracker, seconds_left, show_duration
from alphazero.training.replay_buffer import Samples
from alphazero.training.run_state import UNCONTESTED, RunState, prepare
from alphazero.training.selfplay import SelfPlayCounts, play_games
from alphazero.training.workers import RunPlan

logger = logging.getLogger(__name__)

SELF_PLAY_SHARE = 0.1
"""Share of --minutes that the self-play of a generation takes; then it ends with fewer games."""
GATE_SHARE = 0.05
"""Share of --minutes that the gate of a generation takes, by what self-play says of the speed."""
MOST_GATE_SHARE = 0.1
"""Share of --minutes after which the gate ends, with the games that are over."""
MATCHES_SHARE = 0.2
"""The matches at the end take so much time again, in units of --minutes; where games are slow, they are fewer."""
LEAST_GATE_GAMES = 4
LAST_GATE_GAMES = 400
"""Games in the gate of a run's last generation, at least; their standard deviation is 17 Elo points, that of 40 games
55."""
MEASURED = "simulations_per_s", "cache_hits", "bytes_per_position"
"""Figures of how games are played; without any, those of the generation before stand."""
LATELY = 3
"""The generations so far that tell how long the gate and what follows take."""


class Coach:
    """One run: `prepare` gets it ready, `run` goes on from the newest generation in the folder to the end.

    Use it in a `with` statement, which prepares the run and ends its processes. `az.train` does all of this:

    >>> import alphazero as az
    >>> from alphazero.storage.run_folder import RunFolder
    >>> from alphazero.training.workers import RunPlan
    >>> loaded, config = az.load_game("tictactoe").loaded, az.load_run("runs/tictactoe-1").config
    >>> plan = RunPlan(loaded, config, devices=["cpu"], threads=1, seed=0, deterministic=True)
    >>> with RunFolder.create("runs/by-hand", {}) as folder, az.Coach(plan, folder) as coach:
    ...     coach.run()
    """

    def __init__(
        self, plan: RunPlan, folder: RunFolder, trackers: Sequence[Tracker] = (), stop: threading.Event | None = None
    ):
        self.plan, self.folder, self.config = plan, folder, plan.config
        self.stop = stop or threading.Event()
        """Set it from any thread, and `run` and `evaluate` raise Stopped within about a second; all generations so far
        are saved."""
        self.state: RunState
        """There from `prepare` on, as are the next two."""
        self.metrics: Metrics
        self.benchmark: Any
        """Scores a player, `(player) -> {name: figure}`, or None if the game has no benchmark."""
        self._trackers = trackers
        self._said_share = self._said_not_finite = False
        self._first_figure = ""
        """The main figure of the benchmark."""
        self._rate_of_match = 0.0
        """Simulations a second that a match of this generation may expect."""

    def prepare(self) -> None:
        """Compiles the search, makes the nets and starts the workers; reads the run from its folder, or begins it.

        Raises InputError about what does not fit, before anything of a run that goes on is changed.
        """
        self.state = prepare(self.plan, self.folder, self.stop)
        try:
            self.metrics = Metrics(self.folder.metrics(), (TensorBoard(self.folder.path), *self._trackers))
            loaded = self.plan.loaded
            self.benchmark = loaded.make_benchmark(loaded.game) if loaded.make_benchmark else None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the run's processes; a second call does nothing."""
        if hasattr(self, "state"):
            self.state.close()

    def __enter__(self) -> Coach:
        self.prepare()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- the loop ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Trains until the generations or the minutes are used up; raises Stopped when `stop` is set."""
        if self.state.grows:
            logger.info("%s plays until the network of the new sizes passes the gate", self.config.initial_net)
        if self.finished():
            logger.info(
                "there is nothing left to train: %s and %s count from the beginning of the run, which has %s in %s; "
                "give larger ones to train on",
                option("generations"), option("minutes"), count_of(self.state.generation, "generation"),
                show_duration(self.state.seconds),
            )  # fmt: skip
        while not self.finished():
            self._play_generation()

    def finished(self) -> bool:
        """The generations or the minutes are used up."""
        minutes = self.config.minutes
        return self.state.generation >= self.config.generations or 0 < minutes * 60 <= self.state.seconds

    def progress(self) -> float:
        """The share of the run that is done, from 0 to 1; the learning rate follows it."""
        by_count = self.state.generation / self.config.generations
        return max(by_count, self.state.seconds / 60 / self.config.minutes) if self.config.minutes else by_count

    def seconds_left(self) -> float:
        """About how long the rest of the run will take, if its generations take as long as those so far."""
        state, config = self.state, self.config
        return seconds_left(config.generations, config.minutes, state.generation, state.seconds)

    def _enter(self, phase: str) -> None:
        """Logs the part of the work that begins; raises RunFolderError if the run has lost its folder."""
        self.folder.check()
        self.folder.log.add(phase)

    def _leave_if_asked(self) -> None:
        if self.stop.is_set():
            raise Stopped

    def _play_generation(self) -> None:
        state = self.state
        begin, cpu_begin = time.monotonic(), self._cpu_seconds()
        generation = state.generation + 1
        self._enter(f"generation {generation}: self-play")
        samples, play_figures = self._self_play(generation)
        if not len(samples):
            self._end_without_games(generation, time.monotonic() - begin)
            return
        samples.check()
        play_figures |= describe_samples(state.kernels, samples, state.net)
        state.add_samples(generation, samples)
        state.show_games(generation)
        self._enter(f"generation {generation}: learning from {len(samples)} new positions")
        learn_figures = self._learn(generation, len(samples))
        return_free_memory()
        self._enter(f"generation {generation}: gate")
        last = self._is_last(generation, time.monotonic() - begin)
        gate_figures = self._gate(generation, self._gate_games(play_figures, last), last)
        self._enter(f"generation {generation}: saving")
        state.save_candidate(generation, gate_figures)
        own = {"generation", "seconds", "cpu_seconds", *play_figures, *learn_figures, *gate_figures, *OF_PROGRESS}
        benchmark = self._score(self._player("candidate", state.net, 0), own) if self.benchmark else {}
        # a network of new sizes has much to learn before the gate says anything about the run
        since_promotion = None if state.grows else generation - state.best_generation
        progress_figures = self.metrics.describe_progress(benchmark, self._first_figure, since_promotion)
        state.seconds += time.monotonic() - begin
        figures = {
            "generation": generation, "seconds": round(state.seconds, 3),
            "cpu_seconds": round(self._cpu_seconds() - cpu_begin, 3),
            **play_figures, **learn_figures, **gate_figures, **benchmark, **progress_figures,
        }  # fmt: skip
        state.commit(figures)
        self.folder.check()
        self.metrics.add(figures, self.config.generations, self.seconds_left())
        score = "no gate" if gate_figures["gate_score"] is None else f"gate {gate_figures['gate_score']:.3f}"
        verdict = "promoted" if gate_figures["promoted"] else "not promoted"
        self.folder.log.add(f"generation {generation}: saved, {score}, {verdict}")

    def _end_without_games(self, generation: int, seconds: float) -> None:
        """The minutes are used up before a game of the generation was over; raises TrainingError if it is the first."""
        self.state.seconds += seconds
        if generation == 1:
            raise TrainingError(
                f"no game of self-play was over after {show_duration(seconds)}, so there is nothing to learn from: "
                f"give more {option('minutes')}, or fewer {option('search.num_simulations')}"
            )
        logger.info("no game of generation %d was over in time, so the run ends without it", generation)

    def _score(self, player: Player, taken: Iterable[str] = ()) -> dict[str, float]:
        """The figures of the game's benchmark that are finite; raises InvalidSetting if one has a `taken` name."""
        figures = {name: float(figure) for name, figure in self.benchmark(player).items()}
        self._first_figure = next(iter(figures), "")
        if clashes := sorted(figures.keys() & set(taken)):
            raise InvalidSetting(
                f"a figure of the game's benchmark is called {clashes[0]}, as is one of the run: rename it"
            )
        wrong = [f"{name} {figure}" for name, figure in figures.items() if not math.isfinite(figure)]
        if wrong and not self._said_not_finite:
            logger.warning(
                "the game's benchmark gave %s: figures that are no finite numbers are left out", ", ".join(wrong)
            )
            self._said_not_finite = True
        return {name: figure for name, figure in figures.items() if math.isfinite(figure)}

    def _cpu_seconds(self) -> float:
        """Processor time so far, that of the worker processes included."""
        return time.process_time() + self.state.cpu_seconds_of_workers

    def _self_play(self, generation: int) -> tuple[Samples, dict[str, Any]]:
        wanted, most_seconds = self.config.self_play.games_per_generation, self._share_of_minutes(SELF_PLAY_SHARE)
        all_seconds = max(most_seconds, self._share_of_minutes(1) - self.state.seconds)
        workers = self.state.workers
        begin, before = workers.begin_counting()

        def counts() -> tuple[SelfPlayCounts, float]:
            return workers.played() - before, max(1e-9, time.monotonic() - begin)

        with Progress(f"generation {generation}: self-play") as progress:

            def show() -> None:
                now, seconds = counts()
                limit = most_seconds if seconds <= most_seconds else all_seconds
                progress.show(
                    min(1.0, max(now.games / wanted, seconds / limit)),
                    f"{now.games} of {wanted} games, {now.positions / seconds:,.0f} positions/s, "
                    f"{now.simulations / seconds:,.0f} simulations/s",
                )

            limits = most_seconds, all_seconds
            samples = play_games(workers.all, wanted, self.stop, self.state.net.use_threads, show, *limits)
        self._leave_if_asked()
        played, seconds = counts()
        share = workers.share_of_network(played, seconds)
        if not self._said_share and share is not None:
            logger.info("self-play uses %.0f%% of the network's capacity", 100 * share)
            self._said_share = True
        figures = {
            "games": played.games,
            "positions": len(samples),
            "plies_per_game": round(len(samples) / max(1, played.games), 2),
            "drawn_positions": round(float((samples.outcomes == 0).sum()) / max(1, len(samples)), 4),
            "simulations_per_s": round(played.simulations / seconds),
            "cache_hits": round(1 - played.evaluations / played.requests, 4) if played.requests else 0.0,
            "network_share": None if share is None else round(share, 4),
            "self_play_seconds": round(seconds, 3),
            **workers.figures(),
        }
        self._rate_of_match = figures["simulations_per_s"] * workers.share_of_match
        if not played.simulations and self.metrics.lines:  # the games had waited, and nobody has played since
            last = self.metrics.lines[-1]
            figures |= {name: last[name] for name in MEASURED if name in last}
            self._rate_of_match = last.get("simulations_per_s", 0) / max(1, last.get("cluster_workers") or 1)
        return samples, figures

    def _learn(self, generation: int, num_new: int) -> dict[str, Any]:
        begin, state = time.monotonic(), self.state
        training_set = state.replay.training_set()
        return_free_memory()  # merging copied the whole window
        batch_size = min(self.config.learner.batch_size, len(training_set))  # as in `TrainingSet.draws`
        devices = len(self.plan.devices)
        if devices > 1 and batch_size < 2 * devices:
            raise TrainingError(
                f"there are {len(training_set)} different positions to learn from, and each of {devices} devices needs "
                f"two: choose more {option('self_play.games_per_generation')} or fewer devices"
            )
        num_updates = state.learner.num_updates(num_new, batch_size)
        job = state.training_job(num_updates, generation, self.progress())
        with Progress(f"generation {generation}: learning") as progress:
            done = 0

            def show(losses: dict[str, float]) -> None:
                nonlocal done
                self._leave_if_asked()
                done += 1
                progress.show(
                    done / num_updates, ", ".join(f"{name.replace('_', ' ')} {x:.3f}" for name, x in losses.items())
                )

            losses = state.workers.learn(
                state.learner.trainer, job,
                lambda: state.learner.learn(training_set, num_updates, generation, job.progress, show),
            )  # fmt: skip
        return {name: round(loss, 5) for name, loss in losses.items()} | {
            "updates": num_updates,
            "sample_reuse": round(num_updates * batch_size / num_new, 3),
            "draws_per_position": round(num_updates * batch_size / len(training_set), 3),
            "window_generations": len(state.replay.generations),
            "window_positions": len(training_set),
            "learning_rate": state.learner.learning_rate(self.progress(), self.config.learner.warmup_updates),
            "learning_seconds": round(time.monotonic() - begin, 3),
        }

    def _gate(self, generation: int, num_games: int, last: bool) -> dict[str, Any]:
        """The match of the candidate against the best net; the `last` one of a run asks for more than half alone."""
        gate = self.config.gate
        if not gate.enabled:
            return dict(UNCONTESTED)
        begin = time.monotonic()
        threshold = min(gate.threshold, (num_games + 1) / (2 * num_games)) if last else gate.threshold
        candidate, best = (
            self._player(name, net, gate.simulations)
            for name, net in (("candidate", self.state.net), ("best", self.state.best))
        )
        seconds = self._share_of_minutes(MOST_GATE_SHARE)
        with Progress(f"generation {generation}: gate") as progress:
            for result, share in play_in_time(
                self.state.kernels, candidate, best, num_games, self.plan.seed + generation, seconds, 0.0, self.stop
            ):
                progress.show(
                    share, f"score {result.score:.3f} after {result.num_games} games (promoted from {threshold:.3f})"
                )
                if result.decides(threshold, num_games):
                    break
        played = result.num_games
        if last and played:
            threshold = min(gate.threshold, (played + 1) / (2 * played))
        return {
            "gate_score": round(result.score, 4) if played else None,
            # where no two games are over in time, nothing speaks against the net that has learned more
            "promoted": result.score >= threshold or not played,
            "gate_games": result.num_games,
            "gate_distinct_games": result.distinct_games,
            "gate_seconds": round(time.monotonic() - begin, 3),
        }

    def _player(self, name: str, net: NeuralNet, simulations: int) -> Player:
        """The network with a search of so many simulations; its policy alone for 0."""
        config = replace(self.config.search, num_simulations=simulations, noise_fraction=0.0) if simulations else None
        return make_net_player(name, self.state.kernels, net, config, seed=self.plan.seed, threads=self.plan.threads)

    # --- no more time than --minutes ---------------------------------------------------------------------------------

    def _share_of_minutes(self, share: float) -> float:
        """Seconds; infinitely many if the run has no time limit."""
        return share * 60 * self.config.minutes or math.inf

    def _is_last(self, generation: int, seconds: float) -> bool:
        """The run ends after this generation, which has played and learned for so many `seconds`.

        The gate and what follows are taken to need half as long again, or as much more as in the generations before.
        """
        most, share = 60 * self.config.minutes, 1.5
        begun = {"generation": 0, "seconds": 0.0}
        for before, line in itertools.pairwise((begun, *self.metrics.lines[-LATELY - 1 :])):
            worked = line.get("self_play_seconds", 0.0) + line.get("learning_seconds", 0.0)
            if worked and line["generation"] == before["generation"] + 1:
                share = max(share, (line["seconds"] - before["seconds"]) / worked)
        return generation >= self.config.generations or 0 < most <= self.state.seconds + share * seconds

    def _gate_games(self, play_figures: dict[str, Any], last: bool) -> int:
        """The gate's games as configured, or as many as its share of --minutes allows; an even number then."""
        gate = self.config.gate
        wanted = max(gate.games, LAST_GATE_GAMES) if last else gate.games
        searches = play_figures["plies_per_game"] * gate.simulations
        return self._games_that_fit(wanted, LEAST_GATE_GAMES, searches, self._share_of_minutes(GATE_SHARE))

    def _games_that_fit(self, wanted: int, least: int, simulations: float, seconds: float) -> int:
        """As many games of so many `simulations` each as self-play's speed allows in that time, an even number."""
        games = seconds / max(simulations / max(self._rate_of_match, 1e-9), 1e-9)
        return wanted if games >= wanted else min(wanted, max(least, 2 * int(games / 2)))

    # --- the end -----------------------------------------------------------------------------------------------------

    def describe_matches(self, opponents: Sequence[Player]) -> str:
        """A sentence on the matches after the last generation."""
        names, limit = ", ".join(opponent.name for opponent in opponents), self._share_of_minutes(MATCHES_SHARE)
        each = "each of " * (len(opponents) > 1)
        games = f"{self.config.evaluation.games} games against {each}{names}" if names else "no games"
        sentence = f"after the last generation the best net plays {games}"
        if names and math.isfinite(limit):
            most = f"about {show_duration(limit)} at most (fewer games if they are slow, or none)"
            sentence += f"; that takes additional time after {option('minutes')}, {most}"
        return sentence

    def evaluate(self, opponents: Sequence[Player]) -> dict[str, Any]:
        """The best network's `benchmark` figures and its `matches` against `opponents`, as many games as configured.

        With --minutes the games are fewer where they are slow; an opponent against whom no two are over in time has
        no match. Written to `evaluation.json` too.
        """
        state, settings = self.state, self.config.evaluation
        results = []
        for opponent in opponents:
            self._enter(f"matches at the end: {settings.games} games against {opponent.name}")
            seconds = self._share_of_minutes(MATCHES_SHARE) / len(opponents)
            match = self._play_at_end(opponent, settings.games, seconds)
            if not match.num_games:
                logger.warning(
                    "no two games against %s were over in %s, so nothing is known about it: give more %s, or fewer %s",
                    opponent.name, show_duration(seconds), option("minutes"), option("evaluation.simulations"),
                )  # fmt: skip
                continue
            results.append({
                "opponent": opponent.name, "simulations": settings.simulations, "opening_plies": match.opening_plies,
                **match.as_dict(),
            })  # fmt: skip
        evaluation = {
            "generation": state.best_generation,
            "benchmark": self._score(self._player("best", state.best, 0)) if self.benchmark else {},
            "matches": results,
        }
        self.folder.check()
        write_sealed_json(self.folder.path / "evaluation.json", evaluation, EVALUATION_SEAL)
        return evaluation

    def _play_at_end(self, opponent: Player, num_games: int, seconds: float) -> MatchResult:
        """A match of the best net that is over after so many seconds, of as many games as fit."""
        kernels, simulations = self.state.kernels, self.config.evaluation.simulations
        player = self._player("best", self.state.best, simulations)
        last = self.metrics.lines[-1] if self.metrics.lines else {}
        plies = last.get("plies_per_game", 0.0)
        if self._rate_of_match:  # before all games begin side by side, and each ply takes long
            num_games = self._games_that_fit(num_games, 2, plies / 2 * simulations, seconds)
        if kernels.game.compiled:  # what is compiled takes no time of the match
            for each in (player, opponent):
                get_ready(kernels, each)
        with Progress(f"evaluation against {opponent.name}") as progress:
            for result, share in play_in_time(
                kernels, player, opponent, num_games, self.plan.seed, seconds, plies, self.stop
            ):
                score = f", score {result.score:.2f}" if result.num_games else ""
                progress.show(share, f"{result.num_games} of {num_games} games{score}")
        return result
