"""The first two steps of a generation: the best net plays against itself, and the candidate learns."""

from __future__ import annotations

import functools
import logging
import time
from typing import Any

from alphazero.errors import Stopped, TrainingError, count_of
from alphazero.invocation import option
from alphazero.machine import return_free_memory
from alphazero.progress import Progress
from alphazero.training.health import describe_samples
from alphazero.training.parts.journal import Generation, show_duration
from alphazero.training.parts.lineup import Run
from alphazero.training.parts.pace import SELF_PLAY_SHARE
from alphazero.training.replay_buffer import Samples
from alphazero.training.selfplay import SelfPlayCounts, Until, play_games
from alphazero.training.worker_process import TrainingJob

logger = logging.getLogger(__name__)

MEASURED = "simulations_per_s", "cache_hits", "bytes_per_position"
"""Figures of how games are played; without any, those of the generation before stand."""


def play(run: Run, generation: Generation) -> Samples:
    """The samples of the games that are wanted, or that fit into the time. Raises Stopped, and TrainingError."""
    generation.enter("self-play")
    lineup, pace, workers = run.lineup, run.pace, run.lineup.workers
    wanted, seconds_of_play = run.plan.config.self_play.games_per_generation, pace.share_of_minutes(SELF_PLAY_SHARE)
    # even if no game is over, it ends when the minutes are used up
    until = Until(run.stop.is_set, seconds_of_play, max(seconds_of_play, pace.share_of_minutes(1) - pace.seconds))
    begin, before = workers.begin_counting()

    def counts() -> tuple[SelfPlayCounts, float]:
        return workers.played() - before, max(1e-9, time.monotonic() - begin)

    with Progress(f"generation {generation.number}: self-play") as progress:

        def show() -> None:
            now, seconds = counts()
            # as long as no game is over, nothing tells that self-play ends sooner than it must
            limit = until.most_seconds if seconds > until.seconds or not now.games else until.seconds
            progress.show(
                min(1.0, max(now.games / wanted, seconds / limit)),
                f"{now.games} of {wanted} games, {now.positions / seconds:,.0f} positions/s, "
                f"{now.simulations / seconds:,.0f} simulations/s",
            )

        samples = play_games(workers.all, wanted, lineup.net.use_threads, until, show)
    if run.stop.is_set():
        raise Stopped
    generation.figures |= _figures(run, samples, *counts())
    if len(samples):
        samples.check()
        generation.figures |= describe_samples(lineup.kernels, samples, lineup.net)
    elif generation.number == 1:
        raise TrainingError(
            f"no game of self-play was over after {show_duration(generation.seconds)}, so there is nothing to "
            f"learn from: give more {option('minutes')}, or fewer {option('search.num_simulations')}"
        )
    return samples


def _figures(run: Run, samples: Samples, played: SelfPlayCounts, seconds: float) -> dict[str, Any]:
    workers, lines = run.lineup.workers, run.journal.lines
    share = workers.share_of_network(played, seconds)
    if share is not None and not lines:
        logger.info("self-play uses %.0f%% of the network's capacity", 100 * share)
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
    if not played.simulations and lines:  # the games had waited, and nobody has played since
        figures |= {name: lines[-1][name] for name in MEASURED if name in lines[-1]}
    return figures


def learn(run: Run, generation: Generation, num_new: int) -> None:
    """Draws each of the `num_new` samples as often as configured; raises TrainingError, or Stopped."""
    generation.enter(f"learning from {count_of(num_new, 'new position')}")
    begin, config, learner, number = time.monotonic(), run.plan.config.learner, run.lineup.learner, generation.number
    training_set = run.window.training_set()
    return_free_memory()  # merging copied the whole window
    batch_size = min(config.batch_size, len(training_set))  # as in `TrainingSet.draws`
    num_updates, progress_of_run = learner.num_updates(num_new, batch_size), run.pace.progress
    files = tuple(run.folder.path / name for name in run.window_files if name.startswith("replay_"))
    weights = run.file("learner", run.pace.generation, "safetensors")
    job = TrainingJob(weights, files, num_updates, number, progress_of_run)
    done = 0
    with Progress(f"generation {number}: learning") as progress:

        def show(losses: dict[str, float]) -> None:
            nonlocal done
            if run.stop.is_set():
                raise Stopped
            done += 1
            text = ", ".join(f"{name.replace('_', ' ')} {loss:.3f}" for name, loss in losses.items())
            progress.show(done / num_updates, text)

        losses = run.lineup.workers.learn(
            learner.trainer,
            job,
            functools.partial(learner.learn, training_set, num_updates, number, progress_of_run, show),
        )
    generation.figures |= {name: round(loss, 5) for name, loss in losses.items()} | {
        "updates": num_updates,
        "sample_reuse": round(num_updates * batch_size / num_new, 3),
        "draws_per_position": round(num_updates * batch_size / len(training_set), 3),
        "window_generations": len(run.window.generations),
        "window_positions": len(training_set),
        "learning_rate": learner.learning_rate(progress_of_run, config.warmup_updates),
        "learning_seconds": round(time.monotonic() - begin, 3),
    }
    del training_set
    return_free_memory()
