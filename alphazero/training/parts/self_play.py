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
from alphazero.training.parts.pace import Pace
from alphazero.training.replay_buffer import Samples
from alphazero.training.selfplay import SelfPlayCounts, Until, play_games

logger = logging.getLogger(__name__)

MEASURED = "simulations_per_s", "cache_hits", "bytes_per_position"
"""Figures of how games are played; without any, those of the generation before stand."""


class SelfPlay:
    """Lets the workers play, and tells how fast."""

    def __init__(self, lineup: Lineup, pace: Pace, journal: Journal, stop: threading.Event):
        self._lineup, self._pace, self._journal, self._stop = lineup, pace, journal, stop
        self._said_share = False
        self.rate_of_match = 0.0
        """Simulations a second that a match of this generation may expect."""

    def play(self, generation: Generation) -> Samples:
        """The samples of as many games as are wanted, or as fit into the time, which may be none. Raises Stopped.

        Raises TrainingError if the first generation has no samples.
        """
        generation.enter("self-play")
        wanted, pace = self._lineup.plan.config.self_play.games_per_generation, self._pace
        limits = pace.self_play_seconds, pace.most_self_play_seconds
        workers = self._lineup.workers
        begin, before = workers.begin_counting()

        def counts() -> tuple[SelfPlayCounts, float]:
            return workers.played() - before, max(1e-9, time.monotonic() - begin)

        with Progress(f"generation {generation.number}: self-play") as progress:

            def show() -> None:
                now, seconds = counts()
                progress.show(
                    # as long as no game is over, nothing tells that self-play ends sooner than it must
                    min(1.0, max(now.games / wanted, seconds / limits[seconds > limits[0] or not now.games])),
                    f"{now.games} of {wanted} games, {now.positions / seconds:,.0f} positions/s, "
                    f"{now.simulations / seconds:,.0f} simulations/s",
                )

            until = Until(self._stop.is_set, *limits)
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
        else:
            logger.info("no game of generation %d was over in time, so the run ends without it", generation.number)
        return samples

    def _describe(self, samples: Samples, played: SelfPlayCounts, seconds: float) -> dict[str, Any]:
        workers, lines = self._lineup.workers, self._journal.lines
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
        self.rate_of_match = figures["simulations_per_s"] * workers.share_of_match
        if not played.simulations and lines:  # the games had waited, and nobody has played since
            last = lines[-1]
            figures |= {name: last[name] for name in MEASURED if name in last}
            self.rate_of_match = last.get("simulations_per_s", 0) / max(1, last.get("cluster_workers") or 1)
        return figures
