"""The first step of a generation: the best net plays against itself."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from alphazero.errors import Stopped, TrainingError
from alphazero.invocation import option
from alphazero.progress import Progress
from alphazero.training.health import describe_samples
from alphazero.training.parts.journal import Generation, Journal, show_duration
from alphazero.training.parts.lineup import Lineup
from alphazero.training.parts.pace import SELF_PLAY_SHARE, Pace
from alphazero.training.replay_buffer import Samples
from alphazero.training.selfplay import SelfPlayCounts, Until, play_games

logger = logging.getLogger(__name__)

MEASURED = "simulations_per_s", "cache_hits", "bytes_per_position"
"""Figures of how games are played; without any, those of the generation before stand."""


class SelfPlayStep:
    """Lets the workers play, and tells how fast."""

    def __init__(self, lineup: Lineup, pace: Pace, journal: Journal, stop: threading.Event):
        self._lineup, self._pace, self._journal, self._stop = lineup, pace, journal, stop

    def play(self, generation: Generation) -> Samples:
        """The samples of as many games as are wanted, or as fit into the time, which may be none. Raises Stopped.

        Raises TrainingError if the first generation has no samples.
        """
        generation.enter("self-play")
        wanted, pace = self._lineup.plan.config.self_play.games_per_generation, self._pace
        seconds_of_play = pace.share_of_minutes(SELF_PLAY_SHARE)
        # even if no game is over, it ends when the minutes are used up
        most = max(seconds_of_play, pace.share_of_minutes(1) - pace.seconds)
        until = Until(self._stop.is_set, seconds_of_play, most)
        workers = self._lineup.workers
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

            samples = play_games(workers.all, wanted, self._lineup.net.use_threads, until, show)
        if self._stop.is_set():
            raise Stopped
        generation.figures |= self._describe(samples, *counts())
        if len(samples):
            samples.check()
            generation.figures |= describe_samples(self._lineup.kernels, samples, self._lineup.net)
        elif generation.number == 1:
            raise TrainingError(
                f"no game of self-play was over after {show_duration(generation.seconds)}, so there is nothing to "
                f"learn from: give more {option('minutes')}, or fewer {option('search.num_simulations')}"
            )
        return samples

    def _describe(self, samples: Samples, played: SelfPlayCounts, seconds: float) -> dict[str, Any]:
        workers, lines = self._lineup.workers, self._journal.lines
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
