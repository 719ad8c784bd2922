"""The strength of a run's nets: the game's benchmark in each generation, and matches at the end."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from alphazero.errors import InvalidSetting, count_of
from alphazero.invocation import option
from alphazero.matches.arena import get_ready
from alphazero.matches.in_time import play_in_time
from alphazero.matches.result import MatchResult
from alphazero.players.player import Player
from alphazero.progress import Progress
from alphazero.training.parts.gate import net_player
from alphazero.training.parts.journal import OF_PROGRESS, Generation, Journal, describe_progress, show_duration
from alphazero.training.parts.lineup import Lineup
from alphazero.training.parts.pace import MATCHES_SHARE, Pace, games_that_fit

logger = logging.getLogger(__name__)


class Scores:
    """The benchmark's figures, and those of the run as a whole."""

    def __init__(
        self, lineup: Lineup, journal: Journal, benchmark: Callable[[Player], Mapping[str, float]] | None = None
    ):
        self._lineup, self._journal, self.benchmark = lineup, journal, benchmark
        self._first_figure = ""

    def add(self, generation: Generation) -> None:
        """Adds the figures of the candidate, which `save` has written."""
        lineup = self._lineup
        own = {"generation", "seconds", "cpu_seconds", *generation.figures, *OF_PROGRESS}
        found = self.of(net_player(lineup, "candidate", lineup.net, 0), own)
        # a network of new sizes has much to learn before the gate says anything about the run
        since_promotion = None if lineup.grows else generation.number - lineup.best_generation
        generation.figures |= found
        generation.figures |= describe_progress(self._journal.lines, found, self._first_figure, since_promotion)

    def of(self, player: Player, taken: Iterable[str] = ()) -> dict[str, float]:
        """The figures that are finite, none without a benchmark; raises InvalidSetting if one has a `taken` name."""
        if self.benchmark is None:
            return {}
        figures = {name: float(figure) for name, figure in self.benchmark(player).items()}
        self._first_figure = next(iter(figures), "")
        if clashes := sorted(figures.keys() & set(taken)):
            raise InvalidSetting(
                f"a figure of the game's benchmark is called {clashes[0]}, as is one of the run: rename it"
            )
        finite = {name: figure for name, figure in figures.items() if math.isfinite(figure)}
        if wrong := sorted(figures.keys() - finite.keys()):
            logger.warning("the game's benchmark gave no finite numbers for %s, so they are left out", ", ".join(wrong))
        return finite


class LastMatches:
    """The matches of the best net after the last generation."""

    def __init__(self, lineup: Lineup, pace: Pace, journal: Journal, stop: threading.Event):
        self._lineup, self._pace, self._journal, self._stop = lineup, pace, journal, stop

    def describe(self, opponents: Sequence[Player]) -> str:
        """A sentence on what will be played."""
        names, limit = ", ".join(opponent.name for opponent in opponents), self._pace.share_of_minutes(MATCHES_SHARE)
        if not names:
            return "after the last generation the best net plays no games"
        games, each = count_of(self._lineup.plan.config.evaluation.games, "game"), "each of " * (len(opponents) > 1)
        sentence = f"after the last generation the best net plays {games} against {each}{names}"
        if math.isfinite(limit):
            most = f"about {show_duration(limit)} at most (fewer games if they are slow, or none)"
            sentence += f"; that takes additional time after {option('minutes')}, {most}"
        return sentence

    def play(self, opponents: Sequence[Player]) -> list[dict[str, Any]]:
        """The results, as many games as configured; with --minutes fewer where they are slow.

        An opponent against whom no two games are over in time has no match.
        """
        results, settings = [], self._lineup.plan.config.evaluation
        for opponent in opponents:
            self._journal.enter(f"matches at the end: {count_of(settings.games, 'game')} against {opponent.name}")
            seconds = self._pace.share_of_minutes(MATCHES_SHARE) / len(opponents)
            match = self.against(opponent, settings.games, seconds)
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
        return results

    def against(self, opponent: Player, num_games: int, seconds: float) -> MatchResult:
        """A match of the best net that is over after so many seconds, of as many games as fit."""
        lineup, simulations = self._lineup, self._lineup.plan.config.evaluation.simulations
        player = net_player(lineup, "best", lineup.best, simulations)
        plies = 0.0
        for line in self._journal.lines[-1:]:
            plies = line["plies_per_game"]
            if rate := lineup.rate_of_match(line):  # before all games begin side by side, and each ply takes long
                num_games = games_that_fit(num_games, 2, plies / 2 * simulations / rate, seconds)
        if lineup.kernels.game.compiled:  # what is compiled takes no time of the match
            for each in (player, opponent):
                get_ready(lineup.kernels, each)
        match = play_in_time(lineup.kernels, player, opponent, num_games, lineup.plan.seed, seconds, plies, self._stop)
        with Progress(f"evaluation against {opponent.name}") as progress:
            for result, share in match:
                score = f", score {result.score:.2f}" if result.num_games else ""
                progress.show(share, f"{result.num_games} of {num_games} games{score}")
        return result
