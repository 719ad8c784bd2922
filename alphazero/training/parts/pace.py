"""The pace of a run: its generations, its minutes, and how many games fit into them."""

from __future__ import annotations

import math

from alphazero.game import Game
from alphazero.training.config import RunConfig

SELF_PLAY_SHARE = 0.1
"""Share of --minutes that the self-play of a generation takes; then it ends with fewer games."""
GATE_SHARE = 0.05
"""Share of --minutes that the gate of a generation takes, by what self-play says of the speed."""
MOST_GATE_SHARE = 0.1
"""Share of --minutes after which the gate ends, with the games that are over."""
MATCHES_SHARE = 0.2
"""The matches at the end take so much time again, in units of --minutes; where games are slow, they are fewer."""
FEW_POSITIONS = 1000
"""A network that could learn from no more for each action hardly knows which ones are good. Chess with at most 21 lost
all games against `greedy`; the shipped net of Gardner's chess learned from 2,600."""
LEAST_GATE_GAMES = 4
LAST_GATE_GAMES = 400
"""Games in the gate of a run's last generation, at least; their standard deviation is 17 Elo points, that of 40 games
55."""


class Pace:
    """Tells how far a run is, and how much of it still fits."""

    def __init__(self, config: RunConfig):
        self.config = config
        self.generation = 0
        """The newest generation."""
        self.seconds = 0.0
        """Duration of all generations together."""
        self.newest_seconds = 0.0
        """Duration of the newest one, if it was of this process."""

    @property
    def is_over(self) -> bool:
        """The generations or the minutes are used up."""
        return self.generation >= self.config.generations or self.share_of_minutes(1) <= self.seconds

    @property
    def progress(self) -> float:
        """The share of the run that is done, from 0 to 1; the learning rate follows it."""
        by_count = self.generation / self.config.generations
        return max(by_count, self.seconds / 60 / self.config.minutes) if self.config.minutes else by_count

    def share_of_minutes(self, share: float) -> float:
        """Seconds; infinitely many if the run has no time limit."""
        return share * 60 * self.config.minutes or math.inf

    def prospect(self, game: Game, network_rate: float) -> str:
        """A sentence on what to expect if the minutes are too few to learn the game; else empty.

        The network evaluates at most `network_rate` positions a second, `num_simulations` for each position of a game.
        """
        positions = 60 * self.config.minutes * network_rate / self.config.search.num_simulations
        each = positions / game.num_actions
        if not 0 < each < FEW_POSITIONS:
            return ""
        return (
            f"{self.config.minutes:g} minutes give at most {positions:,.0f} positions to learn from, {each:.0f} for"
            f" each of {game.name}'s {game.num_actions:,} actions: expect a net that plays legal games, not good ones"
        )

    def is_last(self, seconds: float) -> bool:
        """The run ends after the generation under way, which has played and learned for so many `seconds`.

        It is taken to need half as long again for the gate and what follows, and no less than the generation before.
        """
        whole = max(1.5 * seconds, self.newest_seconds)
        return self.generation + 1 >= self.config.generations or self.share_of_minutes(1) <= self.seconds + whole

    def gate_games(self, seconds_of_game: float, last: bool) -> int:
        """The gate's games as configured, or as many as its share of --minutes allows; an even number then."""
        wanted = max(self.config.gate.games, LAST_GATE_GAMES) if last else self.config.gate.games
        return games_that_fit(wanted, LEAST_GATE_GAMES, seconds_of_game, self.share_of_minutes(GATE_SHARE))


def games_that_fit(wanted: int, least: int, seconds_of_game: float, seconds: float) -> int:
    """The `wanted` games, or as many as fit into that time, at least so many; an even number then."""
    games = seconds / max(seconds_of_game, 1e-9)
    return wanted if games >= wanted else min(wanted, max(least, 2 * int(games / 2)))


def seconds_left(generations: int, minutes: float, generation: int, seconds: float) -> float:
    """About how long a run goes on after `generation`, which took `seconds` so far; 0 `minutes` are no limit."""
    left = seconds / max(1, generation) * max(0, generations - generation)
    return min(left, max(0.0, minutes * 60 - seconds)) if minutes else left
